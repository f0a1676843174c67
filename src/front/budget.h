/* SPDX-License-Identifier: MIT
 *
 * The growth that the bins of all threads share. The memory in bins follows the CPUs that the
 * process may use, not its threads: a sleeping thread keeps its bins. Growth is drawn from
 * hak_knobs.cache_bytes per CPU, of which each thread has a share. */
#ifndef HAK_FRONT_BUDGET_H
#define HAK_FRONT_BUDGET_H

#include "front/tcache.h"

/* Initial capacity of a bin that may hold `initial_bytes`, and the most it may grow to. */
enum { HAK_BIN_INITIAL_BYTES = 1024 }; /* with few threads */
int32_t hak_bin_initial_capacity(uint32_t initial_bytes, unsigned sc);
int32_t hak_bin_max_capacity(unsigned sc);
/* The initial capacity now, within bin_max_blocks. */
int32_t hak_bin_first_capacity(const hak_tcache_t *tcache, unsigned sc);
/* The capacity now, within bin_max_blocks, which may have been lowered. */
int32_t hak_bin_capacity(const hak_bin_side_t *side);

/* Blocks that a bin of this capacity and `want` may hold above its initial capacity. */
int32_t hak_bin_charge(const hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want);
/* Changes capacity and want. false: the growth was refused, and nothing is changed. */
bool hak_bin_resize(hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want);
/* Doubles the capacity, within its bound and the budget. */
void hak_bin_grow(hak_tcache_t *tcache, unsigned sc);
/* An event: a few bins that were idle for a while give back half of their growth; so do all bins of
 * a thread that exceeds its share. */
void hak_budget_shrink_idle(hak_tcache_t *tcache);
/* A thread attaches its tcache, or has detached it. All it drew has been returned before. */
void hak_budget_join(void);
void hak_budget_quit(void);
extern uint32_t hak_budget_threads; /* [atomic] with a tcache, or about to have a home for one */
/* Bytes that a bin of a new tcache may hold at first. */
uint32_t hak_budget_initial_bytes(void);
/* Returns so many of the bytes that the tcache drew. */
void hak_budget_give(hak_tcache_t *tcache, size_t bytes);
/* Bytes of the budget, and bytes drawn of it. */
size_t hak_budget_bytes(void);
size_t hak_budget_drawn_bytes(void);
/* In the child of a fork: only these tcaches are in use; self may be NULL. */
void hak_budget_after_fork(const hak_tcache_t *self, const hak_tcache_t *fallback);

#endif
