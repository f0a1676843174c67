/* SPDX-License-Identifier: MIT
 *
 * A word compares eight bytes of a line at once; values below 128 keep sums from carrying over. */
#include "span/summary.h"

#include "base/check.h"
#include "base/config.h"

static const uint64_t BYTES_LOW = 0x0101010101010101ull;  /* the lowest bit of each byte */
static const uint64_t BYTES_HIGH = 0x8080808080808080ull; /* the highest */

HAK_LOCKED_STATE uint64_t hak_summary_lines_read; /* [atomic] */

static void line_note_read(void) {
    if (HAK_FAULT) {
        hak_single_writer_add(&hak_summary_lines_read, 1);
    }
}

unsigned hak_summary_get(const hak_summary_t *summary, uint32_t place) {
    return hak_load_relaxed(&hak_load_relaxed(&summary->level[0])[place]);
}

unsigned hak_summary_top(unsigned size_log2) {
    return (size_log2 - 1) / HAK_SUMMARY_LINE_LOG2;
}

/* Bytes of a level; a line at least. */
static size_t level_bytes(uint32_t capacity, unsigned level) {
    size_t bytes = (size_t)capacity >> (level * HAK_SUMMARY_LINE_LOG2);
    return bytes > HAK_SUMMARY_LINE ? bytes : HAK_SUMMARY_LINE;
}

size_t hak_summary_bytes(uint32_t capacity) {
    size_t bytes = 0;
    for (unsigned level = 0; level <= hak_summary_top(hak_log2(capacity)); level++) {
        bytes += level_bytes(capacity, level);
    }
    return bytes;
}

/* Levels from the lowest on, the size last: a reader, in the other order, has room for each place
 * that a level names. A thread that raises a byte later finds the new size, else it is found here.
 */
void hak_summary_move(hak_summary_t *summary, uint32_t count, uint32_t capacity, void *memory) {
    uint8_t *old = summary->level[0], *bytes = memory;
    unsigned size_log2 = hak_log2(capacity);
    HAK_ASSERT(hak_summary_top(size_log2) < HAK_SUMMARY_LEVELS, "SPAN-4");
    for (unsigned level = 0; level <= hak_summary_top(size_log2); level++) {
        hak_store_release(&summary->level[level], bytes); /* pairs SUMMARY */
        bytes += level_bytes(capacity, level);
    }
    hak_store_release(&summary->size_log2, size_log2); /* pairs SUMMARY */
    for (uint32_t place = 0; place < count; place++) {
        unsigned least = hak_or_acquire_release(&old[place], 0);             /* pairs SUMMARY */
        unsigned now = hak_or_acquire_release(&summary->level[0][place], 0); /* pairs SUMMARY */
        if ((least | now) != 0) {
            hak_summary_raise(summary, place, (unsigned)hak_most(least, now));
        }
    }
}

void hak_summary_raise(hak_summary_t *summary, uint32_t place, unsigned least) {
    unsigned size_log2;
    do {
        uint32_t at = place;
        size_log2 = hak_load_acquire(&summary->size_log2); /* pairs SUMMARY */
        for (unsigned level = 0; level <= hak_summary_top(size_log2); level++) {
            uint8_t *byte = &hak_load_acquire(&summary->level[level])[at]; /* pairs SUMMARY */
            uint8_t old = hak_load_relaxed(byte);
            while (!hak_cas_acquire_release(byte, &old, (uint8_t)hak_most(old, least))) {
            } /* pairs SUMMARY */
            at >>= HAK_SUMMARY_LINE_LOG2;
        }
    } while (HAK_UNLIKELY(hak_load_relaxed(&summary->size_log2) != size_log2));
}

bool hak_summary_lower(hak_summary_t *summary, uint32_t place, unsigned value) {
    uint8_t *byte = &hak_load_acquire(&summary->level[0])[place]; /* pairs SUMMARY */
    uint8_t old = hak_load_relaxed(byte);
    return old > value && hak_cas_acquire(byte, &old, (uint8_t)value); /* pairs SUMMARY */
}

static unsigned line_most(const uint8_t *line) {
    uint8_t most = 0;
    for (unsigned i = 0; i < HAK_SUMMARY_LINE; i++) {
        uint8_t one = hak_load_hot(&line[i]);
        most = one > most ? one : most;
    }
    return most;
}

/* The byte above the line promised too much. If a byte of the line is raised meanwhile, so is
 * `first`, a place below it. */
static void byte_mend(hak_summary_t *summary, uint8_t *byte, const uint8_t *line, uint32_t first) {
    unsigned most = line_most(line);
    (void)hak_swap_acquire_release(byte, (uint8_t)most); /* pairs SUMMARY */
    if (HAK_UNLIKELY(line_most(line) > most)) {
        hak_summary_raise(summary, first, HAK_SUMMARY_MOST);
    }
}

typedef uint64_t __attribute__((may_alias)) bytes_t;

/* The highest bit of each of eight bytes that is `least` or more. */
static uint64_t word_hits(const uint8_t *bytes, unsigned least) {
    uint64_t word = hak_load_relaxed((const bytes_t *)bytes);
    return (word + (0x80 - least) * BYTES_LOW) & BYTES_HIGH;
}

uint32_t hak_summary_find(hak_summary_t *summary, unsigned least) {
    uint32_t place = 0;
    unsigned top = hak_summary_top(hak_load_acquire(&summary->size_log2)); /* pairs SUMMARY */
    uint8_t *above = NULL;
    for (unsigned level = top + 1; level-- > 0;) {
        uint8_t *bytes = hak_load_acquire(&summary->level[level]); /* pairs SUMMARY */
        const uint8_t *line = bytes + (size_t)place * HAK_SUMMARY_LINE;
        uint64_t hits = 0;
        unsigned i = 0;
        line_note_read();
        for (; i < HAK_SUMMARY_LINE && (hits = word_hits(line + i, least)) == 0; i += 8) {
        }
        if (HAK_LIKELY(hits != 0)) {
            place = place * HAK_SUMMARY_LINE + i + hak_ctz(hits) / 8;
            above = bytes;
        } else if (level == top) {
            return HAK_SUMMARY_NONE;
        } else { /* again from the top */
            byte_mend(summary, &above[place], line, place << ((level + 1) * HAK_SUMMARY_LINE_LOG2));
            level = top + 1;
            place = 0;
        }
    }
    return place;
}

/* The last byte of the line, below `end`, that is `least` or more; -1: none. */
static int line_find_last(const uint8_t *line, unsigned least, uint32_t end) {
    line_note_read();
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
uint32_t hak_summary_find_last(hak_summary_t *summary, unsigned least, uint32_t end) {
    uint32_t place = HAK_SUMMARY_NONE, below = end;
    unsigned level = 0;
    for (; below != 0 && place == HAK_SUMMARY_NONE; level++) {
        uint32_t first = (uint32_t)hak_align_down(below - 1, HAK_SUMMARY_LINE);
        int found = line_find_last(summary->level[level] + first, least, below - first);
        place = found >= 0 ? first + (uint32_t)found : HAK_SUMMARY_NONE;
        below = first >> HAK_SUMMARY_LINE_LOG2;
    }
    for (level--; place != HAK_SUMMARY_NONE && level-- > 0;) {
        const uint8_t *line = summary->level[level] + (size_t)place * HAK_SUMMARY_LINE;
        int found = line_find_last(line, least, HAK_SUMMARY_LINE);
        if (found < 0) { /* again */
            byte_mend(summary, &summary->level[level + 1][place], line,
                      place << ((level + 1) * HAK_SUMMARY_LINE_LOG2));
            return hak_summary_find_last(summary, least, end);
        }
        place = place * HAK_SUMMARY_LINE + (uint32_t)found;
    }
    return place;
}
