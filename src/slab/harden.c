/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: blocks above 128 bytes that were cleared as a whole, as a budget allows
 * (front/quarantine.c). Once they leave the quarantine their second word is a mark, so a hand-out
 * knows that the middle must be zero, too. Where memory went back to the kernel the mark did, too,
 * and the ends are checked. */
#include "slab/harden.h"

typedef uint64_t HAK_MAY_ALIAS harden_pair_t __attribute__((vector_size(16)));

/* No block in use ends in it: none begins 8 bytes on. */
static uint64_t harden_mark(const void *block) {
    return hak_harden_canary((const char *)block + sizeof(uint64_t), 0);
}

void hak_harden_mark_whole(void *block) {
    ((uint64_t *)block)[1] = harden_mark(block);
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

void *hak_harden_hand_out_rest(void *block, size_t bytes, size_t size, unsigned last) {
    size_t slack = bytes - HAK_CANARY_BYTES - size;
    hak_require(hak_harden_is_clear(block, bytes) || harden_was_whole(block, bytes),
                HAK_FATAL_CORRUPT_LINK, block);
    if (slack > HAK_SLACK_PART_BYTES) {
        hak_harden_clear_slack(block, bytes, slack);
    }
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block, slack);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}

void hak_harden_clear_slack(void *block, size_t bytes, size_t slack) {
    char *end = (char *)hak_harden_canary_at(block, bytes);
    size_t part = slack < HAK_SLACK_PART_BYTES ? slack : HAK_SLACK_PART_BYTES;
    memset(end - slack, 0, part);
    memset(end - part, 0, part);
}

bool hak_harden_is_slack_clear(const void *block, size_t bytes, size_t slack) {
    const char *end = (const char *)block + bytes - HAK_CANARY_BYTES;
    const uint64_t *canary = (const uint64_t *)end;
    size_t words = hak_least(slack, HAK_SLACK_PART_BYTES) / sizeof(uint64_t);
    uint64_t sum = 0, first[HAK_SLACK_PART_BYTES / sizeof(uint64_t)];
    for (size_t i = 1; i <= words; i++) {
        sum |= canary[-(ptrdiff_t)i];
    }
    if (slack <= HAK_SLACK_PART_BYTES) {
        return (sum | hak_harden_last_bytes(canary[-1 - (ptrdiff_t)words], slack % 8)) == 0;
    }
    memcpy(first, end - slack, sizeof first);
#pragma GCC unroll 8
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        sum |= first[i];
    }
    return sum == 0;
}

bool hak_harden_resize(void *block, size_t bytes, size_t size) {
    char *plain = hak_tag_strip(block);
    size_t before, slack = bytes - HAK_CANARY_BYTES - size;
    uint64_t *canary = hak_harden_canary_at(block, bytes);
    if (!hak_harden_is_canary(plain, *canary, &before) ||
        !hak_harden_is_slack_clear(block, bytes, before)) {
        return false;
    }
    hak_harden_clear_slack(block, bytes, slack);
    *canary = hak_harden_canary(plain, slack);
    return true;
}

/* --- the block before ------------------------------------------------------------------------- */

/* Another thread may free the block, hand it out or resize it meanwhile, so one sight of it proves
 * nothing; as many of the same damage do. */
enum { BEFORE_SIGHTS = 256 };

/* A block in use has a canary and a clear slack; in others the last word is 0. Their other words
 * are not looked at: in the child of a fork a block that another thread was clearing stays as it
 * was. *word is the last one. */
static HAK_UNORDERED bool harden_is_sound(const char *block, size_t bytes, uint64_t *word) {
    const char *end = block + bytes - HAK_CANARY_BYTES;
    size_t slack;
    *word = hak_load_relaxed((const uint64_t *)end);
    if (*word == 0 || !hak_harden_is_canary(block, *word, &slack)) {
        return *word == 0;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the word, the slack, the word once more */
    bool is_clear = hak_harden_is_slack_clear(block, bytes, slack);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return is_clear || hak_load_relaxed((const uint64_t *)end) != *word;
}

/* An overflow reaches the lower bytes of a canary first, an underflow the upper ones. */
static HAK_COLD HAK_NORETURN void before_accuse(const char *before, const void *block,
                                                uint64_t word) {
    bool is_underflow = (uint16_t)word == (uint16_t)hak_harden_canary(before, 0);
    hak_fatal(is_underflow ? HAK_FATAL_UNDERFLOW : HAK_FATAL_OVERFLOW,
              is_underflow ? block : before, NULL);
}

void hak_harden_check_before(const void *block, size_t bytes) {
    const char *before = (const char *)block - bytes;
    uint64_t word, again;
    unsigned sights = 0;
    if (HAK_LIKELY(harden_is_sound(before, bytes, &word))) {
        return;
    }
    while (sights < BEFORE_SIGHTS && !harden_is_sound(before, bytes, &again) && again == word) {
        sights++;
    }
    if (sights == BEFORE_SIGHTS) {
        before_accuse(before, block, word);
    }
}
