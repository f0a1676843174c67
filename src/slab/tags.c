/* SPDX-License-Identifier: MIT
 *
 * Memory tags: the instructions, and what is done by them. Processors without tags do not know
 * these: nothing here may be called unless tags are on. */
#include "slab/tags.h"

#if HAK_MTE

#include "slab/slab_inl.h"

/* The address with the tag of its memory. */
HAK_INLINE char *tag_of_memory(char *address) {
    __asm__ volatile(HAK_TAG_ASM "ldg %0, [%0]" : "+r"(address) : : "memory");
    return address;
}

/* The address with a tag at random, but none of those whose bits are set. */
HAK_INLINE char *tag_random(char *address, uint64_t excluded) {
    __asm__ volatile(HAK_TAG_ASM "irg %0, %0, %1" : "+r"(address) : "r"(excluded));
    return address;
}

/* Gives memory the tag of its address. */
HAK_INLINE void tag_store(char *address, size_t bytes) {
    char *end = address + bytes;
    if (bytes % (2 * HAK_TAG_GRANULE) != 0) {
        __asm__ volatile(HAK_TAG_ASM "stg %0, [%0], #16" : "+r"(address) : : "memory");
    }
    while (address != end) {
        __asm__ volatile(HAK_TAG_ASM "st2g %0, [%0], #32" : "+r"(address) : : "memory");
    }
}

/* The next OS page may be one that the program has made inaccessible, in a block of its own, or
 * that nobody has touched yet. Around superslabs nothing is accessible. */
HAK_INLINE bool tag_is_edge(const char *address, size_t page) {
    return ((uintptr_t)address & (page - 1)) == 0;
}

HAK_INLINE uint64_t tag_bit(char *address) {
    return (uint64_t)1 << hak_tag_of(tag_of_memory(address));
}

HAK_TAG_CODE unsigned hak_tag_load(const void *address) {
    return hak_tag_of(tag_of_memory(hak_tag_strip(address)));
}

/* Neighbours may get theirs at the same time, in another thread: then two may be the same. */
HAK_TAG_CODE void *hak_tag_give(void *block, size_t bytes, unsigned last) {
    char *address = block, *end = address + bytes;
    size_t page = hak_os_page_bytes();
    uint64_t excluded = 1 | (uint64_t)1 << last;
    excluded |= tag_is_edge(address, page) ? 0 : tag_bit(address - HAK_TAG_GRANULE);
    excluded |= tag_is_edge(end, page) ? 0 : tag_bit(end);
    address = tag_random(address, excluded);
    tag_store(address, HAK_TAG_GRANULE);
    address = tag_of_memory(address); /* TAG-2 */
    tag_store(address, bytes);
    return address;
}

HAK_TAG_CODE void *hak_tag_take(void *block, size_t bytes) {
    char *address = hak_tag_strip(block);
    if (HAK_UNLIKELY(tag_of_memory(address) != block)) {
        hak_tag_accuse(block, HAK_FATAL_DOUBLE_FREE);
    }
    tag_store(address, bytes);
    return address;
}

/* The bit of the processor's state that switches checks off, for one load. */
HAK_TAG_CODE uintptr_t hak_tag_peek(const uintptr_t *word) {
    uintptr_t value;
    __asm__ volatile("msr s3_3_c4_c2_7, %2\n"
                     "ldr %0, [%1]\n"
                     "msr s3_3_c4_c2_7, xzr"
                     : "=&r"(value)
                     : "r"(word), "r"(1ul << 25)
                     : "memory");
    return value;
}

void hak_tag_accuse(const void *block, hak_fatal_kind_t kind) {
    const void *address = hak_tag_strip(block);
    const char *detail = "the block was handed out again";
    if (kind == HAK_FATAL_DOUBLE_FREE) {
        hak_slab_check_freed(hak_slab_of(address), address);
    }
    if (hak_tag_load(address) == 0) {
        detail = "the block is free, or an aligned one";
    } else if (hak_tag_of(block) == 0) {
        detail = "the address has lost its tag";
    }
    hak_fatal(kind, block, detail);
}

#endif
