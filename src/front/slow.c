/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc and free.
 *
 *   slow_take        pop, or refill the bin (refill.c)
 *   hak_slow_free    dispatch by the page-map entry: own class (bin full), other owner's class,
 *                    large, huge, nothing of ours
 *
 * Every function works on "the tcache of this operation": the thread's own, or the guest's while
 * its lock is held. */
#include "front/slow.h"

#include "base/knobs.h"
#include "front/event.h"
#include "front/fast.h"
#include "large/large.h"
#include "os/lock.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

bool hak_slow_is_inside(const void *address) {
    return hak_pagemap_superslab(address) != NULL || hak_large_covers(address);
}

/* --- which tcache ----------------------------------------------------------------------------- */

/* NULL: the guest's has to do, or the next allocator (force_libc). */
static hak_tcache_t *slow_own_tcache(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return HAK_LIKELY(!hak_tcache_is_empty(tcache)) ? tcache : hak_life_thread_start();
}

static bool slow_is_forced(void) {
    return HAK_UNLIKELY(hak_load_relaxed(&hak_knobs.force_libc));
}

/* --- malloc ----------------------------------------------------------------------------------- */

/* The first block of a bin was not handed out. It may be, if it holds what a program wrote. */
static HAK_COLD void take_check(void *block) {
    if (!hak_link_is_tagged(hak_link_word(block))) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL);
    }
    hak_hunt_check_mark(block);
    hak_link_set_mark(block, 0);
}

static void *slow_take(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request) {
    void *block = hak_fast_pop_class(tcache, sc);
    if (block != NULL) {
        return block;
    }
    if (HAK_UNLIKELY(tcache->bin[sc].head != NULL)) {
        take_check(tcache->bin[sc].head);
        return hak_fast_pop_class(tcache, sc);
    }
    return hak_slow_refill(tcache, sc, request);
}

static HAK_COLD void *guest_take(unsigned sc, const hak_request_t *request) {
    void *block = slow_take(hak_tcache_guest_enter(), sc, request);
    hak_tcache_guest_leave();
    return block;
}

static void *slow_result(void *block) {
    if (HAK_UNLIKELY(block == NULL)) {
        errno = ENOMEM;
    }
    return block;
}

/* Who calls it jumps here, so that the frame tells where the program is (guard/stack.c). */
static HAK_NOINLINE void *slow_malloc_class(unsigned sc, size_t size) {
    hak_request_t request = {.bytes = size, .align = HAK_BLOCK_ALIGN, .frame = HAK_FRAME()};
    hak_tcache_t *tcache = slow_own_tcache();
    if (HAK_LIKELY(tcache != NULL)) {
        return slow_result(slow_take(tcache, sc, &request));
    }
    if (slow_is_forced()) {
        return hak_next_allocator.malloc(size);
    }
    return slow_result(guest_take(sc, &request));
}

void *hak_slow_malloc(size_t size) {
    return slow_malloc_class(hak_sc_of(size), size);
}

static hak_large_result_t slow_large(size_t size, size_t align) {
    hak_large_result_t result = {0};
    hak_tcache_t *tcache = slow_own_tcache();
    if (HAK_UNLIKELY(size > HAK_SLOW_MOST_BYTES || align > HAK_SLOW_MOST_BYTES)) {
        return result; /* no use giving caches back for it */
    }
    if (tcache != NULL) {
        hak_owner_add(&tcache->counters.large_alloc, 1);
    } else if (slow_is_forced()) {
        result.block = align > HAK_BLOCK_ALIGN ? hak_next_allocator.memalign(align, size)
                                               : hak_next_allocator.malloc(size);
        return result;
    }
    result = hak_large_alloc(size, align);
    for (unsigned i = 0;
         HAK_UNLIKELY(result.block == NULL) && tcache != NULL && hak_slow_retry(tcache, i); i++) {
        result = hak_large_alloc(size, align);
    }
    hak_slow_spare();
    return result;
}

void *hak_slow_malloc_medium(size_t size) {
    if (HAK_UNLIKELY(size > HAK_SC_MAX_SIZE)) {
        return slow_result(slow_large(size, HAK_BLOCK_ALIGN).block);
    }
    unsigned sc = hak_sc_of_medium(size);
    void *block = hak_fast_pop_class(hak_tcache_self(hak_pagemap_base()), sc);
    return HAK_LIKELY(block != NULL) ? block : slow_malloc_class(sc, size);
}

void *hak_slow_calloc(size_t size) {
    if (slow_own_tcache() == NULL && slow_is_forced()) {
        return hak_next_allocator.calloc(1, size);
    }
    if (size <= HAK_SC_MAX_SIZE) {
        void *block = hak_fast_malloc(size);
        return block == NULL ? NULL : memset(block, 0, size);
    }
    hak_large_result_t result = slow_large(size, HAK_BLOCK_ALIGN);
    if (result.block != NULL && !result.is_zero) {
        hak_large_zero(result.block, size);
    }
    return slow_result(result.block);
}

/* Blocks at OS pages have no tag. A watched one has none anyway. */
static void *aligned_result(void *block, size_t align, unsigned sc) {
    if (hak_tag_is_left_out(align) && hak_tag_of(block) != 0) {
        block = hak_tag_take(block, hak_sc_info[sc].bytes);
    }
    return slow_result(block);
}

void *hak_slow_aligned(size_t align, size_t size) {
    unsigned sc = hak_sc_of_aligned(size == 0 ? 1 : size, align);
    hak_tcache_t *tcache = slow_own_tcache();
    if (HAK_UNLIKELY(tcache == NULL) && slow_is_forced()) {
        return hak_next_allocator.memalign(align, size);
    }
    if (HAK_UNLIKELY(sc == HAK_SC_COUNT)) {
        return slow_result(slow_large(size, align).block);
    }
    hak_request_t request = {.bytes = size, .align = align, .frame = HAK_FRAME()};
    void *block =
        HAK_LIKELY(tcache != NULL) ? slow_take(tcache, sc, &request) : guest_take(sc, &request);
    return aligned_result(block, align, sc);
}

/* --- free ------------------------------------------------------------------------------------- */

enum { OVERFLOW_BLOCKS = 32 }; /* leave a full bin at once: bounds the work of one free */

/* The bin is full. The newest leave, this block first: sorting checks and reads every block, and
 * these are still in the processor's cache. */
static void free_overflow(hak_tcache_t *tcache, unsigned sc, void *block) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = &tcache->side[sc];
    bin->room = 0;                 /* a push that failed may have left less */
    hak_event_tick(tcache, false); /* some threads do nothing but free */
    if (HAK_UNLIKELY(bin->room != 0)) {
        hak_slow_free(block); /* should an event have made room */
        return;
    }
    int32_t half = side->total / 2 + 1;
    int32_t leaving = half > OVERFLOW_BLOCKS ? OVERFLOW_BLOCKS : half;
    int32_t kept = side->total + 1 - leaving, capacity = hak_bin_capacity(side);
    side->overflowed = true;
    side->idle = 0;
    side->total = kept > capacity ? kept : capacity; /* what a refill made larger */
    hak_owner_add(&side->counters.overflow, 1);
    hak_link_set(block, bin->head);
    hak_blocks_t blocks = {.head = block, .count = (uint32_t)leaving};
    hak_store_relaxed(&bin->head, NULL); /* no hunt shall follow it while it is sorted */
    hak_store_hot(&bin->head, hak_tcache_spill(tcache, sc, blocks));
    bin->room = side->total - kept;
}

static HAK_NOINLINE void free_own(hak_tcache_t *tcache, unsigned sc, void *block) {
    if (HAK_UNLIKELY(tcache->bin[sc].head == block)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
    if (tcache->bin[sc].room <= 0 ||
        !hak_fast_push(tcache, (int64_t)sc * HAK_KIND_PER_CLASS - HAK_SC_PLACES, block)) {
        free_overflow(tcache, sc, block);
    }
}

/* The outbox of the class is full, or all together are. */
static HAK_NOINLINE void free_remote_full(hak_tcache_t *tcache, unsigned sc) {
    hak_event_tick(tcache, false);
    hak_outbox_shrink(tcache, sc);
}

void hak_slow_free_suspect(void *block) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), block);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    if (HAK_LIKELY(hak_slab_is_entry(entry))) {
        if (HAK_UNLIKELY(!hak_slab_is_freed_start(index, entry, block))) {
            hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
        }
        hak_hunt_check_freed(block, entry);
    }
    hak_slow_free(block);
}

/* Of a slab's entry, without a division. */
HAK_INLINE hak_bin_side_t *side_of_entry(hak_tcache_t *tcache, uint32_t entry) {
    size_t bytes = (entry & HAK_KIND_MASK) * (sizeof(hak_bin_side_t) / HAK_KIND_PER_CLASS);
    return (hak_bin_side_t *)((char *)tcache->side + bytes);
}

/* A block of another owner. Nothing is read here that other threads write to, but the block. */
HAK_INLINE void free_remote(hak_tcache_t *tcache, uint32_t entry, void *block, uintptr_t index) {
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    hak_bin_side_t *side = side_of_entry(tcache, entry);
    if (HAK_UNLIKELY(!hak_slab_is_freed_start(index, entry, block))) {
        hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
    }
    if (HAK_AUDIT) { /* else when the outbox is emptied */
        hak_slab_check_freed(hak_slab_of(block), block);
    }
    if (HAK_UNLIKELY(block == side->outbox.head)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
    if (HAK_UNLIKELY(hak_slab_lacks_tags(entry))) {
        hak_hunt_check_freed(block, entry);
        if (hak_load_relaxed(&hak_slab_of(block)->owner) == tcache->home) {
            free_own(tcache, hak_sc_of_entry(entry), block); /* as any other of its own */
            return;
        }
    }
    hak_link_set(block, side->outbox.head);
    hak_store_hot(&side->outbox.head, block);
    side->outbox.count++;
    tcache->outbox_bytes += info->bytes;
    if (HAK_UNLIKELY(--side->outbox_room <= 0 ||
                     tcache->outbox_bytes >= hak_load_relaxed(&hak_knobs.outbox_bytes))) {
        free_remote_full(tcache, hak_sc_of_entry(entry));
    }
}

/* Without a tcache: as a batch of one. */
static HAK_COLD void free_as_guest(void *block) {
    hak_slab_t *slab = hak_slab_of(block);
    hak_slab_check_freed(slab, block);
    hak_hunt_check_freed(block, hak_pagemap_get(hak_pagemap_base(), block));
    hak_batch_t batch = {.head = block, .tail = block, .count = 1};
    hak_count(guest_use);
    hak_remote_push(slab, &batch);
}

static HAK_COLD void free_foreign(void *block) {
    int saved = errno; /* dlsym and another free may set it */
    hak_life_process_start();
    if (!slow_is_forced() && hak_slow_is_inside(block)) {
        hak_fatal(HAK_FATAL_DEAD_FREE, block, NULL);
    }
    if (slow_is_forced() || (hak_next_allocator.owns != NULL && hak_next_allocator.owns(block))) {
        hak_count(foreign_free);
        hak_next_allocator.free(block);
        errno = saved;
        return;
    }
    hak_fatal(HAK_FATAL_INVALID_FREE, block, NULL);
}

static HAK_NOINLINE void free_large(void *block, uint32_t entry) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_owner_add(&tcache->counters.large_free, 1);
        hak_event_tick(tcache, false);
    }
    if (!hak_large_free(block, entry)) {
        hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
    }
}

/* Frees a thread makes before it gets a tcache for them. At its very end, its exit hook over or
 * never to come, a thread frees a little; one that goes on freeing wants an outbox. */
enum { GUEST_FREES = 64 };

static HAK_TLS uint8_t guest_frees; /* [owner] */

static hak_tcache_t *free_tcache(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (HAK_LIKELY(!hak_tcache_is_empty(tcache))) {
        return tcache;
    }
    if (guest_frees < GUEST_FREES) {
        guest_frees++;
        hak_life_process_start();
        return NULL;
    }
    return hak_life_thread_start();
}

/* Small blocks. */
static void free_small(void *block) {
    hak_tcache_t *tcache = free_tcache();
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), block);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    if (HAK_UNLIKELY(tcache == NULL)) {
        free_as_guest(block);
    } else if (hak_difference_is_own(hak_entry_signed(entry) - tcache->entry_end)) {
        hak_slow_free_suspect(block);
    } else {
        free_remote(tcache, entry, block, index);
    }
}

/* The rest of hak_slow_free_foreign: no tcache, NULL, large, not ours. */
static HAK_NOINLINE void free_other(void *block, uint32_t entry) {
    if (HAK_LIKELY(hak_slab_is_entry(entry))) {
        free_small(block);
        return;
    }
    if (block == NULL) {
        return;
    }
    switch (entry & HAK_KIND_MASK) {
    case HAK_KIND_LARGE:
    case HAK_KIND_HUGE:
        free_large(block, entry);
        break;
    case HAK_KIND_LARGE_BODY:
        hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
        break;
    case HAK_KIND_GUARD:
        hak_guard_free(block);
        break;
    default:
        free_foreign(block);
        break;
    }
}

void hak_slow_free_foreign(void *block, hak_tcache_t *tcache, int64_t difference, uintptr_t index) {
    uint32_t entry = (uint32_t)(difference + tcache->entry_end);
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry) || side_of_entry(tcache, entry)->outbox_room == 0)) {
        /* the second: no tcache, whose outboxes take nothing */
        free_other(block, entry);
    } else {
        free_remote(tcache, entry, block, index);
    }
}

/* A push failed, and now the slab is another owner's: adopted between the two looks. */
static HAK_COLD void free_settle(hak_tcache_t *tcache, uint32_t entry) {
    if (hak_slab_is_entry(entry) && tcache->bin[hak_sc_of_entry(entry)].room < 0) {
        tcache->bin[hak_sc_of_entry(entry)].room = 0;
    }
}

void hak_slow_free(void *block) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    uint32_t entry = hak_pagemap_at(base, index);
    hak_tcache_t *tcache = hak_tcache_self(base);
    int64_t difference = hak_entry_signed(entry) - tcache->entry_end;
    if (HAK_LIKELY(hak_difference_is_own(difference))) {
        free_own(tcache, hak_sc_of_entry(entry), block);
    } else {
        free_settle(tcache, entry);
        hak_slow_free_foreign(block, tcache, difference, index);
    }
}

/* Also what realloc leaves in place has another size than its class. When memory was out it left
 * any block that was to shrink. */
static bool free_is_size(const hak_sc_info_t *info, uint32_t entry, size_t align, size_t size) {
    size_t usable = hak_sc_usable(info);
    if (size >= info->keep_from || size > usable / 2 || hak_load_relaxed(&hak_resize_has_kept)) {
        return size <= usable;
    }
    return hak_sc_of_aligned(size == 0 ? 1 : size, align == 0 ? 1 : align) ==
           hak_sc_of_entry(entry);
}

void hak_slow_free_sized(void *block, size_t align, size_t size) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    uint32_t kind = entry & HAK_KIND_MASK;
    bool is_size = true;
    if (HAK_LIKELY(hak_slab_is_entry(entry))) {
        is_size = free_is_size(hak_sc_info_of_entry(entry), entry, align, size);
    } else if (kind == HAK_KIND_LARGE || kind == HAK_KIND_HUGE) {
        size_t bytes = hak_large_usable(block, entry);
        is_size = bytes == 0 || size <= bytes; /* 0: inside a block, which free will say */
    }
    if (HAK_UNLIKELY(!is_size) && hak_load_relaxed(&hak_knobs.sized_check)) {
        hak_fatal(HAK_FATAL_SIZE_MISMATCH, block, NULL);
    }
    hak_fast_free(block);
}
