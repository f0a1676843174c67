/* SPDX-License-Identifier: MIT
 *
 * A byte for each of many places; finds the first, or the last, that is large enough.
 *
 *   level 0   byte of place 0, of place 1, ...                lines of 64 bytes
 *   level 1   largest byte of each line of level 0
 *   ...
 *   top       one line
 *
 * A search reads a line a level, an update of a byte two lines a level at most: two levels for up
 * to 4 096 places, three for up to 262 144. All of it [lock SPAN]; private to this folder. */
#ifndef HAK_SPAN_SUMMARY_H
#define HAK_SPAN_SUMMARY_H

#include "base/bits.h"

enum {
    HAK_SUMMARY_LEVELS = 5, /* 2^30 places; addresses have 48 bits, so 2^26 superslabs */
    HAK_SUMMARY_LINE_LOG2 = 6,
    HAK_SUMMARY_LINE = 1 << HAK_SUMMARY_LINE_LOG2,
    HAK_SUMMARY_MOST = 64, /* largest value of a byte */
    HAK_SUMMARY_NONE = UINT32_MAX,
};

typedef struct hak_summary {
    uint8_t *level[HAK_SUMMARY_LEVELS]; /* NULL before hak_summary_move */
    unsigned top;
} hak_summary_t;

/* Memory for `capacity` places, a power of two, at least a line. */
size_t hak_summary_bytes(uint32_t capacity);

/* Moves to zeroed memory for more places: the first `count` keep their bytes, the rest is 0. */
void hak_summary_move(hak_summary_t *summary, uint32_t count, uint32_t capacity, void *memory);

/* The first place whose byte is `least` (not 0) or more; HAK_SUMMARY_NONE. Mends levels above 0. */
uint32_t hak_summary_find(const hak_summary_t *summary, unsigned least);
/* The last such place below `end`. */
uint32_t hak_summary_find_last(const hak_summary_t *summary, unsigned least, uint32_t end);

void hak_summary_set(hak_summary_t *summary, uint32_t place, unsigned value);

HAK_INLINE unsigned hak_summary_get(const hak_summary_t *summary, uint32_t place) {
    return summary->level[0][place];
}

/* Lines that searches read. Counted in the core for tests only. */
extern uint64_t hak_summary_lines_read;

#endif
