/* SPDX-License-Identifier: MIT
 *
 * Tcaches without a thread: what a fork leaves in the child, and how the memory of many unused
 * ones is returned. */
#ifndef HAK_FRONT_ABANDONED_H
#define HAK_FRONT_ABANDONED_H

#include "front/tcache.h"

/* [lock REGISTRY] by class: blocks of those that serve again. */
extern uint32_t hak_tcache_lost[HAK_SC_COUNT];

/* Empties one; its blocks are lost. [lock REGISTRY] */
HAK_COLD void hak_tcache_forget(hak_tcache_t *tcache);
/* In the child of a fork: every other tcache belongs to a thread that is gone. Unless `is_clean`,
 * the caller's structures may be in the middle of a change. */
HAK_COLD void hak_tcache_after_fork(bool is_clean);

/* Tcaches are made in groups, so that those of threads that use little lie side by side. */
enum { HAK_SIDES_FAR = HAK_SC_COUNT - HAK_SIDES_NEAR, HAK_GROUP_TCACHES = 8 };
typedef struct hak_tcache_group hak_tcache_group_t;
struct hak_tcache_group {
    hak_tcache_t tcache[HAK_GROUP_TCACHES];
    hak_bin_side_t far_side[HAK_GROUP_TCACHES][HAK_SIDES_FAR];
    hak_tcache_group_t *next; /* [lock REGISTRY] of an idle, going or spare one */
    size_t purged_bytes;      /* [lock REGISTRY] of a spare one: of its memory */
    uint32_t unused;          /* [lock REGISTRY] its tcaches in hak_unused_tcaches */
    bool is_idle;             /* [lock REGISTRY] in hak_idle_groups: all were unused */
};
extern hak_bin_side_t hak_tcache_first_far[HAK_SIDES_FAR]; /* of the first tcache, in no group */
extern hak_tcache_group_t *hak_spare_groups; /* [lock REGISTRY] zero, and without memory */
extern hak_tcache_group_t *hak_idle_groups;  /* [atomic] changed under REGISTRY */
extern hak_tcache_group_t *hak_going_groups; /* [lock REGISTRY] of the one trim at a time */
extern const void *hak_going_thread;         /* [lock REGISTRY] its thread, by its TLS word */
extern uint32_t hak_tcache_search_count;     /* [lock REGISTRY] tcaches at the next search */
/* A group for new tcaches, or NULL. [lock REGISTRY] */
hak_tcache_group_t *hak_tcache_group_begin(void);

/* A tcache enters or leaves hak_unused_tcaches, REGISTRY held. True: so many entered that a trim
 * is due: 256, and a quarter of all. */
bool hak_tcache_unuse(hak_tcache_t *tcache);
void hak_tcache_reuse(hak_tcache_t *tcache);
/* [atomic] Changes before and after tcaches leave the list of all: odd in between, when they may be
 * counted there and in the fallback tcache. */
extern uint32_t hak_tcache_generation;
/* Returns the memory of groups whose tcaches are all unused; their counts go to the fallback
 * tcache. Not in hardened builds, whose tcaches lead to quarantines. A locked section looks at
 * HAK_TRIM_GROUPS groups at most: some 80 us, as one of 8,000 tcaches took 10 ms. */
enum { HAK_TRIM_GROUPS = 8 };
HAK_COLD void hak_tcache_trim(void);

#endif
