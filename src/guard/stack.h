/* SPDX-License-Identifier: MIT
 *
 * Stacks of return addresses, and how they are told. For malloc and signal handlers: nothing is
 * allocated, no lock is taken. */
#ifndef HAK_GUARD_STACK_H
#define HAK_GUARD_STACK_H

#include "base/compiler.h"
#include "base/words.h"

/* Return addresses from a frame on (HAK_FRAME), innermost first, at most `most`; as far as there
 * are frame pointers. Any frame will do: an impossible one ends the walk. The library's own
 * functions are left out. Nothing is read but the mapping of the stack, which is that of `floor`, a
 * stack pointer not above the frame, and code of loaded modules; so an address may be no code. With
 * `is_report` /proc/self/maps tells code, also code made at run time: slow. */
unsigned hak_guard_stack(const void *floor, const void *frame, bool is_report, uintptr_t *addresses,
                         unsigned most);

/* Says whether the address lies in code, by /proc/self/maps. false: it is not known. */
bool hak_guard_find_code(uintptr_t address, bool *is_code);
/* A line each on standard error: "hakmem:     #0 0x... path+0x...". From the first that is not in
 * code on they are left out. Slow; reads /proc/self/maps. */
void hak_guard_stack_print(const uintptr_t *addresses, unsigned count);
/* In the child of a fork: a thread that was printing is gone. */
void hak_guard_stack_after_fork(void);

#endif
