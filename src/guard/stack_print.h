/* SPDX-License-Identifier: MIT
 *
 * Return addresses on standard error, with the files that they lie in. No allocation, no lock. */
#ifndef HAK_GUARD_STACK_PRINT_H
#define HAK_GUARD_STACK_PRINT_H

#include "base/compiler.h"
#include "base/words.h"

/* Prints a line each: "hakmem:     #0 0x... path+0x...", up to the first address that is not in
 * code. Slow; reads /proc/self/maps. */
void hak_guard_stack_print(const uintptr_t *addresses, unsigned count);
/* Behind all stacks of a report: how a reader gets the names of functions. */
void hak_guard_stack_hint(void);
/* Prints the stack from its caller on, on standard error. */
void hak_guard_trace(void);
/* In the child of a fork: a printing thread is gone. */
void hak_guard_stack_after_fork(void);

#endif
