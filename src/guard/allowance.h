/* SPDX-License-Identifier: MIT
 *
 * By default more blocks are watched than 1 in guard_rate, which a process with few allocations
 * hardly ever reaches. The extra ones stay within an allowance:
 *
 *   time     1/256 of the time since the first look at the clock, for the work with all watched
 *            blocks, at COST_NS each: no clock is read, as a process may not be allowed to.
 *            1 process in 16 begins with a credit, which alone pays for the
 *            region: later a process may have entered a sandbox that kills for the region's system
 *            calls. Another process has extra blocks once the rate has brought it a region
 *   number   a bucket of 32 blocks, filled up by 10 a second. Blocks that the rate chose are taken
 *            from it as well: a busy process watches no more than by the rate
 *   memory   4 OS pages, and one more each time the age of the process doubles, up to 128 KiB (or 4
 *            OS pages): blocks that live as long as the process cannot take it all at once
 *
 * A forked child begins anew with an empty bucket, and draws no credit.
 *
 * Invariant:
 *   GUARD-7  An extra block is watched only while time, number and memory are within the allowance.
 *            It is exceeded by the cost of those that threads have begun meanwhile, one each. */
#ifndef HAK_GUARD_ALLOWANCE_H
#define HAK_GUARD_ALLOWANCE_H

#include "base/compiler.h"
#include "base/words.h"

enum {
    HAK_ALLOWANCE_SHARE = 256,            /* 1/256 of the time */
    HAK_ALLOWANCE_BLOCKS = 32,            /* in the full bucket */
    HAK_ALLOWANCE_CREDIT_ODDS = 16,       /* 1 in so many processes has the credit */
    HAK_ALLOWANCE_LEAST_PAGES = 4,        /* OS pages of extra blocks in use */
    HAK_ALLOWANCE_BYTES = 128 << 10,      /* the same, at most */
    HAK_ALLOWANCE_CREDIT_NS = 128000,     /* the region and some blocks */
    HAK_ALLOWANCE_COST_NS = 16000,        /* of a block, its free included (experiment 0090) */
    HAK_ALLOWANCE_GAP_NS = 100000000,     /* until the bucket has another block */
    HAK_ALLOWANCE_PAGE_AGE_NS = 64000000, /* age at which there is one more OS page */
};

typedef struct hak_allowance {
    uint64_t begin_ns; /* [atomic] the age is measured from here; 0: not yet */
    uint64_t full_ns;  /* [atomic] when the bucket will be full */
    uint64_t spent_ns; /* [atomic] signed: a credit is negative */
    uint32_t is_drawn; /* [atomic] the draw for the credit was made */
} hak_allowance_t;

extern hak_allowance_t hak_allowance;

/* The draw for the credit, once a process: whether it has one. */
bool hak_allowance_draw(uint64_t random);
/* Whether an extra block may be watched now, a time of hak_os_now_ns. */
bool hak_allowance_has(uint64_t now);
/* Takes a block from the bucket. false: it is an extra one that may not be watched. */
bool hak_allowance_take(uint64_t now, bool is_extra);
/* Pays for a watched block. */
void hak_allowance_spend(void);
/* In the child of a fork. */
HAK_COLD void hak_allowance_after_fork(void);

#endif
