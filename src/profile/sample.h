/* SPDX-License-Identifier: MIT
 *
 * The calls of the front, and the owner of sampled blocks: private to this folder. */
#ifndef HAK_PROFILE_SAMPLE_H
#define HAK_PROFILE_SAMPLE_H

#include "profile/profile.h"
#include "profile/store.h"

/* Registers what the front calls. */
void hak_sample_start(void);
/* Makes the owner of sampled blocks, if there is none. */
void hak_sample_open(void);
/* Begins or ends (0) the detour of requests. Threads draw a new distance if the rate is another. */
void hak_sample_set_rate(size_t rate);
/* A sample, or else an event: doubles the rate where samples come too fast, and halves it
 * afterwards. */
void hak_sample_pace(bool is_sample);
/* Returns empty slabs of sampled blocks. */
void hak_sample_release(void);
/* In the child: draws a new distance; waits for no owner that the fork waited for in vain. */
void hak_sample_after_fork(void);
/* Whether the calling thread took the block, and asked for few bytes since. */
bool hak_sample_is_temporary(const hak_profile_sample_t *sample);
/* Waits for the owner. Counted in the core for tests only. */
extern uint64_t hak_sample_naps; /* [atomic] */

#endif
