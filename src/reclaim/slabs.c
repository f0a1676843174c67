/* SPDX-License-Identifier: MIT
 *
 * The pool of the holes of slabs (slab/purge.c): when they go, and which.
 *
 *   all of them    malloc_trim
 *   before a peak  an OS page that goes and comes back costs a thousand cycles and more, so only
 *                  holes go that are worth their call, and at most a share of all spans, of which
 *                  half is due again after each window: loads that need them back lose one to three
 *                  percent (docs/experiments/0030-spare-before-a-peak.md)
 *   by time        rounds over the partial slabs of an owner, a window at least between two. A slab
 *                  that is as the round before left it is idle: its holes go, if those of the whole
 *                  owner are worth it. When many of the slabs that were purged are needed again,
 *                  the pause becomes longer (docs/experiments/0027-holes-go-back.md) */
#include "reclaim/slabs.h"

#include "base/knobs.h"
#include "os/os.h"
#include "reclaim/reclaim.h"

enum {
    HOLES_LEAST_PART = 2, /* of a slab free: less is not worth the calls, and huge pages */
    HOLES_MOST_WORK = 256 * HAK_SLAB_CALL_WORK, /* of one time: a millisecond or two */
    SPARE_HOLE_PAGES = 4,
    SPARE_SPANS_PART = 16, /* of all spans */
    SPARE_LOOK_WORK = 8,   /* a bitmap is looked through */
    SPARE_REFUSED_MOST = 8,
    DECAY_SECTION_WORK = 8 * HAK_SLAB_CALL_WORK,
    DECAY_STEP_OWNERS = 4,
    DECAY_REGRET_PART = 4,  /* of the purged slabs, needed again: too many */
    DECAY_BACKOFF_MOST = 6, /* doublings of the pause */
};

HAK_LOCKED_STATE size_t hak_slabs_spared;
HAK_LOCKED_STATE hak_owner_t *hak_slabs_decay_cursor; /* [atomic] visited last */

static bool slab_is_worth_it(const hak_slab_t *slab) {
    size_t free_bytes = (size_t)slab->free_count * slab->block_bytes;
    return free_bytes >= (size_t)slab->units * HAK_UNIT_BYTES / HOLES_LEAST_PART;
}

/* --- at once ---------------------------------------------------------------------------------- */

/* Calls are refused as long as nothing went: that tells locked memory from a locked page. */
static bool order_goes_on(const hak_slabs_order_t *order) {
    bool is_refused = order->refused >= SPARE_REFUSED_MOST && order->given_back == 0;
    return order->is_all || (order->work > 0 && order->given_back < order->wanted && !is_refused);
}

static void order_take(hak_slabs_order_t *order, hak_owner_t *owner, hak_slab_t *slab) {
    bool is_done = slab->is_purged || (slab->is_spared && !order->is_all);
    order->work--;
    if ((is_done && hak_slab_is_idle(slab)) || !(order->is_all || slab_is_worth_it(slab))) {
        return;
    }
    size_t least = order->is_all ? 1 : SPARE_HOLE_PAGES * hak_os_page_bytes();
    hak_slab_purged_t sum = hak_slab_purge(slab, least);
    owner->holes.purged += sum.fresh_bytes != 0;
    order->given_back += sum.fresh_bytes;
    order->refused += sum.refused;
    order->work -= SPARE_LOOK_WORK + (int64_t)sum.work;
}

void hak_slabs_take(hak_owner_t *owner, unsigned sc, uint32_t slabs, hak_slabs_order_t *order) {
    for (; slabs > 0 && order_goes_on(order) && !hak_list_is_empty(&owner->partial[sc]); slabs--) {
        order_take(order, owner, hak_slab_in_turn(owner, sc));
    }
    hak_single_writer_store(&owner->holes.spare_class, (uint8_t)sc);
}

/* From the class at which it ended last; large classes first: their holes are large. */
static void owner_take(hak_owner_t *owner, void *context) {
    hak_slabs_order_t *order = context;
    unsigned first = hak_single_writer_load(&owner->holes.spare_class);
    for (unsigned i = 0; i < HAK_SC_COUNT; i++) {
        unsigned sc = (first + HAK_SC_COUNT - i) % HAK_SC_COUNT;
        int64_t left = hak_single_writer_load(&owner->partial_count[sc]);
        for (; left > 0 && order_goes_on(order) && hak_owner_try_lock(owner);
             left -= HAK_SLAB_SECTION) {
            hak_slabs_take(owner, sc, HAK_SLAB_SECTION, order);
            hak_owner_unlock(owner);
        }
    }
}

size_t hak_slabs_give_back(size_t bytes) {
    hak_span_stats_t spans;
    hak_span_stats(&spans);
    size_t most = spans.in_use_bytes / SPARE_SPANS_PART;
    most -= hak_least(most, hak_load_relaxed(&hak_slabs_spared));
    hak_slabs_order_t order = {
        .wanted = hak_least(bytes, most), .is_all = bytes == SIZE_MAX, .work = HOLES_MOST_WORK};
    hak_owner_visit(owner_take, &order);
    if (!order.is_all) { /* locked memory: nothing for some dozens of windows */
        bool is_refused = order.refused >= SPARE_REFUSED_MOST && order.given_back == 0;
        hak_add_relaxed(&hak_slabs_spared, is_refused ? SIZE_MAX / 4 : order.given_back);
    }
    return order.given_back;
}

/* --- by time ---------------------------------------------------------------------------------- */

static uint32_t slab_decay(hak_holes_round_t *round, hak_slab_t *slab) {
    bool is_idle = hak_slab_is_idle(slab);
    slab->is_refused = slab->is_refused && round->number != 0; /* asked again after minutes */
    bool is_done = slab->is_purged || slab->is_refused || slab->round == round->number;
    if (!slab_is_worth_it(slab) || (is_idle && is_done)) {
        return 1; /* the last: others left the list, and it comes by again */
    }
    round->free_bytes += (size_t)slab->free_count * slab->block_bytes;
    slab->round = round->number;
    if (!is_idle) {
        slab->looked = (uint16_t)(slab->free_count + 1);
        slab->is_purged = false;
        slab->is_spared = false;
        slab->is_refused = false;
    } else if (round->free_bytes_before > hak_load_relaxed(&hak_knobs.retain_idle_bytes) ||
               hak_load_relaxed(&hak_knobs.is_tight)) {
        hak_slab_purged_t sum = hak_slab_purge(slab, 1);
        round->purged += sum.bytes != 0;
        round->regretted += sum.refused != 0; /* a call for nothing, too */
        return 1 + sum.work;
    }
    return 1;
}

static void round_end(hak_holes_round_t *round, uint64_t now) {
    bool is_regretted = round->regretted > HAK_SLAB_SECTION + round->purged / DECAY_REGRET_PART;
    round->backoff = (uint8_t)hak_regret_backoff(round->backoff, is_regretted, DECAY_BACKOFF_MOST);
    round->number++;
    round->purged /= 2; /* those of earlier rounds count, but less and less */
    round->regretted = 0;
    round->class_end = 0;
    round->free_bytes_before = round->free_bytes;
    round->free_bytes = 0;
    hak_store_relaxed(&round->due_ns, now + (HAK_WINDOW_NS << round->backoff));
}

uint32_t hak_slabs_decay(hak_owner_t *owner, uint64_t now, uint32_t work) {
    hak_holes_round_t *round = &owner->holes;
    uint32_t done = 0;
    while (done < work && now >= round->due_ns) {
        while (round->left == 0 && round->class_end < HAK_SC_COUNT) {
            round->left = owner->partial_count[round->class_end++];
        }
        if (round->left == 0) {
            round_end(round, now);
        } else if (hak_list_is_empty(&owner->partial[round->class_end - 1])) {
            round->left = 0;
        } else {
            round->left--;
            done += slab_decay(round, hak_slab_in_turn(owner, round->class_end - 1));
        }
    }
    return done;
}

/* Each step goes on with another owner. */
void hak_reclaim_step(hak_tcache_t *tcache) {
    (void)tcache;
    uint64_t now = hak_os_now_ns();
    uint32_t work = 0;
    for (unsigned i = 0; i < DECAY_STEP_OWNERS && work < HOLES_MOST_WORK; i++) {
        hak_owner_t *owner = hak_owner_next(&hak_slabs_decay_cursor);
        while (work < HOLES_MOST_WORK && now >= hak_load_relaxed(&owner->holes.due_ns) &&
               hak_lock_try(&owner->lock)) {
            work += hak_slabs_decay(owner, now, DECAY_SECTION_WORK);
            hak_owner_unlock(owner);
        }
    }
}
