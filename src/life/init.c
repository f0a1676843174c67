/* SPDX-License-Identifier: MIT
 *
 * Process start: runs once, at load or on the first slow path before that, perhaps before libc's
 * own initialisers. Order: facts, wiring, options, then what depends on them; handlers last. */
#include "conf/conf.h"
#include "front/attach.h"
#include "front/budget.h"
#include "front/event.h"
#include "front/fast.h"
#include "front/flush.h"
#include "guard/guard.h"
#include "large/large.h"
#include "life/life.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/optional.h"
#include "profile/profile.h"
#include "reclaim/reclaim.h"

#include "base/check.h"
#include "base/knobs.h"

enum { START_NOT_YET, START_RUNNING, START_DONE };

static uint32_t start_state;     /* [atomic] */
static const void *start_thread; /* [atomic] the thread that runs it: hooks may allocate */

static void secrets_init(void) {
    uint64_t random[3];
    hak_os_random(random, sizeof random);
    hak_secret.link = random[0] & ~(uint64_t)(HAK_BLOCK_ALIGN - 1);
    hak_secret.canary = random[1];
    hak_secret.factor = random[2] | 1;
}

void hak_life_seal(void) {
    hak_os_seal(&hak_secret, sizeof hak_secret);
    hak_os_seal(&hak_event_table, sizeof hak_event_table);
    hak_os_seal(&hak_services, sizeof hak_services);
    hak_os_seal(&hak_knobs, HAK_KNOBS_SEALED_BYTES);
    hak_conf_seal();
}

static void warn_of_no_report(void) {
    uint64_t report = 0;
    (void)hak_conf_get("report", &report);
    if (report != 0) {
        hak_warn("report: not in this build (HAK_REPORT=0); option ignored");
    }
}

static void process_start(void) {
    hak_os_init();
    hak_sc_init();
    if (HAK_HARDEN) {
        secrets_init();
        hak_os_scatter();
    }
    hak_owner_start();
    hak_services.serve = hak_reclaim_serve;
    hak_services.give_back = hak_limit_give_back;
    hak_services.huge_bound = hak_target_huge_bound;
    hak_services.memory_out = hak_reclaim_memory_out;
    hak_event_register(hak_budget_shrink_idle, HAK_EVENT_OWN);
    hak_event_register(hak_guard_follow, HAK_EVENT_OWN);
    hak_event_register(hak_reclaim_maintain, HAK_EVENT_PROCESS);
    hak_event_register(hak_reclaim_step, HAK_EVENT_STEP);
    hak_event_register(hak_life_scavenge, HAK_EVENT_PROCESS);
    hak_event_register(hak_profile_follow, HAK_EVENT_PROCESS);
    hak_event_register(hak_life_mail, HAK_EVENT_PROCESS);
    hak_conf_read();
    if (HAK_MTE && hak_load_relaxed(&hak_knobs.tags) && !hak_load_relaxed(&hak_knobs.force_libc)) {
        hak_secret.has_tags = hak_os_tags_start();
    }
    if (HAK_REPORT) {
        hak_life_report_init();
    } else {
        warn_of_no_report();
    }
    if (hak_load_relaxed(&hak_knobs.observable)) {
        hak_os_let_observe();
    }
    hak_guard_start();
    hak_profile_start();
    if (HAK_HARDEN) {
        hak_large_quarantine_switch(!HAK_FAULT); /* tests of the core count blocks and mappings */
    }
    hak_os_huge_detect(); /* later its file would use up a number of the program */
    if (hak_load_relaxed(&hak_knobs.huge_pages) == HAK_HUGE_PAGES_ADVISED) {
        hak_os_huge_only_advised();
    }
    if (hak_load_relaxed(&hak_knobs.force_libc) && !hak_libc_has_malloc()) {
        hak_store_relaxed(&hak_knobs.force_libc, false);
        hak_warn("force_libc: the C library's own malloc cannot be named here; option ignored");
    }
    hak_life_thread_init();
    hak_life_fork_init();
    if (HAK_HARDEN && !HAK_FAULT) { /* tests of the core write to sealed data */
        hak_life_seal();
    }
}

HAK_COLD void hak_life_process_start(void) {
    if (HAK_LIKELY(hak_load_acquire(&start_state) == START_DONE)) { /* pairs START-1 */
        return;
    }
    if (hak_load_relaxed(&start_state) == START_RUNNING &&
        hak_load_relaxed(&start_thread) == &hak_tcache_offset) {
        return; /* a hook allocates: the defaults serve it */
    }
    hak_lock_acquire(HAK_LOCK_START);
    if (hak_load_relaxed(&start_state) == START_NOT_YET) {
        hak_store_relaxed(&start_thread, &hak_tcache_offset);
        hak_store_relaxed(&start_state, START_RUNNING);
        process_start();
        hak_store_release(&start_state, START_DONE); /* pairs START-1 */
    }
    hak_lock_release(HAK_LOCK_START);
}

hak_tcache_t *hak_life_thread_start(void) {
    hak_tcache_t *tcache = HAK_HARDEN ? hak_tcache_self(hak_pagemap_base()) : NULL;
    if (tcache != NULL && !hak_tcache_is_empty(tcache)) { /* or a signal handler got the first */
        if (tcache->second == NULL) {
            hak_tcache_attach_second(tcache);
        }
        return tcache;
    }
    hak_life_process_start();
    if (hak_load_relaxed(&hak_knobs.force_libc) || hak_thread_self.has_exited) {
        return NULL;
    }
    tcache = hak_tcache_self(hak_pagemap_base());
    /* else process start allocated meanwhile */
    return hak_tcache_is_empty(tcache) ? hak_life_thread_attach() : tcache;
}

/* The library is linked to be initialised first (-z initfirst), so that our fork handler registers
 * before any other: prepare handlers run in reverse order, and ours, which takes the locks, must be
 * the last. libc has not set `environ` yet; constructors get it as an argument. */
__attribute__((constructor(101))) static void process_start_at_load(int argc, char **argv,
                                                                    char **envp) {
    (void)argc;
    (void)argv;
    hak_os_set_env(envp);
    hak_life_process_start();
    if (!hak_load_relaxed(&hak_knobs.force_libc)) { /* opens files while there is one thread */
        hak_limit_start();
    }
    if (HAK_REPORT) {
        hak_life_report_begin();
    }
}
