/* SPDX-License-Identifier: MIT
 *
 * Zeroing and copying that skip OS pages without memory. */
#include "large/large.h"
#include "os/optional.h"

#include <string.h>

enum {
    SAMPLES = 4,               /* OS pages: only what is not zero is surely resident */
    ZERO_LEAST_BYTES = 1 << 20 /* below, clearing costs no more than asking */
};

/* A purged OS page costs a fault when it is used again; clearing one that is not resident costs the
 * fault now, and memory. So the majority decides. Locked memory cannot be purged. */
void hak_large_zero(void *block, size_t bytes) {
    size_t all = hak_align_up(bytes, HAK_UNIT_BYTES);
    if (bytes < ZERO_LEAST_BYTES || hak_dense_written(block, all, SAMPLES) >= all / 2 ||
        !hak_os_purge(block, all)) {
        memset(block, 0, bytes);
    }
}

void hak_large_copy(char *to, const char *from, size_t bytes) {
    for (size_t at = 0, page = hak_os_page_bytes(); at < bytes; at += page) {
        if (from[at] != 0 || memcmp(from + at, from + at + 1, page - 1) != 0) {
            memcpy(to + at, from + at, page);
        }
    }
}
