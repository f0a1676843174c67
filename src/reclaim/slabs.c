/* SPDX-License-Identifier: MIT
 *
 * The pool of idle pages of slabs (slab/idle_pages.c): when they are purged, and which.
 *
 *   all of them    malloc_trim
 *   before a peak  runs of PEAK_LEAST_PAGES or more, and at most a share of all spans, of which
 *                  half is due again after each window. An OS page purged and used again costs a
 *                  thousand cycles or more; loads that need their pages again lose 1 to 3 %
 *                  (docs/experiments/0030-spare-before-a-peak.md).
 *   by time        passes over the partial slabs of an owner, at least a window apart. A slab
 *                  unchanged since the last pass is idle: its pages are purged, if those of the
 *                  whole owner are worth it. If many purged slabs are needed again, the pause grows
 *                  (docs/experiments/0027-holes-go-back.md). */
#include "reclaim/slabs.h"

#include "base/knobs.h"
#include "os/os.h"
#include "reclaim/reclaim.h"

enum {
    PURGE_LEAST_DIVISOR = 2, /* of a slab free; less is not worth the calls and the huge pages */
    PURGE_MOST_WORK = 256 * HAK_SLAB_CALL_WORK, /* per call: a millisecond or two */
    PEAK_LEAST_PAGES = 4,
    PEAK_SPANS_DIVISOR = 16, /* of all spans */
    PEAK_LOOK_WORK = 8,      /* a walk of a bitmap */
    PEAK_REFUSED_MOST = 8,
    DECAY_SECTION_WORK = 8 * HAK_SLAB_CALL_WORK,
    DECAY_STEP_OWNERS = 4,
    DECAY_REGRET_DIVISOR = 4, /* of the purged slabs needed again: regretted */
    DECAY_BACKOFF_MOST = 6,   /* doublings of the pause */
};

HAK_LOCKED_STATE size_t hak_slabs_given_back;
HAK_LOCKED_STATE hak_owner_t *hak_slabs_decay_cursor; /* [atomic] visited last */

static bool slab_is_worth_it(const hak_slab_t *slab) {
    size_t free_bytes = (size_t)slab->free_count * slab->block_bytes;
    return free_bytes >= (size_t)slab->units * HAK_UNIT_BYTES / PURGE_LEAST_DIVISOR;
}

/* --- at once ---------------------------------------------------------------------------------- */

/* Refusals end it only if nothing was purged: locked memory, not a locked page. A trim goes on. */
static bool order_goes_on(const hak_slabs_order_t *order) {
    bool is_refused = order->refused >= PEAK_REFUSED_MOST && order->given_back == 0;
    return order->given_back < order->wanted && (order->is_all || order->work > 0) &&
           (!is_refused || order->wanted == SIZE_MAX);
}

static void order_take(hak_slabs_order_t *order, hak_owner_t *owner, hak_slab_t *slab) {
    bool is_done = slab->is_purged || (slab->is_given_back && !order->is_all);
    order->work--;
    if ((is_done && hak_slab_is_idle(slab)) || !(order->is_all || slab_is_worth_it(slab))) {
        return;
    }
    size_t least = order->is_all ? 1 : PEAK_LEAST_PAGES * hak_os_page_bytes();
    hak_slab_purged_t sum = hak_slab_purge(slab, least);
    owner->purge_pass.purged += sum.fresh_bytes != 0;
    order->given_back += sum.fresh_bytes;
    order->refused += sum.refused;
    order->work -= PEAK_LOOK_WORK + (int64_t)sum.work;
}

void hak_slabs_take(hak_owner_t *owner, unsigned sc, uint32_t slabs, hak_slabs_order_t *order) {
    for (; slabs > 0 && order_goes_on(order) && !hak_list_is_empty(&owner->partial[sc]); slabs--) {
        order_take(order, owner, hak_slab_in_turn(owner, sc));
    }
    hak_single_writer_store(&owner->purge_pass.peak_class, (uint8_t)sc);
}

/* From the class where the last call ended, downwards: large classes have long runs. */
static void owner_take(hak_owner_t *owner, void *context) {
    hak_slabs_order_t *order = context;
    unsigned first = hak_single_writer_load(&owner->purge_pass.peak_class);
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

size_t hak_slabs_give_back(size_t bytes, bool is_all) {
    hak_span_stats_t spans;
    hak_span_stats(&spans);
    size_t most = spans.in_use_bytes / PEAK_SPANS_DIVISOR;
    most -= hak_least(most, hak_load_relaxed(&hak_slabs_given_back));
    hak_slabs_order_t order = {.wanted = is_all ? bytes : hak_least(bytes, most),
                               .is_all = is_all,
                               .work = PURGE_MOST_WORK};
    hak_owner_visit(owner_take, &order);
    if (!order.is_all) { /* locked memory: no more for some dozens of windows */
        bool is_refused = order.refused >= PEAK_REFUSED_MOST && order.given_back == 0;
        hak_add_relaxed(&hak_slabs_given_back, is_refused ? SIZE_MAX / 4 : order.given_back);
    }
    return order.given_back;
}

/* --- by time ---------------------------------------------------------------------------------- */

static uint32_t slab_decay(hak_purge_pass_t *pass, hak_slab_t *slab) {
    bool is_idle = hak_slab_is_idle(slab);
    slab->is_refused = slab->is_refused && pass->number != 0; /* retried after minutes */
    bool is_done = slab->is_purged || slab->is_refused || slab->pass == pass->number;
    if (!slab_is_worth_it(slab) || (is_idle && is_done)) {
        return 1; /* or visited in this pass already, as other slabs left the list */
    }
    pass->free_bytes += (size_t)slab->free_count * slab->block_bytes;
    slab->pass = pass->number;
    if (!is_idle) {
        slab->looked = (uint16_t)(slab->free_count + 1);
        slab->is_purged = false;
        slab->is_given_back = false;
        slab->is_refused = false;
    } else if (pass->free_bytes_before > hak_load_relaxed(&hak_knobs.retain_idle_bytes) ||
               hak_load_relaxed(&hak_knobs.is_tight)) {
        hak_slab_purged_t sum = hak_slab_purge(slab, 1);
        pass->purged += sum.bytes != 0;
        pass->regretted += sum.refused != 0; /* a call for nothing, too */
        return 1 + sum.work;
    }
    return 1;
}

static void pass_end(hak_purge_pass_t *pass, uint64_t now) {
    bool is_regretted = pass->regretted > HAK_SLAB_SECTION + pass->purged / DECAY_REGRET_DIVISOR;
    pass->backoff = (uint8_t)hak_regret_backoff(pass->backoff, is_regretted, DECAY_BACKOFF_MOST);
    pass->number++;
    pass->purged /= 2; /* earlier passes count, but less and less */
    pass->regretted = 0;
    pass->class_end = 0;
    pass->free_bytes_before = pass->free_bytes;
    pass->free_bytes = 0;
    hak_store_relaxed(&pass->due_ns, now + (HAK_WINDOW_NS << pass->backoff));
}

HAK_COLD uint32_t hak_slabs_decay(hak_owner_t *owner, uint64_t now, uint32_t work) {
    hak_purge_pass_t *pass = &owner->purge_pass;
    uint32_t done = 0;
    while (done < work && now >= pass->due_ns) {
        while (pass->left == 0 && pass->class_end < HAK_SC_COUNT) {
            pass->left = owner->partial_count[pass->class_end++];
        }
        if (pass->left == 0) {
            pass_end(pass, now);
        } else if (hak_list_is_empty(&owner->partial[pass->class_end - 1])) {
            pass->left = 0;
        } else {
            pass->left--;
            done += slab_decay(pass, hak_slab_in_turn(owner, pass->class_end - 1));
        }
    }
    return done;
}

/* Each step continues with the next owner. */
void hak_reclaim_step(hak_tcache_t *tcache) {
    (void)tcache;
    uint64_t now = hak_os_now_ns();
    uint32_t work = 0;
    for (unsigned i = 0; i < DECAY_STEP_OWNERS && work < PURGE_MOST_WORK; i++) {
        hak_owner_t *owner = hak_owner_next(&hak_slabs_decay_cursor);
        while (work < PURGE_MOST_WORK && now >= hak_load_relaxed(&owner->purge_pass.due_ns) &&
               hak_lock_try(&owner->lock)) {
            work += hak_slabs_decay(owner, now, DECAY_SECTION_WORK);
            hak_owner_unlock(owner);
        }
    }
}
