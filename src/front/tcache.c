/* SPDX-License-Identifier: MIT
 *
 * Creation, attachment, flush and reuse of tcaches. */
#include "front/fast.h"

#include "base/knobs.h"
#include "front/budget.h"
#include "front/flush.h"
#include "front/left.h"
#include "os/lock.h"
#include "os/os.h"

#include <string.h>

HAK_TLS uintptr_t hak_tcache_offset;
HAK_TLS struct hak_thread_self hak_thread_self;

HAK_LOCKED_STATE hak_tcache_t *hak_all_tcaches;    /* [atomic] newest first */
HAK_LOCKED_STATE uint32_t hak_tcache_count;        /* [lock REGISTRY] */
HAK_LOCKED_STATE hak_tcache_t *hak_unused_tcaches; /* [lock REGISTRY] newest first */
HAK_LOCKED_STATE uint32_t hak_tcache_search_count; /* [lock REGISTRY] tcaches at the next search */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_tcache_t hak_tcache_fallback; /* [lock FALLBACK] */

HAK_LOCKED_STATE hak_tcache_group_t *hak_tcache_group; /* [lock REGISTRY] the one in use */
HAK_LOCKED_STATE unsigned hak_tcache_group_left;       /* [lock REGISTRY] tcaches left in it */
/* Of the first tcache, which is no group's, and of the fallback. */
HAK_LARGE_STATE(5) HAK_LINE_ALIGNED hak_bin_side_t hak_tcache_first_far[HAK_SIDES_FAR];
static HAK_LARGE_STATE(4) HAK_LINE_ALIGNED hak_bin_side_t tcache_fallback_far[HAK_SIDES_FAR];

void hak_bin_first_use(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    tcache->begun |= 1ull << sc;
    side->capacity = hak_bin_first_capacity(tcache, sc);
    side->total = side->capacity;
    side->want = (uint16_t)hak_bin_initial_want(side->capacity);
    tcache->bin[sc].slots_left = side->total;
    tcache->bin[sc].size_reciprocal = hak_sc_factor(&hak_sc_info[sc]);
}

void hak_bin_end(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    side->capacity = side->total = side->want = side->idle = 0;
    side->overflows = 0;
    side->has_sent = false;
    tcache->bin[sc].slots_left = 0;
    tcache->bin[sc].size_reciprocal = 0;
}

static void tcache_set_home(hak_tcache_t *tcache, hak_owner_t *home) {
    tcache->home = home;
    hak_single_writer_store(&tcache->first_entry, home->first_entry);
}

/* All bins are empty. */
static void bins_end(hak_tcache_t *tcache) {
    hak_budget_give(tcache, tcache->drawn);
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        hak_bin_end(tcache, hak_ctz(begun));
    }
    tcache->begun = 0;
}

/* REGISTRY is held. The first tcache, all that most processes have, is alone. */
static hak_tcache_t *tcache_cut(hak_bin_side_t **far_side) {
    if (hak_tcache_count == 0) {
        *far_side = hak_tcache_first_far;
        return hak_meta_alloc(sizeof(hak_tcache_t));
    }
    if (hak_tcache_group_left == 0) {
        hak_tcache_group_t *group = hak_tcache_group_begin();
        if (group == NULL) {
            return NULL;
        }
        hak_tcache_group = group;
        hak_tcache_group_left = HAK_GROUP_TCACHES;
    }
    unsigned i = HAK_GROUP_TCACHES - hak_tcache_group_left--;
    *far_side = hak_tcache_group->far_side[i];
    return &hak_tcache_group->tcache[i];
}

/* Finds an attached tcache that the calling thread has lost, by the address of its TLS word, which
 * no other living thread has. The main thread's TLS is set up afresh after relocation, when IFUNC
 * resolvers may have allocated. A thread whose first use was in the last round of its destructors
 * ends without its exit hook; a later thread with TLS at the same address takes its tcache. IDs
 * would not do: the child of a bare clone() in a new PID namespace may reuse an ID of the parent's.
 * One that its thread left in the middle of a change is nobody's any more (tcache_abandon).
 * A search that finds nothing is not repeated before the tcaches are a quarter more: about five
 * steps per tcache in all. REGISTRY is held. */
static hak_tcache_t *tcache_lost(void) {
    hak_tcache_t *found = NULL;
    if (hak_unused_tcaches == NULL && hak_tcache_count >= hak_tcache_search_count) {
        found = hak_load_acquire(&hak_all_tcaches); /* pairs TCACHES */
        while (found != NULL && (!found->is_attached || found->thread != &hak_tcache_offset ||
                                 found->changing != 0)) {
            found = found->next;
        }
        if (found == NULL) {
            hak_tcache_search_count = hak_tcache_count + hak_tcache_count / 4 + 1;
        }
    }
    return found;
}

/* An unused tcache, or a new one with its far sides. REGISTRY is held. */
static hak_tcache_t *tcache_find(hak_bin_side_t **far_side) {
    hak_tcache_t *tcache = hak_unused_tcaches;
    if (tcache != NULL) {
        hak_tcache_reuse(tcache);
        if (tcache->changing != 0) {
            hak_tcache_forget(tcache);
        }
        return tcache;
    }
    tcache = tcache_cut(far_side);
    hak_tcache_count += tcache != NULL;
    return tcache;
}

typedef struct arrival {
    const void *thread; /* address of its TLS word; NULL: a second tcache, which is never lost */
    uint32_t thread_id;
    uint16_t initial_bytes;
    hak_owner_t *home;
} arrival_t;

/* REGISTRY is held, or nobody else can find the tcache yet. A lost tcache keeps its home and its
 * second tcache. A signal handler that allocates afterwards finds this tcache as lost. */
static void tcache_enter(hak_tcache_t *tcache, const arrival_t *arrival, bool is_lost) {
    if (!is_lost) {
        tcache_set_home(tcache, arrival->home);
        tcache->second = NULL;
        tcache->initial_bytes = arrival->initial_bytes;
        tcache->taken_bytes = tcache->given_bytes = 0;
        if (tcache->tally != NULL) {
            *tcache->tally = (hak_tally_t){0};
        }
    }
    tcache->thread_id = arrival->thread_id;
    tcache->thread = arrival->thread;
    tcache->event_step = 0; /* of an earlier thread, which may have ended inside an operation */
    tcache->is_refilling = false;
    tcache->changing = 0;
    tcache->is_attached = true;
}

/* One section: of all that threads share at their start, this lock is taken most. A new tcache is
 * entered without it, as its first touch costs a page fault. NULL: metadata is out. */
static HAK_COLD hak_tcache_t *tcache_attach(hak_partition_t partition, const void *thread) {
    hak_bin_side_t *far_side = NULL; /* of a new one */
    hak_budget_join(); /* first, so that the child of a fork knows that there may be a user */
    arrival_t arrival = {thread, hak_os_thread_id(), (uint16_t)hak_budget_initial_bytes(),
                         hak_owner_join(partition)};
    if (arrival.home == NULL) {
        hak_budget_part();
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_tcache_t *lost = thread != NULL ? tcache_lost() : NULL;
    hak_tcache_t *tcache = lost != NULL ? lost : tcache_find(&far_side);
    if (tcache != NULL && far_side == NULL) {
        tcache_enter(tcache, &arrival, lost != NULL);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    if (lost != NULL || tcache == NULL) {
        hak_owner_part(arrival.home);
        hak_budget_part();
    } else if (far_side != NULL) {
        tcache->far_side = far_side;
        tcache_enter(tcache, &arrival, false);
        tcache->next = hak_load_relaxed(&hak_all_tcaches);
        while (!hak_cas_release(&hak_all_tcaches, &tcache->next, tcache)) { /* pairs TCACHES */
        }
        if (tcache->next != NULL) {
            hak_store_release(&tcache->next->before, tcache); /* pairs TCACHES */
        }
    }
    if (HAK_HARDEN && tcache != NULL) {
        hak_quarantine_attach(tcache);
    }
    return tcache;
}

uintptr_t hak_partition_enter(hak_partition_t partition) {
    hak_tcache_t *tcache = HAK_HARDEN ? hak_tcache_own() : NULL;
    uintptr_t before = hak_tcache_offset;
    if (tcache == NULL || hak_tcache_partition(tcache) == partition) {
        return before;
    }
    hak_tcache_t *other = tcache->second;
    if (HAK_UNLIKELY(other == NULL)) {
        other = tcache_attach(HAK_PARTITION_PLAIN, NULL);
        if (other == NULL) {
            return before;
        }
        other->second = tcache;
        tcache->second = other;
    }
    hak_tcache_offset = (uintptr_t)other - hak_pagemap_base();
    return before;
}

HAK_COLD hak_tcache_t *hak_tcache_attach(void) {
    hak_tcache_t *tcache = tcache_attach(HAK_PARTITION_ANY, &hak_tcache_offset);
    if (tcache != NULL) {
        hak_tcache_offset = (uintptr_t)tcache - hak_pagemap_base();
    }
    return tcache;
}

void hak_bin_flush(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    /* else more blocks came out than went in */
    hak_require(bin->slots_left <= side->total, HAK_FATAL_DOUBLE_FREE, bin->head);
    hak_blocks_t blocks = {.head = bin->head, .count = (uint32_t)(side->total - bin->slots_left)};
    hak_store_hot(&bin->head, NULL);
    bin->slots_left = hak_bin_capacity(side);
    side->total = bin->slots_left;
    hak_tcache_flush_list(tcache, sc, blocks);
}

static void flush_one(hak_tcache_t *tcache) {
    if (hak_quarantine_of(tcache) != NULL) {
        hak_quarantine_flush(tcache);
    }
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        hak_bin_flush(tcache, hak_ctz(begun));
    }
}

void hak_tcache_flush(hak_tcache_t *tcache) {
    hak_tcache_change(tcache, 1);
    for (hak_tcache_t *t = tcache; t != NULL; t = hak_tcache_behind(t, tcache)) {
        flush_one(t);
    }
    hak_tcache_change(tcache, -1);
}

static bool is_one_short(const void *block, int32_t count, unsigned sc) {
    uintptr_t map = hak_pagemap_base();
    for (; block != NULL && (uintptr_t)block >> 48 == 0 && count > 0; count--) {
        uint32_t entry = hak_pagemap_at(map, hak_pagemap_index(map, block));
        if (!hak_slab_is_entry(entry) || hak_sc_of_entry(entry) != sc) {
            return false; /* an overwritten link: the flush reports it */
        }
        block = hak_link_get(block);
    }
    return count == 1 && block == NULL;
}

/* A handler ended the thread between the stores that move a block and count it: it is lost. */
static void count_interrupted(hak_tcache_t *tcache) {
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        unsigned sc = hak_ctz(begun);
        hak_bin_t *bin = &tcache->bin[sc];
        int32_t count = hak_bin_side(tcache, sc)->total - bin->slots_left;
        if (is_one_short(bin->head, count, sc)) {
            bin->slots_left++;
            return;
        }
    }
}

static void tcache_end(hak_tcache_t *tcache) {
    count_interrupted(tcache);
    flush_one(tcache);
    bins_end(tcache);
    hak_budget_part();
    hak_owner_part(tcache->home);
    hak_wanted_serve();
}

/* Whether a trim is due. */
static bool tcache_part(hak_tcache_t *tcache) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    tcache->is_attached = false;
    bool is_due = hak_tcache_unuse(tcache);
    hak_lock_release(HAK_LOCK_REGISTRY);
    return is_due;
}

/* A lock that the thread held stays locked: then others are hardly able to go on, and nothing is
 * tidied up. */
static HAK_COLD void tcache_abandon(hak_tcache_t *tcache) {
    tcache->changing = 1; /* for good */
    if (hak_lock_holds_none()) {
        hak_budget_give(tcache, tcache->drawn);
        hak_budget_part();
        hak_owner_part(tcache->home);
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        tcache->thread = NULL;
        tcache->thread_id = 0;
        tcache->is_attached = false;
        hak_lock_release(HAK_LOCK_REGISTRY);
    }
}

bool hak_tcache_detach(hak_tcache_t *tcache) {
    hak_tcache_t *second = hak_tcache_behind(tcache, tcache);
    bool is_inside = tcache->changing != 0 || (second != NULL && second->changing != 0) ||
                     hak_in_unlocked_update != 0 || !hak_lock_holds_none();
    hak_tcache_offset = 0;
    if (HAK_UNLIKELY(is_inside)) {
        tcache_abandon(tcache);
        if (second != NULL) {
            tcache_abandon(second);
        }
        return false;
    }
    tcache_end(tcache);
    if (second != NULL) {
        tcache_end(second);
        (void)tcache_part(second);
    }
    return tcache_part(tcache);
}

hak_owner_t *hak_tcache_lock_home(hak_tcache_t *tcache) {
    hak_owner_t *owner = hak_owner_lock(tcache->home);
    if (HAK_UNLIKELY(owner != tcache->home)) {
        if (tcache != &hak_tcache_fallback) { /* the fallback is no user of its home */
            hak_owner_move(tcache->home, owner);
        }
        tcache_set_home(tcache, owner);
    }
    return owner;
}

/* --- fallback, visits, fork ------------------------------------------------------------------- */

void hak_tcache_fallback_prepare(void) {
    if (hak_tcache_fallback.far_side == NULL) {
        hak_tcache_fallback.far_side = tcache_fallback_far;
    }
}

HAK_LOCKED_STATE uint64_t hak_fallback_signals; /* [lock FALLBACK] its holder's mask before */

hak_tcache_t *hak_tcache_fallback_lock(void) {
    uint64_t signals = hak_os_block_signals();
    hak_lock_acquire(HAK_LOCK_FALLBACK);
    hak_fallback_signals = signals;
    if (hak_tcache_fallback.first_entry == 0) {
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        hak_tcache_fallback_prepare();
        hak_lock_release(HAK_LOCK_REGISTRY);
        hak_tcache_fallback.initial_bytes = HAK_BIN_INITIAL_BYTES;
        tcache_set_home(&hak_tcache_fallback, hak_owner_start());
    }
    hak_count(fallback_use);
    return &hak_tcache_fallback;
}

void hak_tcache_fallback_unlock(void) {
    uint64_t signals = hak_fallback_signals;
    hak_lock_release(HAK_LOCK_FALLBACK);
    hak_os_restore_signals(signals);
}

/* The thread's hit paths write the bins meanwhile. */
HAK_UNORDERED void hak_tcache_read(hak_tcache_t *tcache, hak_tcache_view_t *view) {
    const volatile hak_tcache_t *now = tcache;
    view->first_entry = now->first_entry;
    view->drawn = now->drawn;
    view->event_step = now->event_step;
    view->second = now->second;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const volatile hak_bin_side_t *side = hak_bin_side(tcache, sc);
        int64_t cached = (int64_t)side->total - now->bin[sc].slots_left;
        view->cached[sc] = cached > 0 ? (uint32_t)cached : 0;
        view->quarantine[sc] =
            hak_quarantine_of(tcache) != NULL ? hak_quarantine_count(tcache, sc) : 0;
    }
}

static uint64_t tally_cached(hak_tcache_t *tcache) {
    hak_tcache_view_t view;
    uint64_t bytes = 0;
    hak_tcache_read(tcache, &view);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        bytes += ((uint64_t)view.cached[sc] + view.quarantine[sc]) * hak_sc_info[sc].bytes;
    }
    return bytes;
}

/* The hit path counts nothing: what a thread allocated and freed follows from what its bins got and
 * gave back, and from what is in them. Their difference is exact; pairs that a bin served by itself
 * are in neither. Of the growth, blocks that came to the bins and stay there count for neither
 * side, nor do those that were there and left. */
void hak_tally_update(hak_tcache_t *tcache) {
    hak_tally_t *tally = tcache->tally;
    hak_tcache_change(tcache, 1); /* else a signal handler that asks would count the same again */
    uint64_t cached = tally_cached(tcache);
    uint64_t taken = tcache->taken_bytes - tally->taken, given = tcache->given_bytes - tally->given;
    uint64_t more = hak_excess(cached, tally->cached), less = hak_excess(tally->cached, cached);
    uint64_t stays = hak_least(more, taken), leaves = hak_least(less, given);
    hak_single_writer_add(&tally->allocated, taken - stays + less - leaves);
    hak_single_writer_add(&tally->deallocated, given - leaves + more - stays);
    tally->taken = tcache->taken_bytes;
    tally->given = tcache->given_bytes;
    tally->cached = cached;
    hak_tcache_change(tcache, -1);
}

void hak_tcache_visit(bool (*visit)(hak_tcache_t *, void *), void *context) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_tcache_fallback_prepare();
    bool goes_on = visit(&hak_tcache_fallback, context);
    /* pairs TCACHES */
    for (hak_tcache_t *t = hak_load_acquire(&hak_all_tcaches); goes_on && t != NULL; t = t->next) {
        goes_on = visit(t, context);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
}
