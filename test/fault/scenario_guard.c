/* SPDX-License-Identifier: MIT
 *
 * Blocks that the sampled guard watches (run with guard_rate:1): what the kernel refuses it may
 * cost a sample, but never a block. */
#include "fault/block.h"

#include "base/counters.h"

enum { COUNT = 300, WAVES = 4 };

static size_t bytes_of(unsigned i) {
    return 1 + i * 37 % 4096;
}

unsigned fault_run_guard(void) {
    static unsigned char *block[COUNT];
    static size_t bytes[COUNT];
    unsigned refusals = 0;
    errno = 0;
    for (unsigned wave = 0; wave < WAVES; wave++) {
        for (unsigned i = wave % 2; i < COUNT; i += 2) {
            give(&block[i], bytes[i], (unsigned char)i);
            bytes[i] = bytes_of(i + wave);
            block[i] = hak_malloc(bytes[i]);
            refusals += refused(block[i]);
            if (block[i] != NULL) {
                fill(block[i], bytes[i], (unsigned char)i);
                refusals += !resize(&block[i], &bytes[i], bytes_of(i + 50), (unsigned char)i);
            }
        }
        FAULT_EXPECT(errno == 0);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        give(&block[i], bytes[i], (unsigned char)i);
    }
    FAULT_EXPECT(refusals != 0 || hak_load_relaxed(&hak_counters.guard_sample) != 0 ||
                 hak_load_relaxed(&hak_counters.os_failure) != 0);
    return refusals;
}
