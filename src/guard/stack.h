/* SPDX-License-Identifier: MIT
 *
 * Stacks of return addresses, and how they are told. For malloc and signal handlers: nothing is
 * allocated, no lock is taken. */
#ifndef HAK_GUARD_STACK_H
#define HAK_GUARD_STACK_H

#include "base/compiler.h"
#include "base/words.h"

/* Return addresses from a frame on (HAK_FRAME), innermost first, at most `most`; as far as there
 * are frame pointers. Any frame will do: what cannot be one ends the walk. In the shared library,
 * its own functions are left out. */
unsigned hak_guard_stack(const void *frame, uintptr_t *addresses, unsigned most);

/* A line each on standard error: "hakmem:     #0 0x... path+0x...". From the first that is not in
 * code on they are left out. Slow; reads /proc/self/maps. */
void hak_guard_stack_print(const uintptr_t *addresses, unsigned count);

#endif
