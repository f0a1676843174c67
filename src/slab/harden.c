/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: blocks above 128 bytes that were cleared as a whole, as a budget allows
 * (front/quarantine.c). Their second word is a mark, so a hand-out knows that the middle must be
 * zero, too. Where memory went back to the kernel the mark did, too, and the ends are checked. */
#include "slab/harden.h"

typedef uint64_t HAK_MAY_ALIAS harden_pair_t __attribute__((vector_size(16)));

/* No block in use ends in it: none begins 8 bytes on. */
static uint64_t harden_mark(const void *block) {
    return hak_harden_canary((const char *)block + sizeof(uint64_t));
}

void hak_harden_wipe_whole(void *block, size_t bytes, unsigned last) {
    memset(block, 0, bytes);
    ((uint64_t *)block)[1] = harden_mark(block);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) = last;
    }
}

/* Sizes above 128 bytes are multiples of 32. */
static bool harden_was_whole(void *block, size_t bytes) {
    uint64_t *mark = (uint64_t *)block + 1;
    if (bytes <= 2 * HAK_FILL_PART_BYTES || *mark != harden_mark(block)) {
        return false;
    }
    *mark = 0;
    const harden_pair_t *pair = block, *end = pair + bytes / sizeof *pair;
    harden_pair_t sum = {0, 0};
    for (; pair < end; pair += 2) {
        sum |= pair[0] | pair[1];
    }
    return (sum[0] | sum[1]) == 0;
}

void *hak_harden_hand_out_whole(void *block, size_t bytes, unsigned last) {
    hak_require(harden_was_whole(block, bytes), HAK_FATAL_CORRUPT_LINK, block);
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}
