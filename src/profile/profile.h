/* SPDX-License-Identifier: MIT
 *
 * The heap profiler: which call sites hold the memory, from a sample of the allocations.
 *
 * Each allocated byte is sampled with probability 1 / rate, regardless of all others: a Poisson
 * process. So an allocation of S bytes is sampled with the probability
 * p = 1 - e^(-S / rate), and stands for 1 / p allocations of its kind, its weight. S is what the
 * block takes: the bytes of its size class, or of its units. All sums of weights are unbiased;
 * their variance is known, too (docs/profiling.md).
 *
 * While it samples, the table of bin offsets leads every small request to its cold exit, which
 * counts down the bytes to the next sample (front/malloc.c): the hit path has no code for it.
 * Sampled small blocks lie in slabs of an owner of their own (SLAB-10): the one compare of the hit
 * path sends their frees to a slow path. Large blocks always take one.
 *
 * Invariants:
 *   PROFILE-1  The lock PROFILE is the last in the order of ranks: nothing is allocated, no stack
 *              walked, nothing written under it.
 *   PROFILE-2  A block has at most one record, and a record one block in use. A block in a slab of
 *              sampled blocks may lack one: it was dropped, or is older than a reset. A record
 *              may outlive a block that a signal handler freed in a section of its own thread.
 *   PROFILE-3  The sums of a site and of the process are those over its records in use.
 *   PROFILE-4  The memory of sites and samples is bounded: what does not fit is counted alone. */
#ifndef HAK_PROFILE_PROFILE_H
#define HAK_PROFILE_PROFILE_H

#include "base/fmt.h"
#include "base/observer.h"
#include "front/tcache.h"

enum { HAK_PROFILE_RATE = 512 << 10 }; /* where none is given */

/* After the options are read: registers; samples if an option says so. */
void hak_profile_start(void);
/* Samples at this rate from now on; 0: not any more, and keeps what there is. false: no memory, or
 * the process has privileges that its user lacks. */
HAK_COLD bool hak_profile_set_rate(size_t rate);
/* Forgets all sites and samples. */
void hak_profile_reset(void);
/* See base/observer.h. */
size_t hak_profile_keep(char *to, void *head);
extern hak_observer_maintain_t *hak_profile_maintain; /* [init] NULL: none */
/* An event: follows the option profile_rate and the signal. */
void hak_profile_follow(hak_tcache_t *tcache);
/* In the child of a fork: its profile starts empty. Unless `is_clean` there is none any more. */
HAK_COLD void hak_profile_after_fork(bool is_clean);

#endif
