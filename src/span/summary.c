/* SPDX-License-Identifier: MIT
 *
 * A word compares eight bytes of a line at once; values below 128 keep sums from carrying over. */
#include "span/summary.h"

#include "base/check.h"
#include "base/config.h"

static const uint64_t BYTES_LOW = 0x0101010101010101ull;  /* the lowest bit of each byte */
static const uint64_t BYTES_HIGH = 0x8080808080808080ull; /* the highest */

HAK_LOCKED_STATE uint64_t hak_summary_lines_read; /* [lock SPAN] */

/* Bytes of a level; a line at least. */
static size_t level_bytes(uint32_t capacity, unsigned level) {
    size_t bytes = (size_t)capacity >> (level * HAK_SUMMARY_LINE_LOG2);
    return bytes > HAK_SUMMARY_LINE ? bytes : HAK_SUMMARY_LINE;
}

static unsigned top_level(uint32_t capacity) {
    unsigned level = 0;
    while (capacity >> (level * HAK_SUMMARY_LINE_LOG2) > HAK_SUMMARY_LINE) {
        level++;
    }
    return level;
}

size_t hak_summary_bytes(uint32_t capacity) {
    size_t bytes = 0;
    for (unsigned level = 0; level <= top_level(capacity); level++) {
        bytes += level_bytes(capacity, level);
    }
    return bytes;
}

static unsigned line_most(const uint8_t *line) {
    uint8_t most = 0;
    for (unsigned i = 0; i < HAK_SUMMARY_LINE; i++) {
        most = line[i] > most ? line[i] : most;
    }
    return most;
}

void hak_summary_move(hak_summary_t *summary, uint32_t count, uint32_t capacity, void *memory) {
    const uint8_t *old = summary->level[0];
    uint8_t *bytes = memory;
    summary->top = top_level(capacity);
    HAK_ASSERT(summary->top < HAK_SUMMARY_LEVELS, "SPAN-4");
    for (unsigned level = 0; level <= summary->top; level++) {
        summary->level[level] = bytes;
        bytes += level_bytes(capacity, level);
    }
    for (uint32_t place = 0; place < count; place++) {
        summary->level[0][place] = old[place];
    }
    for (unsigned level = 1; level <= summary->top; level++) {
        count = (count + HAK_SUMMARY_LINE - 1) >> HAK_SUMMARY_LINE_LOG2;
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *line = summary->level[level - 1] + (size_t)i * HAK_SUMMARY_LINE;
            summary->level[level][i] = (uint8_t)line_most(line);
        }
    }
}

/* The highest bit of each of eight bytes that is `least` or more. */
static uint64_t word_hits(const uint8_t *bytes, unsigned least) {
    uint64_t word;
    __builtin_memcpy(&word, bytes, sizeof word);
    return (word + (0x80 - least) * BYTES_LOW) & BYTES_HIGH;
}

uint32_t hak_summary_find(const hak_summary_t *summary, unsigned least) {
    uint32_t place = 0;
    for (unsigned level = summary->top + 1; level-- > 0;) {
        const uint8_t *line = summary->level[level] + (size_t)place * HAK_SUMMARY_LINE;
        uint64_t hits = 0;
        unsigned i = 0;
        hak_summary_lines_read += HAK_FAULT;
        for (; i < HAK_SUMMARY_LINE && (hits = word_hits(line + i, least)) == 0; i += 8) {
        }
        if (HAK_LIKELY(hits != 0)) {
            place = place * HAK_SUMMARY_LINE + i + hak_ctz(hits) / 8;
        } else if (level == summary->top) {
            return HAK_SUMMARY_NONE;
        } else { /* the level above promised too much: again from the top */
            summary->level[level + 1][place] = (uint8_t)line_most(line);
            level = summary->top + 1;
            place = 0;
        }
    }
    return place;
}

/* The last byte of the line, below `end`, that is `least` or more; -1: none. */
static int line_find_last(const uint8_t *line, unsigned least, uint32_t end) {
    hak_summary_lines_read += HAK_FAULT;
    for (unsigned i = (end + 7) / 8; i-- > 0;) {
        uint64_t below = end - i * 8 >= 8 ? ~0ull : hak_mask((end - i * 8) * 8);
        uint64_t hits = word_hits(line + (size_t)i * 8, least) & below;
        if (hits != 0) {
            return (int)(i * 8 + hak_log2(hits) / 8);
        }
    }
    return -1;
}

/* Up from the line before `end`, past lines without a hit, and down again. */
uint32_t hak_summary_find_last(const hak_summary_t *summary, unsigned least, uint32_t end) {
    unsigned level = 0;
    uint32_t place = HAK_SUMMARY_NONE;
    for (; end != 0 && place == HAK_SUMMARY_NONE; level++) {
        uint32_t first = (uint32_t)hak_align_down(end - 1, HAK_SUMMARY_LINE);
        int found = line_find_last(summary->level[level] + first, least, end - first);
        place = found >= 0 ? first + (uint32_t)found : HAK_SUMMARY_NONE;
        end = first >> HAK_SUMMARY_LINE_LOG2;
    }
    for (level--; place != HAK_SUMMARY_NONE && level-- > 0;) {
        const uint8_t *line = summary->level[level] + (size_t)place * HAK_SUMMARY_LINE;
        place = place * HAK_SUMMARY_LINE + (uint32_t)line_find_last(line, least, HAK_SUMMARY_LINE);
    }
    return place;
}

void hak_summary_set(hak_summary_t *summary, uint32_t place, unsigned value) {
    for (unsigned level = 0;; level++) {
        uint8_t *line = summary->level[level] + hak_align_down(place, HAK_SUMMARY_LINE);
        uint8_t *byte = &line[place % HAK_SUMMARY_LINE];
        unsigned old = *byte;
        *byte = (uint8_t)value;
        if (value == old || level == summary->top) {
            return;
        }
        place >>= HAK_SUMMARY_LINE_LOG2;
        unsigned most = summary->level[level + 1][place];
        if (value < most && old < most) {
            return;
        }
        value = value >= most ? value : line_most(line);
    }
}
