/* SPDX-License-Identifier: MIT
 *
 * The live parameters the core obeys. conf/ writes them at start and for hak_option_set, reclaim/
 * at events, large/room.c one; slow paths read them. All are [atomic], relaxed. */
#ifndef HAK_BASE_KNOBS_H
#define HAK_BASE_KNOBS_H

#include "base/compiler.h"
#include "base/words.h"

typedef struct hak_knobs {
    /* --- hardened builds make them read-only once the process has started */
    /* read by span/ */
    size_t retain_percent; /* bound of unused memory, as a share of what is in use */
    bool huge_pages;       /* densely used memory may be backed by huge pages */
    /* read by large/ */
    size_t huge_cache_bytes; /* resident memory of free huge mappings kept at least */
    /* read by front/ */
    size_t bin_max_bytes; /* what one bin may hold at most */
    size_t bin_max_blocks;
    size_t cache_bytes;  /* what all bins may grow by, for each CPU */
    size_t outbox_bytes; /* what may wait in the outboxes of a thread */
    bool force_libc;     /* route the whole family to the next allocator */
    bool sized_check;    /* a sized free of a wrong size is fatal */
    /* read by reclaim/ */
    bool learn;
    bool cgroup; /* look at what control groups leave of memory */
    /* read by guard/ */
    bool guard;        /* look after one small block in */
    size_t guard_rate; /* so many */
    /* read by life/ */
    bool backtrace; /* a fatal report tells the stack */
    bool scavenger; /* a thread gives memory back when the program does nothing */
    bool tags;      /* hardened builds: blocks have memory tags, where there are some */

    /* --- set by mallopt, too; read by span/ and large/ */
    HAK_SEALED size_t retain_min_bytes; /* the same bound at least; more is purged soon */
    size_t retain_idle_bytes;           /* unused memory exempt from decay, at least */
    /* --- set by the learner; read by span/ */
    size_t retain_learned_percent; /* extra share; 0 to 100 */
    size_t retain_wanted_bytes;    /* unused memory exempt from decay */
    /* --- set by reclaim/limit.c; read by large/ */
    size_t limit_soft_bytes; /* in use and unused together at most; SIZE_MAX: no bound */
    size_t limit_step_bytes; /* what may go because of that until the next look */
    size_t limit_hard_bytes; /* above it goes whatever the step says */
    /* read by span/, slab/ and front/ */
    bool is_tight; /* little would be left even if nothing were unused here */
    /* read by stat/ */
    size_t limit_bytes; /* of the control group with least room; 0: none known */
} hak_knobs_t;

/* What hardened builds make read-only. */
enum { HAK_KNOBS_SEALED_BYTES = offsetof(hak_knobs_t, retain_min_bytes) };

extern hak_knobs_t hak_knobs;

#endif
