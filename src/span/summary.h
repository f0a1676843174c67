/* SPDX-License-Identifier: MIT
 *
 * A byte for each of many places; finds the first, or the last, that is large enough.
 *
 *   level 0   byte of place 0, of place 1, ...                lines of 64 bytes
 *   level 1   largest byte of each line of level 0
 *   ...
 *   top       one line
 *
 * A search reads a line a level, an update of a byte one byte a level: two levels for up to 4 096
 * places, three for up to 262 144. Bytes are promises, [atomic]: any thread raises one, or
 * lowers it to what it found, and then looks whether that is still true. Bytes above the lowest
 * level may promise too much, too, until a search comes by. Private to this folder. */
#ifndef HAK_SPAN_SUMMARY_H
#define HAK_SPAN_SUMMARY_H

#include "base/atomics.h"
#include "base/bits.h"

enum {
    HAK_SUMMARY_LEVELS = 5, /* 2^30 places; addresses have 48 bits, so 2^26 superslabs */
    HAK_SUMMARY_LINE_LOG2 = 6,
    HAK_SUMMARY_LINE = 1 << HAK_SUMMARY_LINE_LOG2,
    HAK_SUMMARY_MOST = 64, /* largest value of a byte */
    HAK_SUMMARY_NONE = UINT32_MAX,
};

typedef struct hak_summary {
    uint8_t *level[HAK_SUMMARY_LEVELS]; /* [lock SPAN] written; NULL before hak_summary_move */
    unsigned size_log2;                 /* [lock SPAN] written; of the places */
} hak_summary_t;

/* Memory for `capacity` places, a power of two, at least a line. */
size_t hak_summary_bytes(uint32_t capacity);

/* Moves to zeroed memory for more places, while others use it: of the first `count`, those that
 * promise anything promise as much. SPAN is held. */
void hak_summary_move(hak_summary_t *summary, uint32_t count, uint32_t capacity, void *memory);

/* The first place whose byte is `least` (not 0) or more; HAK_SUMMARY_NONE. */
uint32_t hak_summary_find(hak_summary_t *summary, unsigned least);
/* The last such place below `end`. SPAN is held. */
uint32_t hak_summary_find_last(hak_summary_t *summary, unsigned least, uint32_t end);

/* Makes a byte, and those above it, at least `least`. */
void hak_summary_raise(hak_summary_t *summary, uint32_t place, unsigned least);
/* Lowers a byte to `value`. false: it was no more, or has just been changed. */
bool hak_summary_lower(hak_summary_t *summary, uint32_t place, unsigned value);

/* The byte of a place; the top level of 2^`size_log2` places. */
unsigned hak_summary_get(const hak_summary_t *summary, uint32_t place);
unsigned hak_summary_top(unsigned size_log2);

/* Lines that searches read. Counted in the core for tests only. */
extern uint64_t hak_summary_lines_read;

#endif
