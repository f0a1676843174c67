/* SPDX-License-Identifier: MIT
 *
 * Tcaches of threads that are gone: what a fork leaves in the child, and the memory of many. */
#include "front/left.h"
#include "front/budget.h"
#include "front/fast.h"
#include "front/quarantine.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/span.h"

#include <string.h>

HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_tcache_lost[HAK_SC_COUNT]; /* [lock REGISTRY] */

HAK_LOCKED_STATE hak_tcache_group_t *hak_spare_groups; /* [lock REGISTRY] */
HAK_LOCKED_STATE uint32_t hak_tcache_parted;           /* [lock REGISTRY] unused since a trim */

enum { PARTED_LEAST = 256, PARTED_SHARE = 4 };

/* --- groups, under HAK_LOCK_REGISTRY ---------------------------------------------------------- */

/* The further behind in its group a tcache lies, the closer are its far sides. NULL: the first one,
 * which is no group's. */
static hak_tcache_group_t *group_of(hak_tcache_t *tcache) {
    enum { STEP = sizeof(hak_tcache_t) - HAK_SIDES_FAR * sizeof(hak_bin_side_t) };
    uintptr_t end = (uintptr_t)tcache + HAK_GROUP_TCACHES * sizeof *tcache;
    bool is_first = tcache->far_side == hak_tcache_first_far;
    return is_first ? NULL : (void *)(tcache - (end - (uintptr_t)tcache->far_side) / STEP);
}

bool hak_tcache_unuse(hak_tcache_t *tcache) {
    hak_tcache_group_t *group = group_of(tcache);
    tcache->second = hak_unused_tcaches;
    hak_unused_tcaches = tcache;
    if (group != NULL) {
        group->unused++;
        hak_tcache_parted++;
    }
    return hak_tcache_parted >= hak_most(PARTED_LEAST, hak_tcache_count / PARTED_SHARE);
}

void hak_tcache_reuse(hak_tcache_t *tcache) {
    hak_tcache_group_t *group = group_of(tcache);
    hak_unused_tcaches = tcache->second;
    if (group != NULL) {
        group->unused--;
        hak_tcache_parted -= hak_tcache_parted != 0;
    }
}

/* Whole OS pages inside, less the last fields. */
static char *group_inner(hak_tcache_group_t *group, size_t *bytes) {
    char *from = (char *)hak_align_up((uintptr_t)group, hak_os_page_bytes());
    uintptr_t end = hak_align_down((uintptr_t)&group->next, hak_os_page_bytes());
    *bytes = hak_excess(end, (uintptr_t)from);
    return from;
}

hak_tcache_group_t *hak_tcache_group_begin(void) {
    hak_tcache_group_t *group = hak_spare_groups;
    size_t bytes;
    if (group == NULL) {
        return hak_meta_alloc(sizeof *group);
    }
    hak_spare_groups = group->next;
    group->next = NULL;
    group_inner(group, &bytes);
    hak_meta_note_used(bytes);
    return group;
}

#define FOLD(name, text) hak_single_writer_add(&to->name, from->name);

/* Statistics add the counters of all tcaches. FALLBACK is held. */
static void fold(hak_tcache_t *tcache) {
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
}

/* Threads that start enter the list before its head, without the lock. The head's group stays. */
static hak_tcache_group_t *groups_take(void) {
    hak_tcache_group_t *taken = NULL;
    hak_tcache_t *t = hak_load_acquire(&hak_all_tcaches); /* pairs TCACHES */
    const hak_tcache_group_t *newest = t == NULL ? NULL : group_of(t);
    while (t != NULL && t->next != NULL) {
        hak_tcache_t *next = t->next;
        hak_tcache_group_t *group = group_of(next);
        if (group == NULL || group == newest || group->unused != HAK_GROUP_TCACHES) {
            t = next;
            continue;
        }
        fold(next);
        if (next->tally != NULL) {
            *next->tally = (hak_tally_t){0};
            hak_meta_give(next->tally, HAK_TALLY_LINES);
            next->tally = NULL;
        }
        t->next = next->next;
        hak_tcache_count--;
        if (next == group->tcache) {
            group->next = taken;
            taken = group;
        }
    }
    for (hak_tcache_t **link = &hak_unused_tcaches; *link != NULL;) {
        hak_tcache_group_t *group = group_of(*link);
        bool goes = group != NULL && group != newest && group->unused == HAK_GROUP_TCACHES;
        link = goes ? link : &(*link)->second;
        *link = goes ? (*link)->second : *link;
    }
    hak_tcache_parted = 0;
    hak_tcache_search_count = 0;
    return taken;
}

void hak_tcache_trim(void) {
    if (HAK_HARDEN) {
        return;
    }
    hak_lock_acquire(HAK_LOCK_FALLBACK);
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_tcache_fallback_prepare();
    hak_tcache_group_t *group = groups_take();
    hak_lock_release(HAK_LOCK_REGISTRY);
    hak_lock_release(HAK_LOCK_FALLBACK);
    while (group != NULL) { /* ours alone, as hooks of the C library's functions may allocate */
        hak_tcache_group_t *next = group->next;
        size_t bytes;
        char *inner = group_inner(group, &bytes);
        memset(group, 0, sizeof *group);
        if (bytes != 0) {
            hak_os_purge(inner, bytes);
        }
        hak_meta_note_used((size_t)0 - bytes);
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        group->next = hak_spare_groups;
        hak_spare_groups = group;
        hak_lock_release(HAK_LOCK_REGISTRY);
        group = next;
    }
}

/* --- fork ------------------------------------------------------------------------------------- */

/* Neither links nor counts are sure. */
void hak_tcache_forget(hak_tcache_t *tcache) {
    hak_tcache_view_t view;
    hak_tcache_look(tcache, &view);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint32_t lost = view.cached[sc] + view.quarantine[sc];
        hak_single_writer_store(&hak_tcache_lost[sc], hak_tcache_lost[sc] + lost);
        tcache->bin[sc].head = NULL;
        hak_bin_end(tcache, sc);
    }
    if (HAK_HARDEN) {
        hak_quarantine_forget(tcache);
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
    if (is_clean) {
        hak_span_after_fork();
        messages_mend();
    }
    hak_tcache_t *self = hak_tcache_self(hak_pagemap_base());
    bool has_self = !hak_tcache_is_empty(self);
    if (has_self) {
        self->thread_id = hak_os_thread_id();
    }
    hak_tcache_t *second = HAK_HARDEN && has_self ? self->second : NULL;
    if (second != NULL) {
        second->thread_id = self->thread_id;
    }
    if (HAK_HARDEN && has_self && self->quarantine != NULL) {
        hak_quarantine_attach(self); /* the parent knows its own random numbers */
    }
    if (second != NULL && second->quarantine != NULL) {
        hak_quarantine_attach(second);
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
