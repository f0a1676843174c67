/* SPDX-License-Identifier: MIT
 *
 * By default more blocks are watched than 1 in guard_rate, which a process with few allocations
 * hardly ever reaches: extra ones, from a bucket that time fills, by 10 a second up to 32. At 16 us
 * each (docs/experiments/0090-allowance-of-the-guard.md) that is 1/6000 of the time. Blocks that
 * the rate chose are taken from it as well, so a busy process watches no more than by the rate. It
 * is empty at first, in the child of a fork, and after the clock went back.
 *
 * An extra block makes no region: a process without one may be in a sandbox by now.
 *
 * Invariant:
 *   GUARD-7  An extra block is watched only if the bucket has one and less than 128 KiB of OS pages
 *            (or 4 of them) have guarded blocks in use, but for what other threads begin meanwhile.
 */
#ifndef HAK_GUARD_ALLOWANCE_H
#define HAK_GUARD_ALLOWANCE_H

#include "base/words.h"

enum {
    HAK_ALLOWANCE_BLOCKS = 32,        /* in the full bucket */
    HAK_ALLOWANCE_GAP_NS = 100000000, /* until the bucket has another block */
    HAK_ALLOWANCE_BYTES = 128 << 10,  /* of OS pages with guarded blocks */
    HAK_ALLOWANCE_LEAST_PAGES = 4,
};

extern uint64_t
    hak_allowance_full_ns; /* [atomic] when the bucket will be full; UINT64_MAX: empty */

/* Whether an extra block may be watched now, a time of hak_os_now_ns. */
bool hak_allowance_has(uint64_t now);
/* Takes a block from the bucket. false: it is an extra one that may not be watched. */
bool hak_allowance_take(uint64_t now, bool is_extra);

#endif
