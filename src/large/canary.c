/* SPDX-License-Identifier: MIT */
#include "large/canary.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"

#include <string.h>

/* Of a larger rest only these are looked at: an overflow begins at the end. */
enum { CANARY_MOST_BYTES = 128, CANARY_WORDS = CANARY_MOST_BYTES / sizeof(uint64_t) };

/* No byte is 0 or text. */
static const uint64_t canary_pattern[] = {[0 ... CANARY_WORDS - 1] = 0x9dc5b3e9a7d1cb8fu};
static const uint64_t canary_zeros[CANARY_WORDS];

static size_t canary_bytes(size_t size) {
    return hak_least(-size & (hak_os_page_bytes() - 1), CANARY_MOST_BYTES);
}

void hak_large_canary_set(char *block, size_t size) {
    size_t bytes = canary_bytes(size);
    if (bytes != 0 && (block[size] != 0 || memcmp(block + size, canary_zeros, bytes) != 0)) {
        memcpy(block + size, canary_pattern, bytes);
    }
}

void hak_large_canary_check(const char *block, size_t size) {
    size_t bytes = canary_bytes(size);
    if (bytes != 0) {
        const uint64_t *expected = block[size] == 0 ? canary_zeros : canary_pattern;
        hak_require(memcmp(block + size, expected, bytes) == 0, HAK_FATAL_OVERFLOW, block);
    }
}
