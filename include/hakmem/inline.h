/* SPDX-License-Identifier: MIT
 *
 * The hit paths of malloc and free as inline functions, for programs that are linked with
 * libhakmem.a: no call, no PLT, and for a constant size no compare. Blocks are those of the
 * library: each function here may be mixed with malloc, free and the functions of hakmem.h. What
 * the hit path cannot serve is passed to the function of the same name in hakmem.h, so errno,
 * errors, alignment and thread safety are the same.
 *
 *   #define HAKMEM_INLINE_MALLOC
 *   #include <hakmem/inline.h>
 *
 * makes malloc(n) and free(p), when called as such in this file (C only), the inline functions.
 *
 * C++: hakmem/inline_operators.hpp. A program that includes this header fits one version of the
 * library: another one, a hardened one too, aborts at start with one line. The shared library does
 * not have what it needs: linking fails. */
#ifndef HAKMEM_INLINE_H
#define HAKMEM_INLINE_H

#include "hakmem.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HAK_HIT_NOTHROW noexcept
#else
#define HAK_HIT_NOTHROW
#endif
#define HAK_HIT_INLINE static inline __attribute__((always_inline))

/* What the library's own hit path uses; its build fails where they differ. */
#define HAK_HIT_FORM 2             /* counts changes that these numbers do not show */
#define HAK_HIT_TABLE_BYTES 2112   /* of offsets of bins, in words, by size; in front of the map */
#define HAK_HIT_ROOT_BYTES 270336  /* from the map to its root */
#define HAK_HIT_SMALL_BYTES 2048   /* largest size of the table */
#define HAK_HIT_UNIT_LOG2 16       /* bytes of memory for an entry of the map */
#define HAK_HIT_FREE_MARKER 0xa7f9 /* lowest 16 bits of a free block; the others: the next one */
#define HAK_HIT_MARK 0xd1b70000u   /* the third 32 bits of a block marked elsewhere */
#define HAK_HIT_LAYOUT                                                                             \
    (HAK_VERSION_MAJOR * 1000000ul + HAK_VERSION_MINOR * 1000ul + HAK_VERSION_PATCH +              \
     ((unsigned long)HAK_HIT_ROOT_BYTES << 24) + ((unsigned long)HAK_HIT_FORM << 56))

typedef struct hak_hit_bin {
    void *head;
    int32_t slots_left;
    uint32_t size_reciprocal;
} hak_hit_bin_t;
typedef uint64_t __attribute__((may_alias)) hak_hit_word_t;
typedef uint32_t __attribute__((may_alias)) hak_hit_half_t;

extern const unsigned char hak_hit_map[] __asm__("hak_pagemap");
#if defined(__PIC__) && !defined(__PIE__)
#define HAK_HIT_TLS __attribute__((tls_model("initial-exec")))
#else /* code of an executable */
#define HAK_HIT_TLS __attribute__((tls_model("local-exec")))
#endif
extern __thread HAK_HIT_TLS uintptr_t hak_hit_cache __asm__("hak_tcache_offset");

/* Aborts with one line unless the layout is that of the library. */
void hak_inline_check(unsigned long layout) HAK_HIT_NOTHROW;

#ifndef HAK_HIT_OF_LIBRARY
static __attribute__((constructor)) void hak_hit_start(void) {
    hak_inline_check(HAK_HIT_LAYOUT);
}
#endif

HAK_HIT_INLINE uintptr_t hak_hit_base(void) {
    return (uintptr_t)hak_hit_map + HAK_HIT_TABLE_BYTES;
}

/* NULL: the bin is empty, or its first block is not to be handed out. size <= HAK_HIT_SMALL_BYTES
 */
HAK_HIT_INLINE void *hak_hit_pop(size_t size) {
    uintptr_t base = hak_hit_base();
    uint64_t offset = *((const unsigned char *)base - HAK_HIT_TABLE_BYTES + size);
    hak_hit_bin_t *bin = (hak_hit_bin_t *)((uint64_t *)(hak_hit_cache + base) + offset);
    hak_hit_word_t *block = (hak_hit_word_t *)bin->head;
    if (__builtin_expect(block == NULL, 0)) {
        return NULL;
    }
    uint64_t word = *block;
    if (__builtin_expect((uint16_t)word != HAK_HIT_FREE_MARKER ||
                             ((hak_hit_half_t *)block)[2] == HAK_HIT_MARK,
                         0)) {
        return NULL;
    }
    bin->head = (void *)(word >> 16);
    bin->slots_left++;
    *block = 0;
    return block;
}

/* The kind of the block's unit in the page map: the offset of its bin, in words. */
HAK_HIT_INLINE uint64_t hak_hit_kind(uintptr_t base, const void *block) {
    const uintptr_t *root = (const uintptr_t *)(base + HAK_HIT_ROOT_BYTES);
    uintptr_t unit = (uintptr_t)block >> HAK_HIT_UNIT_LOG2;
    uintptr_t index = (uint16_t)unit + root[(uint32_t)unit >> 16];
    return *((const unsigned char *)base + index * 4);
}

/* 0: pushed; else the free is not the hit path's. */
HAK_HIT_INLINE int hak_hit_push(hak_hit_bin_t *bin, void *block) {
    if (__builtin_expect((uint32_t)((uint16_t)(uintptr_t)block * bin->size_reciprocal) >=
                                 bin->size_reciprocal ||
                             (uint16_t) * (hak_hit_word_t *)block == HAK_HIT_FREE_MARKER ||
                             --bin->slots_left < 0,
                         0)) {
        return 1;
    }
    *(hak_hit_word_t *)block = (uintptr_t)bin->head << 16 | HAK_HIT_FREE_MARKER;
    bin->head = block;
    return 0;
}

/* As hak_malloc. */
HAK_HIT_INLINE void *hak_inline_malloc(size_t size) {
    void *block = __builtin_expect(size <= HAK_HIT_SMALL_BYTES, 1) ? hak_hit_pop(size) : NULL;
    return __builtin_expect(block != NULL, 1) ? block : hak_malloc(size);
}

/* As hak_free. */
HAK_HIT_INLINE void hak_inline_free(void *block) {
    uintptr_t base = hak_hit_base();
    uint64_t kind = hak_hit_kind(base, block);
    hak_hit_bin_t *bin = (hak_hit_bin_t *)((uint64_t *)(hak_hit_cache + base) + kind);
    if (__builtin_expect(hak_hit_push(bin, block) != 0, 0)) {
        hak_free(block);
    }
}

/* As hak_free_sized: with the size that the block was asked for. A constant size saves the search
 * for its bin. */
HAK_HIT_INLINE void hak_inline_free_sized(void *block, size_t size) {
    if (size > HAK_HIT_SMALL_BYTES) {
        hak_free_sized(block, size);
        return;
    }
    uintptr_t base = hak_hit_base();
    uint64_t offset = *((const unsigned char *)base - HAK_HIT_TABLE_BYTES + size);
    hak_hit_bin_t *bin = (hak_hit_bin_t *)((uint64_t *)(hak_hit_cache + base) + offset);
    if (__builtin_expect(hak_hit_kind(base, block) != offset || hak_hit_push(bin, block) != 0, 0)) {
        hak_free_sized(block, size);
    }
}

#ifdef __cplusplus
}
#endif

#if defined(HAKMEM_INLINE_MALLOC) && !defined(__cplusplus)
#include <stdlib.h>
#define malloc(size) hak_inline_malloc(size)
#define free(block) hak_inline_free(block)
#endif

#endif
