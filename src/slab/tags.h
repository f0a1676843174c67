/* SPDX-License-Identifier: MIT
 *
 * Memory tags, of hardened builds for aarch64 (MTE): every 16 bytes have one, and an access by an
 * address with another one faults.
 *
 *   address   63   60 59   56 55                                        0
 *             |   0   |  tag  |  as without tags                        |
 *
 * A block of a slab gets a tag at random when it is handed out: not 0, none of its neighbours' on
 * the same OS page and not the one it had the last time. It loses it when it is freed. So the core
 * has nothing to do with tags: those it looks at, all free, have none. Large blocks have none
 * either: they may be much larger than what is touched of them, and move by pages. Nor have blocks
 * that were asked for at OS pages: they are what programs call madvise and its kin for, which may
 * clear tags.
 *
 * Invariants, where tags are on:
 *   TAG-1  The memory of superslabs has tag 0, but for the blocks of slabs that are in use.
 *   TAG-2  Those have the tag of the address that was handed out, from first byte to last; 0 where
 *          the kernel did not allow tags, and of blocks asked for at OS pages.
 *   TAG-3  Addresses with tags come in by free, realloc and malloc_usable_size alone, which look
 *          whether the tag is the memory's, and go no further than that.
 *   TAG-4  The last 8 bytes of a freed block, zero but for that, say which tag it had. 0: unknown.
 */
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

/* --- tags.c; where tags are on ------------------------------------------------------------------
 */

/* The tag of the memory there. */
unsigned hak_tag_load(const void *address);
/* A block, which had the tag `last`, is handed out; the address to hand out. */
void *hak_tag_give(void *block, size_t bytes, unsigned last);
/* It is freed: it has no tag any more. Fatal if its address has another one. */
void *hak_tag_take(void *block, size_t bytes);
/* A word of memory, whatever its tag. */
uintptr_t hak_tag_peek(const uintptr_t *word);
/* A block's address has not the tag of its memory. */
HAK_COLD HAK_NORETURN void hak_tag_accuse(const void *block, hak_fatal_kind_t kind);

/* --- whether they are or not -------------------------------------------------------------------
 */

/* Blocks asked for at such a multiple have none. */
HAK_INLINE bool hak_tag_is_left_out(size_t align) {
    return hak_tags_are_on() && align >= hak_os_page_bytes();
}

HAK_INLINE bool hak_tag_fits(const void *address) {
    return !hak_tags_are_on() || hak_tag_load(address) == hak_tag_of(address);
}

HAK_INLINE void hak_tag_check(const void *block, hak_fatal_kind_t kind) {
    if (HAK_UNLIKELY(!hak_tag_fits(block))) {
        hak_tag_accuse(block, kind);
    }
}

/* The first word, as a link, of a block that may be in use, or about to be. */
HAK_INLINE uintptr_t hak_tag_link_word(const void *block) {
    const uintptr_t *word = hak_tag_strip(block);
    return (hak_tags_are_on() ? hak_tag_peek(word) : hak_load_relaxed(word)) ^ hak_link_mask(word);
}

#endif
