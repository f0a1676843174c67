/* SPDX-License-Identifier: MIT
 *
 * A dense sample is good for the next range that is opened, the one after it for two, and so on up
 * to BET_MOST. After a sample that is not dense the next range has small pages, and bets begin
 * anew. So memory that is written to in part from now on costs BET_MOST ranges at most, and no more
 * than one and those that were dense (docs/experiments/0055-dense-classes.md). */
#include "span/dense.h"

#include "base/knobs.h"
#include "os/optional.h"

enum {
    DENSE_DIVISOR = 8, /* all but a part of a dense sample is written to */
    BET_MOST = 8,
    WAIT = 1,
    SAMPLE_PAGES = 16,
    SAMPLE_WORDS = 4, /* of each, until one is not zero */
};

/* The golden ratio in 32 bits: at distances without a pattern, as pages written to may have one. */
static const uint32_t SAMPLE_STEP = 0x9e3779b1;

hak_dense_t hak_dense_sure;

/* Ends once more than so many pages of the sample are untouched. */
static size_t written_unless(const char *base, size_t bytes, size_t most_pages, size_t untouched) {
    size_t page = hak_os_page_bytes(), pages = hak_most(bytes / page, 1), written = 0;
    size_t count = hak_least(pages, most_pages);
    for (size_t i = 0; i < count && i - written <= untouched; i++) {
        size_t at = i * pages / count + ((i + 1) * SAMPLE_STEP >> 16) % (pages / count);
        hak_os_peek_t found = HAK_OS_PEEK_NOTHING;
        for (unsigned word = 0; word < SAMPLE_WORDS && found == HAK_OS_PEEK_NOTHING; word++) {
            found = hak_os_peek(base + at * page + page / SAMPLE_WORDS * word);
        }
        if (found == HAK_OS_PEEK_UNKNOWN) {
            return SIZE_MAX;
        }
        written += found == HAK_OS_PEEK_OTHER;
    }
    return written == count ? bytes : bytes / count * written;
}

size_t hak_dense_written(const char *base, size_t bytes, size_t most_pages) {
    return written_unless(base, bytes, most_pages, most_pages);
}

void hak_dense_sample(hak_dense_t *dense, const char *base, size_t bytes) {
    if (hak_load_relaxed(&dense->left) != 0) {
        return;
    }
    bool learns = hak_load_relaxed(&hak_knobs.learn) == HAK_LEARN_ON;
    size_t untouched = SAMPLE_PAGES / DENSE_DIVISOR; /* with more of them it is not dense */
    size_t written = learns ? written_unless(base, bytes, SAMPLE_PAGES, untouched) : SIZE_MAX;
    bool is_dense = written <= bytes && written >= bytes - bytes / DENSE_DIVISOR;
    size_t next = hak_most(2u * hak_load_relaxed(&dense->bet), 1);
    uint8_t bet = is_dense ? (uint8_t)hak_least(next, BET_MOST) : 0;
    hak_store_relaxed(&dense->bet, bet);
    hak_store_relaxed(&dense->left, bet != 0 ? bet : (uint8_t)WAIT);
}

bool hak_dense_take(hak_dense_t *dense) {
    size_t left = hak_load_relaxed(&dense->left);
    hak_store_relaxed(&dense->left, (uint8_t)hak_excess(left, 1));
    return dense == &hak_dense_sure || (left != 0 && hak_load_relaxed(&dense->bet) != 0);
}
