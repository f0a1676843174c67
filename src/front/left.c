/* SPDX-License-Identifier: MIT
 *
 * What a fork leaves in the child: tcaches of threads that are gone. */
#include "front/left.h"
#include "front/budget.h"
#include "front/fast.h"
#include "front/quarantine.h"
#include "os/libc.h"
#include "os/os.h"
#include "span/span.h"

HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_tcache_lost[HAK_SC_COUNT]; /* [lock REGISTRY] */

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
        tcache->second = hak_unused_tcaches;
        hak_unused_tcaches = tcache;
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
