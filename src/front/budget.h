/* SPDX-License-Identifier: MIT
 *
 * The growth that the bins of all threads share. What all bins hold follows the CPUs that the
 * process may use, not its threads: nothing takes from the bins of a thread that sleeps. Growth is
 * drawn from hak_knobs.cache_bytes for each CPU, of which each thread has a share. */
#ifndef HAK_FRONT_BUDGET_H
#define HAK_FRONT_BUDGET_H

#include "front/tcache.h"

/* Blocks a bin may hold, freed ones, or what a refill leaves, above those it may at first. */
int32_t hak_bin_charge(const hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want);
/* Changes capacity and want. false: the growth was refused, and nothing is changed. */
bool hak_bin_resize(hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want);
/* An event: bins that were not used for a while, a few at a time, give back half of what they grew
 * by; so do all of a thread that has more than its share. */
void hak_budget_shrink_idle(hak_tcache_t *tcache);
/* A thread has a tcache, or has it no more. What it drew must have been given back. */
void hak_budget_join(void);
void hak_budget_part(void);
/* Whether any thread has one. */
bool hak_budget_has_threads(void);
/* What a thread's bins should hold at first. */
uint32_t hak_budget_initial_bytes(void);
/* Gives everything back; the bins are about to be reset. */
void hak_budget_return(hak_tcache_t *tcache);
/* Bytes of the budget as far as it is known, and those that are drawn. */
size_t hak_budget_bytes(void);
size_t hak_budget_drawn_bytes(void);
/* In the child of a fork: only these tcaches have a user; self may be NULL. */
void hak_budget_after_fork(const hak_tcache_t *self, const hak_tcache_t *fallback);

#endif
