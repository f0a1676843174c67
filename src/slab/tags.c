/* SPDX-License-Identifier: MIT
 *
 * MTE tags by the instructions of os/cpu.h: called only where tags are on. */
#include "slab/tags.h"

#if HAK_MTE

#include "slab/slab_inl.h"

/* A bit for the tag at the address, beside an edge of a block. None at that of an OS page: the next
 * one may belong to a block that the program made inaccessible, or be untouched. Beyond superslabs
 * nothing is accessible. */
HAK_INLINE uint64_t tag_beside(char *address, const char *edge) {
    bool is_page = ((uintptr_t)edge & (hak_os_page_bytes() - 1)) == 0;
    return is_page ? 0 : (uint64_t)1 << hak_tag_of(hak_cpu_tag_load(address));
}

HAK_TAG_CODE unsigned hak_tag_load(const void *address) {
    return hak_tag_of(hak_cpu_tag_load(hak_tag_strip(address)));
}

/* A neighbour may get its tag at the same time, in another thread: then the two may be equal. */
HAK_TAG_CODE void *hak_tag_give(void *block, size_t bytes, unsigned last) {
    char *address = block, *end = address + bytes;
    uint64_t excluded = 1 | (uint64_t)1 << last;
    excluded |= tag_beside(address - HAK_TAG_GRANULE, address) | tag_beside(end, end);
    address = hak_cpu_tag_random(address, excluded);
    hak_cpu_tag_store(address, HAK_TAG_GRANULE);
    address = hak_cpu_tag_load(address); /* TAG-2 */
    hak_cpu_tag_store(address, bytes);
    return address;
}

HAK_TAG_CODE void *hak_tag_take(void *block, size_t bytes) {
    char *address = hak_tag_strip(block);
    if (HAK_UNLIKELY(hak_cpu_tag_load(address) != block)) {
        hak_tag_report(block, HAK_FATAL_DOUBLE_FREE);
    }
    hak_cpu_tag_store(address, bytes);
    return address;
}

HAK_TAG_CODE uintptr_t hak_tag_peek(const uintptr_t *word) {
    return hak_cpu_tag_peek(word);
}

void hak_tag_report(const void *block, hak_fatal_kind_t kind) {
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
