/* SPDX-License-Identifier: MIT
 *
 * Stacks of return addresses, for malloc and signal handlers: no lock, no allocation, no unwinder
 * of the system.
 *
 *   rows     how a function's caller is found from its registers (.eh_frame, interpreted by cfi.c)
 *   frames   pairs of a frame pointer and a return address, for code without rows (JIT compilers),
 *            unless it returns right behind the call (trampolines of CPython), which needs none
 *
 * Invariants:
 *   STACK-1  Only memory of the stack that the stack pointer lies in is read, the segment of a
 *            loaded object that holds its tables, and the instructions that a function without rows
 *            returns to, where rows alone led; any contents end the walk or lead it astray, but
 *            never to a fault. Where frame pointers led, the object may be unloaded meanwhile: only
 *            tables of those are read that are never unloaded, as they were there at the start, and
 *            of a stack that is not the thread's own only the OS page where the walk began.
 *   STACK-2  The stack pointer rises with each frame, but for frames of signals: walks end. */
#ifndef HAK_STACK_STACK_H
#define HAK_STACK_STACK_H

#include "base/compiler.h"
#include "base/words.h"

/* Registers of a function, and where it stands: behind a call, or `is_exact` at that
 * instruction. */
typedef struct hak_stack_at {
    uintptr_t code, stack, frame;
    uintptr_t link; /* aarch64: the link register, if is_exact */
    bool is_exact;
    bool ends_unsure; /* the walk ends where rows alone do not lead on: all objects stay loaded */
} hak_stack_at_t;

/* At most `most` return addresses into functions that are not the library's, innermost first, from
 * the caller on. Up to the thread's start, or as far as rows or frame pointers lead. */
HAK_NOINLINE unsigned hak_stack_walk(uintptr_t *addresses, unsigned most);
/* The same for the callers of a place, which may be anything: an impossible one ends the walk. */
unsigned hak_stack_walk_from(const hak_stack_at_t *at, uintptr_t *addresses, unsigned most);

#endif
