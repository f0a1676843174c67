/* SPDX-License-Identifier: MIT
 *
 * CPU instructions that C cannot express. No system calls. */
#ifndef HAK_OS_CPU_H
#define HAK_OS_CPU_H

#include "base/compiler.h"
#include "base/words.h"

/* A return address as it was before the processor signed it. */
HAK_INLINE uintptr_t hak_cpu_unsigned(uintptr_t address) {
#if defined(__aarch64__)
    __asm__("mov x30, %0\n\thint #7\n\tmov %0, x30" : "+r"(address) : : "x30");
#endif
    return address;
}

/* Of a counter that runs at one speed on all processors. */
HAK_INLINE uint64_t hak_cpu_ticks(void) {
#if defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return __builtin_ia32_rdtsc();
#endif
}

/* Registers by their numbers in unwind tables: frame pointer, stack pointer, return address. */
#if defined(__x86_64__)
enum { HAK_CPU_FRAME = 6, HAK_CPU_STACK = 7, HAK_CPU_LINK = 16, HAK_CPU_OMITS_FRAMES = 1 };
#else
enum { HAK_CPU_FRAME = 29, HAK_CPU_STACK = 31, HAK_CPU_LINK = 30, HAK_CPU_OMITS_FRAMES = 0 };
#endif

/* x86-64: words of the stack up to the caller's, if 8 bytes of code end a function, by
 * "add $n, %rsp; ret" or "pop %rbp; ret"; else 0. */
HAK_INLINE unsigned hak_cpu_words_returned(const unsigned char *code, bool *pops_frame) {
    *pops_frame = code[0] == 0x5d && code[1] == 0xc3;
    bool adds = code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] < 128 &&
                code[3] % 8 == 0 && code[4] == 0xc3;
    return *pops_frame ? 2 : adds ? code[3] / 8u + 1 : 0;
}

/* Sets bit `index` modulo 64 of the word; whether it was set. */
HAK_INLINE bool hak_cpu_set_bit(uint64_t *word, uint64_t index) {
    bool was_set;
#if defined(__x86_64__)
    __asm__("btsq %2, %0" : "+r"(*word), "=@ccc"(was_set) : "r"(index));
#else
    was_set = (*word >> index % 64 & 1) != 0;
    *word |= 1ull << index % 64;
#endif
    return was_set;
}

/* The instruction here, the stack pointer, the frame pointer. */
HAK_INLINE void hak_cpu_registers(uintptr_t *code, uintptr_t *stack, uintptr_t *frame) {
#if defined(__x86_64__)
    __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(*code), "=&r"(*stack), "=&r"(*frame));
#else
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"
                     : "=&r"(*code), "=&r"(*stack), "=&r"(*frame));
#endif
}

enum { HAK_TAG_GRANULE = 16 }; /* bytes per MTE tag */

#if HAK_MTE
/* MTE tags, in functions of HAK_TAG_CODE: processors without tags lack the instructions. */

/* The address with the tag of its memory. */
HAK_INLINE char *hak_cpu_tag_load(char *address) {
    __asm__ volatile(HAK_TAG_ASM "ldg %0, [%0]" : "+r"(address) : : "memory");
    return address;
}

/* The address with a random tag, not one of the set bits. */
HAK_INLINE char *hak_cpu_tag_random(char *address, uint64_t excluded) {
    __asm__ volatile(HAK_TAG_ASM "irg %0, %0, %1" : "+r"(address) : "r"(excluded));
    return address;
}

/* Gives memory the tag of its address. */
HAK_INLINE void hak_cpu_tag_store(char *address, size_t bytes) {
    char *end = address + bytes;
    if (bytes % (2 * HAK_TAG_GRANULE) != 0) {
        __asm__ volatile(HAK_TAG_ASM "stg %0, [%0], #16" : "+r"(address) : : "memory");
    }
    while (address != end) {
        __asm__ volatile(HAK_TAG_ASM "st2g %0, [%0], #32" : "+r"(address) : : "memory");
    }
}

/* Reads a word whatever its tag: a bit of the processor state switches the check off. */
HAK_INLINE uintptr_t hak_cpu_tag_peek(const uintptr_t *word) {
    uintptr_t value;
    __asm__ volatile("msr s3_3_c4_c2_7, %2\n"
                     "ldr %0, [%1]\n"
                     "msr s3_3_c4_c2_7, xzr"
                     : "=&r"(value)
                     : "r"(word), "r"(1ul << 25)
                     : "memory");
    return value;
}
#endif

#endif
