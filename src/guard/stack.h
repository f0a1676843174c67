/* SPDX-License-Identifier: MIT
 *
 * Stacks of return addresses, and their reports; no lock, no heap: for malloc, signal handlers. */
#ifndef HAK_GUARD_STACK_H
#define HAK_GUARD_STACK_H

#include "base/compiler.h"
#include "base/words.h"

/* At most `most` return addresses from a frame on (HAK_FRAME), innermost first, without the
 * library's own functions, as far as frame pointers lead. Any frame will do: an impossible one ends
 * the walk. Reads only the mapping of the stack, where `floor`, a stack pointer not above the
 * frame, lies, and code of loaded modules; so an address may be no code. `is_report`: consults
 * /proc/self/maps, which also knows code made at run time: slow. */
unsigned hak_guard_stack(const void *floor, const void *frame, bool is_report, uintptr_t *addresses,
                         unsigned most);

/* Whether the address lies in code, by /proc/self/maps. false: not known. */
bool hak_guard_find_code(uintptr_t address, bool *is_code);
/* Prints a line each on standard error: "hakmem:     #0 0x... path+0x...", up to the first address
 * that is not in code. Slow; reads /proc/self/maps. */
void hak_guard_stack_print(const uintptr_t *addresses, unsigned count);
/* In the child of a fork: a printing thread is gone. */
void hak_guard_stack_after_fork(void);

#endif
