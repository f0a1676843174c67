/* SPDX-License-Identifier: MIT
 *
 * The resident part of a range, estimated by samples; zeroing and copying that skip other pages. */
#include "large/large.h"
#include "os/optional.h"

#include <string.h>

enum {
    SAMPLES = 3,                  /* of one unit each */
    SAMPLE_EVERY_BYTES = 4 << 20, /* one for each such part, if that is more */
    SAMPLES_MOST = 32,
    PIECE_BYTES = 8 << 20,     /* zeroed by one decision, unless the block is very large */
    PIECES_MOST = 16,          /* bounds the calls for one block */
    ZERO_LEAST_BYTES = 1 << 20 /* below, clearing costs no more than asking */
};

size_t hak_large_resident(const char *base, size_t bytes) {
    size_t resident = 0;
    size_t count = hak_least(hak_most(bytes / SAMPLE_EVERY_BYTES, SAMPLES), SAMPLES_MOST);
    for (size_t i = 0; i < count; i++) {
        size_t at = hak_align_down(bytes / (2 * count) * (2 * i + 1), HAK_UNIT_BYTES);
        resident += hak_os_resident(base + at, HAK_UNIT_BYTES);
    }
    return bytes / HAK_UNIT_BYTES * resident / count;
}

/* A purged OS page costs a fault when it is used again; clearing one that is not resident costs the
 * fault now, and memory. So the majority decides. A swapped page is not resident and not zero:
 * purging it is right, too. Locked memory cannot be purged. */
static void piece_zero(char *base, size_t bytes) {
    if (hak_large_resident(base, bytes) >= bytes / 2 || !hak_os_purge(base, bytes)) {
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
