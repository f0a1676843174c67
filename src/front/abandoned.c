/* SPDX-License-Identifier: MIT
 *
 * Tcaches of threads that are gone: what a fork leaves in the child, and the memory of many. */
#include "front/abandoned.h"
#include "front/budget.h"
#include "front/fast.h"
#include "front/quarantine.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/span.h"

#include <string.h>

HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_tcache_lost[HAK_SC_COUNT]; /* [lock REGISTRY] */

HAK_LOCKED_STATE hak_tcache_group_t *hak_spare_groups;                    /* [lock REGISTRY] */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_tcache_group_t *hak_idle_groups;  /* [atomic] */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_tcache_group_t *hak_going_groups; /* [lock REGISTRY] */
/* [lock REGISTRY] the address of its TLS word */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) const void *hak_going_thread;
HAK_LOCKED_STATE uint32_t hak_tcache_unused_since_trim; /* [lock REGISTRY] unused since a trim */
HAK_LOCKED_STATE uint32_t hak_tcache_generation;        /* [atomic] */

enum { UNUSED_LEAST = 256, UNUSED_SHARE = 4 };

/* --- groups, under HAK_LOCK_REGISTRY ---------------------------------------------------------- */

/* The further behind in its group a tcache lies, the closer are its far sides. NULL: the first one,
 * which is no group's. */
static hak_tcache_group_t *group_of(hak_tcache_t *tcache) {
    enum { STEP = sizeof(hak_tcache_t) - HAK_SIDES_FAR * sizeof(hak_bin_side_t) };
    uintptr_t end = (uintptr_t)tcache + HAK_GROUP_TCACHES * sizeof *tcache;
    bool is_first = tcache->far_side == hak_tcache_first_far;
    return is_first ? NULL : (void *)(tcache - (end - (uintptr_t)tcache->far_side) / STEP);
}

/* A group stays in the list of idle ones until a trim, also if a thread takes a tcache of it. A
 * list is linked back last where a tcache enters, and first where one leaves: the child of a fork
 * that is not clean may get it in between. */
bool hak_tcache_unuse(hak_tcache_t *tcache) {
    hak_tcache_group_t *group = group_of(tcache);
    tcache->ahead = NULL;
    tcache->second = hak_unused_tcaches;
    hak_unused_tcaches = tcache;
    if (tcache->second != NULL) {
        tcache->second->ahead = tcache;
    }
    if (group != NULL) {
        group->unused++;
        hak_tcache_unused_since_trim++;
    }
    if (group != NULL && group->unused == HAK_GROUP_TCACHES && !group->is_idle) {
        group->is_idle = true;
        group->next = hak_idle_groups;
        hak_store_relaxed(&hak_idle_groups, group);
    }
    return hak_tcache_unused_since_trim >= hak_most(UNUSED_LEAST, hak_tcache_count / UNUSED_SHARE);
}

void hak_tcache_reuse(hak_tcache_t *tcache) {
    hak_tcache_group_t *group = group_of(tcache);
    if (tcache->second != NULL) {
        tcache->second->ahead = tcache->ahead;
    }
    *(tcache->ahead != NULL ? &tcache->ahead->second : &hak_unused_tcaches) = tcache->second;
    if (group != NULL) {
        group->unused--;
        hak_tcache_unused_since_trim -= hak_tcache_unused_since_trim != 0;
    }
}

hak_tcache_group_t *hak_tcache_group_begin(void) {
    hak_tcache_group_t *group = hak_spare_groups;
    if (group == NULL) {
        return hak_meta_alloc(sizeof *group);
    }
    hak_spare_groups = group->next;
    hak_meta_note_used((ptrdiff_t)group->purged_bytes);
    return group;
}

/* --- trim ------------------------------------------------------------------------------------- */

#define FOLD(name, text) hak_single_writer_add(&to->name, from->name);

/* Threads that start enter the list before its head, without the lock, and then are `before` it. */
static bool group_may_go(hak_tcache_group_t *group) {
    bool may_go = group->unused == HAK_GROUP_TCACHES;
    for (unsigned i = 0; may_go && i < HAK_GROUP_TCACHES; i++) {
        may_go = hak_load_acquire(&group->tcache[i].before) != NULL; /* pairs TCACHES */
    }
    return may_go;
}

/* Statistics add the counters of all tcaches. FALLBACK is held. */
static void tcache_take(hak_tcache_t *tcache) {
    if (tcache->changing != 0) {
        hak_tcache_forget(tcache);
    }
    const hak_thread_counters_t *from = &tcache->counters;
    hak_thread_counters_t *to = &hak_tcache_fallback.counters;
    HAK_THREAD_COUNTERS(FOLD)
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_bin_counters_t *from = &hak_bin_side(tcache, sc)->counters;
        hak_bin_counters_t *to = &hak_bin_side(&hak_tcache_fallback, sc)->counters;
        HAK_BIN_COUNTERS(FOLD)
    }
    if (tcache->tally != NULL) {
        *tcache->tally = (hak_tally_t){0};
        hak_meta_give(tcache->tally, HAK_TALLY_LINES);
    }
    if (tcache->next != NULL) {
        hak_store_relaxed(&tcache->next->before, tcache->before);
    }
    tcache->before->next = tcache->next;
    hak_tcache_reuse(tcache);
    hak_tcache_count--;
}

/* Looks at a few groups. Those that may not go come here again when their tcaches were used. False:
 * there was none. FALLBACK and REGISTRY are held. */
static bool groups_take(void) {
    unsigned i = 0;
    for (; i < HAK_TRIM_GROUPS && hak_idle_groups != NULL; i++) {
        hak_tcache_group_t *group = hak_idle_groups;
        hak_store_relaxed(&hak_idle_groups, group->next);
        group->is_idle = false;
        if (group_may_go(group)) {
            for (unsigned k = 0; k < HAK_GROUP_TCACHES; k++) {
                tcache_take(&group->tcache[k]);
            }
            group->next = hak_going_groups;
            hak_going_groups = group;
        }
    }
    hak_tcache_unused_since_trim = 0;
    hak_tcache_search_count = (uint32_t)hak_least(hak_tcache_search_count, 2 * hak_tcache_count);
    return i != 0;
}

/* Bytes that need no memory any more: whole OS pages, less the last fields. */
static size_t group_clear(hak_tcache_group_t *group) {
    char *from = (char *)hak_align_up((uintptr_t)group, hak_os_page_bytes());
    char *end = (char *)hak_align_down((uintptr_t)&group->next, hak_os_page_bytes());
    if (from >= end || !hak_os_purge(from, (size_t)(end - from))) {
        from = end = (char *)&group->next;
    }
    memset(group, 0, (size_t)(from - (char *)group));
    memset(end, 0, (size_t)((char *)&group->next - end));
    return (size_t)(end - from);
}

/* Without locks, as hooks of the C library's functions may allocate. In a fork that comes in
 * between, the child does it again. */
static void groups_clear(hak_tcache_group_t *group) {
    for (hak_tcache_group_t *next; group != NULL; group = next) {
        size_t bytes = group_clear(group);
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        hak_going_groups = next = group->next;
        group->next = hak_spare_groups;
        group->purged_bytes = bytes;
        hak_spare_groups = group;
        hak_meta_note_used(-(ptrdiff_t)bytes);
        hak_lock_release(HAK_LOCK_REGISTRY);
    }
}

/* Signals are blocked by piece: a handler that allocates may need the locks. No more pieces than
 * the tcaches at first have: others may part meanwhile. */
void hak_tcache_trim(void) {
    bool goes_on = !HAK_HARDEN && hak_load_relaxed(&hak_idle_groups) != NULL;
    for (uint32_t piece = 0, pieces = 1; goes_on && piece < pieces; piece++) {
        uint64_t signals = hak_os_block_signals();
        hak_lock_acquire(HAK_LOCK_FALLBACK);
        hak_add_relaxed(&hak_tcache_generation, 1);
        hak_fence_release(); /* pairs GENERATION: no lock orders it before what changes now */
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        hak_tcache_fallback_prepare();
        pieces = piece == 0 ? 1 + hak_tcache_count / (HAK_TRIM_GROUPS * HAK_GROUP_TCACHES) : pieces;
        goes_on = hak_going_groups == NULL && groups_take(); /* else another trim goes on */
        hak_tcache_group_t *taken = goes_on ? hak_going_groups : NULL;
        hak_going_thread = goes_on ? &hak_tcache_offset : hak_going_thread;
        hak_lock_release(HAK_LOCK_REGISTRY);
        (void)hak_add_release(&hak_tcache_generation, 1); /* pairs GENERATION */
        hak_lock_release(HAK_LOCK_FALLBACK);
        groups_clear(taken);
        hak_os_restore_signals(signals);
    }
}

/* --- fork ------------------------------------------------------------------------------------- */

/* Neither links nor counts are sure. */
void hak_tcache_forget(hak_tcache_t *tcache) {
    hak_tcache_view_t view;
    hak_tcache_read(tcache, &view);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint32_t lost = view.cached[sc] + view.quarantine[sc];
        hak_single_writer_store(&hak_tcache_lost[sc], hak_tcache_lost[sc] + lost);
        tcache->bin[sc].head = NULL;
        hak_bin_end(tcache, sc);
    }
    hak_quarantine_t *quarantine = hak_quarantine_of(tcache);
    if (quarantine != NULL) {
        memset(quarantine->slot, 0, sizeof quarantine->slot);
    }
    tcache->begun = 0;
}

enum { MEND_MOST = 16 }; /* slabs one by one: each visits all superslabs */

/* Completes messages of threads that are gone (SLAB-7), also of those that were gone in the parent,
 * if the fork that made it was not clean. An owner that stays locked has taken its queue, perhaps,
 * in which slabs of others waited: then all are queued anew. */
static void messages_mend(void) {
    unsigned noted = 0;
    for (hak_tcache_t *t = hak_all_tcaches; t != NULL; t = t->next) {
        noted += hak_load_acquire(&t->sending) != NULL; /* pairs REMOTE-5 */
    }
    bool is_all = noted > MEND_MOST || hak_lock_fork_lacks_any() ||
                  hak_load_acquire(&hak_remote_unnoted) != 0; /* pairs REMOTE-5 */
    if (is_all) {
        hak_remote_mend(NULL);
        hak_store_relaxed(&hak_remote_unnoted, 0);
    }
    for (hak_tcache_t *t = hak_all_tcaches; t != NULL && noted != 0; t = t->next) {
        const hak_slab_t *sending = t->sending;
        if (sending != NULL) { /* a store would copy the OS page */
            t->sending = NULL;
            if (!is_all) {
                hak_remote_mend(sending);
            }
        }
    }
}

/* The tcache's thread is gone. */
static void tcache_leave(hak_tcache_t *tcache, bool is_clean) {
    tcache->is_attached = false;
    tcache->thread_id = 0;
    tcache->drawn = 0;
    if (is_clean && tcache->far_side != NULL) { /* so is the list; else it was being made */
        tcache->changing = 1;
        hak_tcache_unuse(tcache);
    }
}

/* Other threads' bins may be in the middle of a change, so they are not read: their
 * blocks are lost to the child, whose next threads use the tcaches. */
void hak_tcache_after_fork(bool is_clean) {
    hak_tcache_generation += hak_tcache_generation % 2; /* its trim is gone */
    if (is_clean) {
        hak_span_after_fork();
        messages_mend();
    }
    /* else a hook forked, and its caller goes on */
    if (hak_going_groups != NULL && hak_going_thread != &hak_tcache_offset) {
        groups_clear(is_clean ? hak_going_groups : NULL);
        hak_going_groups = NULL; /* else they may be half taken */
    }
    hak_tcache_t *self = hak_tcache_self(hak_pagemap_base());
    bool has_self = !hak_tcache_is_empty(self);
    HAK_KNOWN(self != NULL);
    const hak_tcache_t *second = has_self ? hak_tcache_behind(self, self) : NULL;
    for (hak_tcache_t *t = has_self ? self : NULL; t != NULL; t = hak_tcache_behind(t, self)) {
        t->thread_id = hak_os_thread_id();
        if (hak_quarantine_of(t) != NULL) {
            hak_quarantine_attach(t); /* the parent knows its own random numbers */
        }
    }
    if (hak_tcache_count <= has_self && hak_load_relaxed(&hak_counters.fallback_use) == 0 &&
        (hak_load_relaxed(&hak_budget_threads) <= has_self || !hak_libc_left_threads)) {
        return; /* there was never another thread, and none was about to attach */
    }
    for (hak_tcache_t *t = hak_all_tcaches; t != NULL; t = t->next) {
        if (t != self && t != second && t->is_attached) {
            tcache_leave(t, is_clean);
        }
    }
    hak_budget_after_fork(has_self ? self : NULL, &hak_tcache_fallback);
    hak_owner_after_fork(has_self ? self->home : NULL);
    if (second != NULL) {
        hak_add_relaxed(&second->home->users, 1);
    }
}
