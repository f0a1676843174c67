/* SPDX-License-Identifier: MIT
 *
 * Zeroing and copying that skip OS pages without memory. */
#include "large/large.h"
#include "os/optional.h"

#include <string.h>

enum {
    SAMPLES = 4,               /* OS pages: only what is not zero is surely resident */
    PIECE_BYTES = 8 << 20,     /* zeroed by one decision, unless the block is very large */
    PIECES_MOST = 16,          /* bounds the calls for one block */
    ZERO_LEAST_BYTES = 1 << 20 /* below, clearing costs no more than asking */
};

/* A purged OS page costs a fault when it is used again; clearing one that is not resident costs the
 * fault now, and memory. So the majority decides. Locked memory cannot be purged. */
static void piece_zero(char *base, size_t bytes) {
    if (hak_dense_written(base, bytes, SAMPLES) >= bytes / 2 || !hak_os_purge(base, bytes)) {
        memset(base, 0, bytes);
    }
}

void hak_large_zero(void *block, size_t bytes) {
    if (bytes < ZERO_LEAST_BYTES) {
        memset(block, 0, bytes);
        return;
    }
    char *base = block, *end = base + hak_align_up(bytes, HAK_UNIT_BYTES);
    size_t piece = hak_most(hak_align_up(bytes / PIECES_MOST, HAK_UNIT_BYTES), PIECE_BYTES);
    for (; (size_t)(end - base) >= 2 * piece; base += piece) {
        piece_zero(base, piece);
    }
    piece_zero(base, (size_t)(end - base));
}

void hak_large_copy(char *to, const char *from, size_t bytes) {
    for (size_t at = 0, page = hak_os_page_bytes(); at < bytes; at += page) {
        if (from[at] != 0 || memcmp(from + at, from + at + 1, page - 1) != 0) {
            memcpy(to + at, from + at, page);
        }
    }
}
