/* SPDX-License-Identifier: MIT
 *
 * What scenario.c and fork.c share: beginnings, and things that threads do. */
#ifndef MODEL_SCENARIO_H
#define MODEL_SCENARIO_H

#include "world.h"

#define MARK(name) (1u << MARK_##name)

void before_one(void);
void before_two_slabs(void);
void before_idle_2(void);
void push_first(void);
void push_other(void);
void push_two_and_one(void);
void tick_1(void);
void refill_1(void);
void refill_2(void);

#endif
