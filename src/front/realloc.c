/* SPDX-License-Identifier: MIT
 *
 * realloc and usable size. Small blocks stay while the new size fits and fills more than half of
 * them; large ones move units or pages; only the rest is copied. */
#include "front/fast.h"
#include "front/find_free.h"
#include "front/underlying.h"
#include "front/zero_size.h"
#include "large/large.h"

#include <errno.h>
#include <string.h>

enum {
    RESIZE_SLACK_FROM = 1024,          /* blocks from this on grow by at least a quarter */
    RESIZE_COUNTED_BYTES = 128u << 10, /* larger copies are counted: pages should have moved */
};

bool hak_resize_has_kept;

/* Usable size of a block of a slab. Another thread may write to the block meanwhile. */
static HAK_UNORDERED size_t slab_usable(const void *block, uint32_t entry) {
    if (HAK_UNLIKELY(!hak_slab_is_block(hak_slab_of(block), block))) {
        hak_fatal(HAK_FATAL_INVALID_USABLE_SIZE, block, "inside a block");
    }
    hak_tag_check(block, HAK_FATAL_FREED_USABLE_SIZE);
    hak_slow_require_used(block, entry, HAK_FATAL_FREED_USABLE_SIZE);
    return hak_sc_usable(hak_sc_info_of_entry(entry));
}

/* Usable size of another block by its entry; 0: not ours. Interior addresses are fatal. */
static size_t own_usable(const void *block, uint32_t entry, hak_fatal_kind_t kind) {
    uint32_t low = entry & HAK_KIND_MASK;
    size_t bytes = 0;
    if (low == HAK_KIND_LARGE || low == HAK_KIND_HUGE) {
        bytes = hak_large_usable(block, entry);
    } else if (low == HAK_KIND_GUARD) {
        bytes = hak_services.guard_usable(block, kind);
    } else if (low != HAK_KIND_LARGE_BODY) {
        return 0;
    }
    if (bytes == 0) {
        hak_fatal(kind, block, "inside a block");
    }
    return bytes;
}

size_t hak_usable_size(const void *block) {
    if (block == NULL) {
        return 0;
    }
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    if (HAK_LIKELY(hak_slab_is_entry(entry))) {
        return slab_usable(block, entry);
    }
    if ((entry & HAK_KIND_MASK) == HAK_KIND_ZERO_SIZE) {
        hak_zero_size_check(block, entry, HAK_FATAL_FREED_USABLE_SIZE);
        return 0;
    }
    size_t bytes = own_usable(block, entry, HAK_FATAL_INVALID_USABLE_SIZE);
    if (HAK_LIKELY(bytes != 0)) {
        return bytes;
    }
    hak_slow_require_foreign(block, HAK_FATAL_INVALID_USABLE_SIZE);
    return hak_underlying_usable_size((void *)block);
}

size_t hak_good_bytes(size_t size) {
    if (size == 0) {
        return 0;
    }
    if (size <= HAK_SC_MAX_SIZE) {
        return hak_sc_usable(&hak_sc_info[hak_sc_of(size)]);
    }
    return size > PTRDIFF_MAX - HAK_UNIT_BYTES ? 0 : hak_align_up(size, HAK_UNIT_BYTES);
}

/* The size to request, so that a block that grows in small steps is copied less often. Small
 * blocks, as they may be very many, get the exact size (docs/experiments/0011-realloc-small.md). */
HAK_INLINE size_t with_slack(size_t usable, size_t size) {
    size_t ample = usable + usable / 4;
    bool may = usable >= RESIZE_SLACK_FROM && usable < size && ample <= HAK_SC_MAX_BYTES;
    return may && size < ample ? ample : size;
}

/* Memory is out; without the slack it may suffice. */
static HAK_COLD void *resize_scarce(size_t asked, size_t size, int saved) {
    void *fresh = asked > size ? hak_fast_malloc(size) : NULL;
    if (fresh != NULL) {
        errno = saved;
    }
    return fresh;
}

static HAK_COLD void *resize_failed(void *block, size_t usable, size_t size, int saved) {
    if (size > usable) {
        return NULL;
    }
    hak_store_relaxed(&hak_resize_has_kept, true);
    errno = saved; /* a shrink cannot fail: the block stays as it is */
    return block;
}

HAK_INLINE void *resize_by_copy(void *block, size_t usable, size_t size) {
    size_t ample = with_slack(usable, size);
    int saved = size <= usable || ample != size ? errno : 0; /* a failed malloc may be no failure */
    void *fresh = hak_fast_malloc(ample);
    if (HAK_UNLIKELY(fresh == NULL) && (fresh = resize_scarce(ample, size, saved)) == NULL) {
        return resize_failed(block, usable, size, saved);
    }
    size_t kept = usable < size ? usable : size;
    __asm__("" : "+r"(kept)); /* hides its range: gcc would copy by slow string instructions */
    memcpy(fresh, block, kept);
    hak_fast_free(block);
    return fresh;
}

static HAK_COLD void *resize_foreign(void *block, size_t size) {
    hak_slow_require_foreign(block, HAK_FATAL_INVALID_REALLOC);
    hak_count(foreign_free);
    return hak_underlying_realloc(block, size);
}

/* For the profiler this is a free and an allocation. Its record goes before the address may. */
static void *resize_large(void *block, uint32_t entry, size_t size) {
    bool has_records = hak_load_relaxed(hak_profile_cell(block)) != 0;
    uint64_t record = HAK_UNLIKELY(has_records) ? hak_services.profile_take(block) : 0;
    void *moved = hak_large_resize(block, entry, size);
    if (HAK_UNLIKELY(record != 0)) {
        hak_services.profile_end(block, record, moved == NULL);
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_rate) != 0) && moved != NULL) {
        hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
        hak_services.profile_large(hak_tcache_is_empty(tcache) ? NULL : tcache, moved, size);
    }
    return moved;
}

/* Of size 0, large, guarded, or not ours. */
static HAK_NOINLINE void *resize_other(void *block, uint32_t entry, size_t size) {
    if ((entry & HAK_KIND_MASK) == HAK_KIND_ZERO_SIZE) {
        hak_zero_size_check(block, entry, HAK_FATAL_FREED_REALLOC);
        return resize_by_copy(block, 0, size);
    }
    size_t usable = own_usable(block, entry, HAK_FATAL_INVALID_REALLOC);
    if (HAK_UNLIKELY(usable == 0)) {
        return resize_foreign(block, size);
    }
    if (HAK_UNLIKELY(size > HAK_SLOW_MOST_BYTES)) {
        return NULL; /* reclaim cannot help */
    }
    bool is_guarded = (entry & HAK_KIND_MASK) == HAK_KIND_GUARD;
    void *moved = is_guarded ? NULL : resize_large(block, entry, size);
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (moved != NULL) {
        if (!hak_tcache_is_empty(tcache)) {
            tcache->given_bytes += usable;
            tcache->taken_bytes +=
                hak_large_usable(moved, hak_pagemap_get(hak_pagemap_base(), moved));
        }
        hak_wanted_serve();
        return moved;
    }
    size_t kept = usable < size ? usable : size;
    if (kept > RESIZE_COUNTED_BYTES) {
        hak_count_by(realloc_copied_bytes, kept);
    }
    return resize_by_copy(block, usable, size);
}

/* The moved block stays in its partition. */
HAK_INLINE void *resize(void *block, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    uint32_t entry = hak_pagemap_at(base, index);
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry))) {
        return resize_other(block, entry, size);
    }
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    if (HAK_UNLIKELY(!hak_slab_is_start(index, info, block))) {
        hak_fatal(HAK_FATAL_INVALID_REALLOC, block, "inside a block");
    }
    hak_tag_check(block, HAK_FATAL_FREED_REALLOC);
    bool looks_free = hak_link_has_free_marker(hak_link_word(block));
    hak_require(!looks_free || !hak_find_free_block(hak_tag_strip(block)), HAK_FATAL_FREED_REALLOC,
                block);
    size_t least = info->keep_from, usable = hak_sc_usable(info);
    if (HAK_UNLIKELY(size - least <= usable - least)) {
        return block; /* the program wrote a word like a free block's, or the slab is apart */
    }
    return resize_by_copy(block, usable, size);
}

void *hak_resize(void *block, size_t size) {
    if (!HAK_HARDEN) {
        return resize(block, size);
    }
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    hak_partition_t partition = hak_partition_of(block, entry);
    bool is_known = hak_slab_is_entry(entry) ? !hak_slab_entry_is_sampled(entry)
                                             : (entry & HAK_KIND_MASK) == HAK_KIND_LARGE;
    if (!is_known || /* then the calling thread decides */
        partition == hak_tcache_partition(hak_tcache_self(hak_pagemap_base()))) {
        return resize(block, size);
    }
    uintptr_t before = hak_partition_enter(partition);
    void *moved = resize(block, size);
    hak_partition_leave(before);
    return moved;
}
