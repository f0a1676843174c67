/* SPDX-License-Identifier: MIT
 *
 * A SIGTRAP after each of this thread's instructions, by the trap flag of x86-64. Nothing
 * elsewhere. */
#ifndef HAK_TEST_DOUBLE_SINGLE_STEP_H
#define HAK_TEST_DOUBLE_SINGLE_STEP_H

#include <stdbool.h>

enum { STEP_FLAG = 0x100 };

/* The flags are pushed below the red zone. */
static inline __attribute__((always_inline)) void steps_switch(bool is_on) {
#if defined(__x86_64__)
    if (is_on) {
        __asm__ volatile("subq $128, %%rsp; pushfq; orq %0, (%%rsp); popfq; addq $128, %%rsp"
                         :
                         : "i"(STEP_FLAG)
                         : "memory", "cc");
    } else {
        __asm__ volatile("subq $128, %%rsp; pushfq; andq %0, (%%rsp); popfq; addq $128, %%rsp"
                         :
                         : "i"(~STEP_FLAG)
                         : "memory", "cc");
    }
#else
    (void)is_on;
#endif
}

#endif
