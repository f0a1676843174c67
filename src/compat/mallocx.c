/* SPDX-License-Identifier: MIT
 *
 * mallocx and its kin: the family's functions by flags. Cold: the family itself has hit paths. */
#include "base/bits.h"
#include "compat/numbers.h"
#include "compat/packed.h"
#include "front/fast.h"
#include "large/large.h"

#include <errno.h>
#include <string.h>

enum { FLAG_LOG2 = 63, FLAG_TCACHE = 0xfff << 8, FLAG_TCACHE_SHIFT = 8, FLAG_ARENA_SHIFT = 20 };

/* One warning: a cache that was destroyed may be one of another part of the program since. */
static HAK_COLD void warn_of_tcache(void) {
    static bool has_warned; /* [atomic] */
    if (!hak_swap_relaxed(&has_warned, true)) {
        hak_warn("a MALLOCX_TCACHE that tcache.create did not make, or that was destroyed; the "
                 "thread's own cache serves it");
    }
}

static bool is_packed(int flags) {
    int tcache = flags & FLAG_TCACHE;
    if (tcache > MALLOCX_TCACHE_NONE &&
        !hak_compat_is_tcache((unsigned)(tcache >> FLAG_TCACHE_SHIFT) - 2)) {
        warn_of_tcache();
    }
    return tcache == MALLOCX_TCACHE_NONE;
}

static bool has_arena(int flags) {
    unsigned arena = (unsigned)flags >> FLAG_ARENA_SHIFT;
    return arena == 0 || hak_compat_is_arena(arena - 1);
}

static size_t align_of(int flags) {
    size_t align = (size_t)1 << (flags & FLAG_LOG2);
    return align < HAK_BLOCK_ALIGN ? (size_t)HAK_BLOCK_ALIGN : align;
}

size_t hak_je_nallocx(size_t size, int flags) {
    size_t align = align_of(flags);
    unsigned sc = hak_sc_of_aligned(size == 0 ? 1 : size, align);
    if (sc < HAK_SC_COUNT) {
        return hak_sc_usable(&hak_sc_info[sc]);
    }
    bool is_possible =
        align <= PTRDIFF_MAX && size <= PTRDIFF_MAX - hak_most(align, HAK_UNIT_BYTES);
    return is_possible ? hak_align_up(size == 0 ? 1 : size, HAK_UNIT_BYTES) : 0;
}

static void *alloc_plain(size_t size, size_t align) {
    return align > HAK_BLOCK_ALIGN ? hak_slow_aligned(align, size) : hak_fast_malloc(size);
}

static void *alloc_packed(size_t size, size_t align) {
    unsigned sc = hak_sc_of_aligned(size, align);
    void *block =
        size != 0 && sc < HAK_SC_COUNT && !hak_tag_is_left_out(align) ? hak_compat_take(sc) : NULL;
    return block != NULL ? block : alloc_plain(size, align);
}

/* All usable bytes are zero. */
static void *alloc_zero(size_t size, size_t align, int flags) {
    if (size > HAK_SC_MAX_SIZE && align <= HAK_BLOCK_ALIGN) {
        return hak_slow_calloc(size);
    }
    void *block = is_packed(flags) ? alloc_packed(size, align) : alloc_plain(size, align);
    return block != NULL ? memset(block, 0, hak_usable_size(block)) : NULL;
}

void *hak_je_mallocx(size_t size, int flags) {
    size_t align = align_of(flags), usable = hak_je_nallocx(size, flags);
    if (usable == 0 || !has_arena(flags)) {
        errno = ENOMEM;
        return NULL;
    }
    if ((flags & MALLOCX_ZERO) != 0) {
        return alloc_zero(size == 0 ? 0 : usable, align, flags);
    }
    return is_packed(flags) ? alloc_packed(size, align) : alloc_plain(size, align);
}

/* All usable bytes: what was zero stays zero. */
static void *rallocx_by_copy(void *block, size_t old, size_t size, int flags) {
    void *fresh = hak_je_mallocx(size, flags & ~MALLOCX_ZERO);
    if (fresh != NULL) {
        memcpy(fresh, block, hak_least(old, hak_usable_size(fresh)));
        hak_je_dallocx(block, flags);
    }
    return fresh;
}

/* A block of a slab gets the class that mallocx would give; larger ones move units or pages. */
static void *rallocx_block(void *block, size_t old, size_t size, int flags) {
    size_t align = align_of(flags);
    bool is_aligned = ((uintptr_t)block & (align - 1)) == 0, is_large = old > HAK_SC_MAX_SIZE;
    if (is_aligned && old == hak_je_nallocx(size, flags)) {
        return block;
    }
    return is_large && align <= HAK_BLOCK_ALIGN ? hak_resize(block, size)
                                                : rallocx_by_copy(block, old, size, flags);
}

void *hak_je_rallocx(void *block, size_t size, int flags) {
    size = size == 0 ? 1 : size;
    if (block == NULL) {
        return hak_je_mallocx(size, flags);
    }
    if (hak_je_nallocx(size, flags) == 0 || !has_arena(flags)) {
        errno = ENOMEM;
        return NULL;
    }
    size_t old = hak_usable_size(block);
    void *moved = rallocx_block(block, old, size, flags);
    size_t now = moved != NULL && (flags & MALLOCX_ZERO) != 0 ? hak_usable_size(moved) : 0;
    if (now > old) {
        memset((char *)moved + old, 0, now - old);
    }
    return moved;
}

/* Blocks of slabs have one size, and larger ones move when they change theirs, so that only realloc
 * does it. */
size_t hak_je_xallocx(void *block, size_t size, size_t extra, int flags) {
    (void)size, (void)extra, (void)flags;
    return hak_usable_size(block);
}

size_t hak_je_sallocx(const void *block, int flags) {
    (void)flags;
    return hak_usable_size(block);
}

void hak_je_dallocx(void *block, int flags) {
    if (is_packed(flags)) {
        hak_compat_give(block);
    } else {
        hak_fast_free(block);
    }
}

void hak_je_sdallocx(void *block, size_t size, int flags) {
    if (block == NULL) {
        return;
    }
    if (is_packed(flags) && size <= hak_usable_size(block)) {
        hak_compat_give(block);
    } else {
        hak_fast_free_sized(block, align_of(flags), size);
    }
}

HAK_JE_ALIAS(mallocx)
HAK_JE_ALIAS(rallocx)
HAK_JE_ALIAS(xallocx)
HAK_JE_ALIAS(sallocx)
HAK_JE_ALIAS(dallocx)
HAK_JE_ALIAS(sdallocx)
HAK_JE_ALIAS(nallocx)
