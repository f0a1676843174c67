/* SPDX-License-Identifier: MIT */
#include "front/zero_size.h"

#include "os/lock.h"
#include "os/os.h"

enum {
    REGION_BYTES = 1 << 20, /* of addresses; its record has 8 KiB */
    REGION_COUNT = 64,      /* 4 M blocks; more get blocks of the smallest class */
    REGION_WORDS = REGION_BYTES / HAK_BLOCK_ALIGN / 64,
    WORD_BYTES = HAK_BLOCK_ALIGN * 64,
    REFUSED_REQUESTS = 256, /* after the kernel refused a region, until it is asked again */
};

typedef struct zero_size_region {
    char *base;                  /* [const] */
    uint32_t left;               /* [atomic] places without a block: a hint */
    uint32_t next;               /* [atomic] word of `used` to look at first */
    uint64_t used[REGION_WORDS]; /* [atomic] bit i: place i has a block */
} zero_size_region_t;

HAK_LOCKED_STATE
HAK_LARGE_STATE(4) zero_size_region_t *hak_zero_size_region[REGION_COUNT]; /* [atomic] */
HAK_LOCKED_STATE uint32_t hak_zero_size_refused;                           /* [lock HUGE] */

static zero_size_region_t *region_map(uint32_t index) {
    char *base = hak_os_reserve(REGION_BYTES, HAK_UNIT_BYTES);
    bool is_ready = base != NULL && hak_pagemap_prepare(base, REGION_BYTES);
    zero_size_region_t *region = is_ready ? hak_meta_alloc(sizeof *region) : NULL;
    if (region != NULL) {
        region->base = base;
        region->left = REGION_WORDS * 64;
        hak_pagemap_set(base, REGION_BYTES / HAK_UNIT_BYTES, index << 8 | HAK_KIND_ZERO_SIZE);
    } else if (base != NULL) {
        hak_os_unmap(base, REGION_BYTES);
    }
    return region;
}

/* NULL: the kernel refused it, lately at least. */
static zero_size_region_t *region_make(uint32_t index) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    zero_size_region_t *region = hak_load_relaxed(&hak_zero_size_region[index]);
    if (region == NULL && hak_zero_size_refused == 0) {
        region = region_map(index);
        hak_zero_size_refused = region == NULL ? REFUSED_REQUESTS : 0;
        hak_store_release(&hak_zero_size_region[index], region); /* pairs ZERO-SIZE */
    } else if (region == NULL) {
        hak_zero_size_refused--;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return region;
}

/* The bits of places in a word, and the distance of such words, at multiples of `align`. */
static uint64_t bits_at(size_t align, uint32_t *step) {
    size_t places = align / HAK_BLOCK_ALIGN;
    *step = places > 64 ? (uint32_t)places / 64 : 1;
    return places >= 64 ? 1 : UINT64_MAX / ((1ull << places) - 1);
}

/* Looks at each word once. Goes on by a word each time, so that a place is not used again soon. */
static void *region_take(zero_size_region_t *region, size_t align) {
    uint32_t step, next = hak_load_relaxed(&region->next);
    uint64_t bits = bits_at(align, &step);
    for (uint32_t i = 0; i < REGION_WORDS; i += step) {
        uint32_t word = hak_align_down(next + i, step) % REGION_WORDS;
        uint64_t unused = ~hak_load_relaxed(&region->used[word]) & bits;
        uint64_t bit = unused & -unused;
        if (bit != 0 && (hak_or_relaxed(&region->used[word], bit) & bit) == 0) {
            (void)hak_sub_relaxed(&region->left, 1u);
            hak_store_relaxed(&region->next, word + 1);
            return region->base + word * WORD_BYTES + hak_ctz(bit) * HAK_BLOCK_ALIGN;
        }
    }
    return NULL;
}

void *hak_zero_size_alloc(size_t align) {
    void *block = NULL;
    for (uint32_t i = 0; i < REGION_COUNT && align <= HAK_UNIT_BYTES; i++) {
        zero_size_region_t *region =
            hak_load_acquire(&hak_zero_size_region[i]); /* pairs ZERO-SIZE */
        if (region == NULL && (region = region_make(i)) == NULL) {
            break;
        }
        bool is_full = hak_load_relaxed(&region->left) == 0;
        block = is_full ? NULL : region_take(region, align);
        if (block != NULL || (!is_full && align > HAK_BLOCK_ALIGN)) {
            break; /* a place with an alignment is looked for in one region only */
        }
    }
    return block;
}

/* The word of the place that begins at the address, and its bit; false: none does. */
static bool place_of(const void *block, uint32_t entry, uint64_t **word, uint64_t *bit) {
    /* pairs ZERO-SIZE */
    zero_size_region_t *region = hak_load_acquire(&hak_zero_size_region[entry >> 8]);
    size_t offset = (uintptr_t)block - (uintptr_t)region->base;
    *word = &region->used[offset % REGION_BYTES / WORD_BYTES];
    *bit = 1ull << offset / HAK_BLOCK_ALIGN % 64;
    return offset < REGION_BYTES && offset % HAK_BLOCK_ALIGN == 0;
}

void hak_zero_size_free(const void *block, uint32_t entry) {
    uint64_t *word, bit;
    hak_require(place_of(block, entry, &word, &bit), HAK_FATAL_INTERIOR_FREE, block);
    hak_require((hak_and_relaxed(word, ~bit) & bit) != 0, HAK_FATAL_DOUBLE_FREE, block);
    (void)hak_add_relaxed(&hak_zero_size_region[entry >> 8]->left, 1u);
}

void hak_zero_size_check(const void *block, uint32_t entry, hak_fatal_kind_t kind) {
    uint64_t *word, bit;
    bool is_place = place_of(block, entry, &word, &bit);
    hak_require(is_place && (hak_load_relaxed(word) & bit) != 0, kind, block);
}
