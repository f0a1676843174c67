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
    DENSE_PART = 8, /* a sample is resident but for a part */
    BET_MOST = 8,
    WAIT = 1,
};

hak_dense_t hak_dense_sure;

static bool is_resident(size_t resident, size_t bytes) {
    return resident <= bytes && resident >= bytes - bytes / DENSE_PART;
}

size_t hak_dense_sample(hak_dense_t *dense, const char *base, size_t bytes) {
    bool learns = hak_load_relaxed(&hak_knobs.learn) == HAK_LEARN_ON;
    size_t resident = learns ? hak_os_resident_now(base, bytes) : SIZE_MAX; /* not known */
    bool is_dense = is_resident(resident, bytes);
    size_t next = hak_most(2u * hak_load_relaxed(&dense->bet), 1);
    uint8_t bet = is_dense ? (uint8_t)hak_least(next, BET_MOST) : 0;
    hak_store_relaxed(&dense->bet, bet);
    hak_store_relaxed(&dense->left, bet != 0 ? bet : (uint8_t)WAIT);
    return resident;
}

bool hak_dense_take(hak_dense_t *dense) {
    size_t left = hak_load_relaxed(&dense->left);
    hak_store_relaxed(&dense->left, (uint8_t)hak_excess(left, 1));
    return dense == &hak_dense_sure || (left != 0 && hak_load_relaxed(&dense->bet) != 0);
}
