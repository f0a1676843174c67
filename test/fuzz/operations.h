/* SPDX-License-Identifier: MIT
 *
 * Bytes of a fuzzer as operations on the hak_ functions, and the shadow that every block is
 * compared with. One thread at a time. */
#ifndef HAK_TEST_FUZZ_OPERATIONS_H
#define HAK_TEST_FUZZ_OPERATIONS_H

#include "fuzz/fuzz.h"

void fuzz_operations_begin(void);
/* One operation, of which `code` says which. */
void fuzz_operation(unsigned code, fuzz_tape_t *tape);
/* Frees what there is. */
void fuzz_operations_end(void);
/* With no other thread in the allocator: nothing is left, and every invariant holds. */
void fuzz_operations_rest(void);

/* Environment of the allocator (operations_os.c): true while a refusal is to be expected. */
extern bool fuzz_may_refuse;
void fuzz_os_begin(void);
void fuzz_os_end(void);
void fuzz_os_advance(fuzz_tape_t *tape); /* the clock */
void fuzz_os_fail(fuzz_tape_t *tape);    /* calls of the kernel, from some position on */
void fuzz_os_relent(void);
void fuzz_os_limit(fuzz_tape_t *tape); /* memory of the control group */

#endif
