/* SPDX-License-Identifier: MIT
 *
 * Instructions of the processor that C has no words for. No system call is among them. */
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

enum { HAK_TAG_GRANULE = 16 }; /* bytes that have one memory tag */

#if HAK_MTE
/* Memory tags, in functions of HAK_TAG_CODE: processors without tags do not know these. */

/* The address with the tag of its memory. */
HAK_INLINE char *hak_cpu_tag_load(char *address) {
    __asm__ volatile(HAK_TAG_ASM "ldg %0, [%0]" : "+r"(address) : : "memory");
    return address;
}

/* The address with a tag at random, but none of those whose bits are set. */
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

/* A word of memory, whatever its tag: a bit of the processor's state switches checks off. */
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
