/* SPDX-License-Identifier: MIT
 *
 * MTE tags, of hardened builds for aarch64: every 16 bytes of memory have one, and an access by an
 * address with another one faults.
 *
 *   address   63   60 59   56 55                                        0
 *             |   0   |  tag  |  as without tags                        |
 *
 * A block of a slab gets a random tag when it is handed out: not 0, not a neighbour's on the same
 * OS page, not its own last one. A free clears it, so the core handles untagged blocks only. Large
 * blocks have none: their memory is touched in part, and moves by pages. Nor have blocks aligned to
 * OS pages: programs pass them to madvise and its kin, which may clear tags.
 *
 * Invariants, where tags are on:
 *   TAG-1  The memory of superslabs has tag 0, except for blocks of slabs that are in use.
 *   TAG-2  All bytes of those have the tag of the address that was handed out; 0 where the kernel
 *          did not allow tags, and in blocks aligned to OS pages.
 *   TAG-3  Addresses with tags enter by free, realloc and malloc_usable_size only, which compare
 *          the tag with the memory's and strip it.
 *   TAG-4  The last 8 bytes of a freed block, zero otherwise, hold its last tag. 0: unknown. */
#ifndef HAK_SLAB_TAGS_H
#define HAK_SLAB_TAGS_H

#include "base/atomics.h"
#include "os/cpu.h"
#include "os/os.h"
#include "slab/link.h"

enum { HAK_TAG_SHIFT = 56, HAK_TAG_MASK = 15 };

HAK_INLINE bool hak_tags_are_on(void) {
    return HAK_MTE && hak_secret.has_tags;
}

HAK_INLINE unsigned hak_tag_of(const void *address) {
    return HAK_MTE ? (unsigned)((uintptr_t)address >> HAK_TAG_SHIFT) & HAK_TAG_MASK : 0;
}

/* The address without its tag. */
HAK_INLINE void *hak_tag_strip(const void *address) {
    uintptr_t mask = (uintptr_t)HAK_TAG_MASK << HAK_TAG_SHIFT;
    return (void *)(HAK_MTE ? (uintptr_t)address & ~mask : (uintptr_t)address);
}

/* --- tags.c; where tags are on ---------------------------------------------------------------- */

/* The tag of the memory there. */
unsigned hak_tag_load(const void *address);
/* Tags a block, whose last tag was `last`; returns the address to hand out. */
void *hak_tag_give(void *block, size_t bytes, unsigned last);
/* Clears the tag of a freed block. Fatal if its address has another one than its memory. */
void *hak_tag_take(void *block, size_t bytes);
/* A word of memory, whatever its tag. */
uintptr_t hak_tag_peek(const uintptr_t *word);
/* Fatal: the tag of a block's address is not its memory's. */
HAK_COLD HAK_NORETURN void hak_tag_report(const void *block, hak_fatal_kind_t kind);

/* --- everywhere ------------------------------------------------------------------------------- */

/* Whether blocks of this alignment have no tag. */
HAK_INLINE bool hak_tag_is_left_out(size_t align) {
    return hak_tags_are_on() && align >= hak_os_page_bytes();
}

HAK_INLINE bool hak_tag_fits(const void *address) {
    return !hak_tags_are_on() || hak_tag_load(address) == hak_tag_of(address);
}

HAK_INLINE void hak_tag_check(const void *block, hak_fatal_kind_t kind) {
    if (HAK_UNLIKELY(!hak_tag_fits(block))) {
        hak_tag_report(block, kind);
    }
}

/* The first word, as a link, of a block that may be in use, or be handed out meanwhile. */
HAK_INLINE uintptr_t hak_tag_link_word(const void *block) {
    const uintptr_t *word = hak_tag_strip(block);
    return (hak_tags_are_on() ? hak_tag_peek(word) : hak_load_relaxed(word)) ^ hak_link_mask(word);
}

#endif
