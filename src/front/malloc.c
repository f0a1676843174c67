/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc, calloc and aligned allocation. A request uses the thread's own tcache, else
 * the fallback tcache under its lock; with force_libc, the underlying allocator. */
#include "base/knobs.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "front/refill.h"
#include "front/zero_size.h"
#include "large/large.h"
#include "os/libc.h"

#include <errno.h>
#include <string.h>

size_t hak_profile_rate;
HAK_LARGE_STATE(8) uint32_t hak_profile_large_count[HAK_PROFILE_PLACES];

/* --- which tcache ----------------------------------------------------------------------------- */

/* Without a tcache of its own, the fallback tcache serves the thread, or the underlying allocator
 * (force_libc). */
static bool is_forced(void) {
    return HAK_UNLIKELY(hak_load_relaxed(&hak_knobs.force_libc));
}

static HAK_COLD void *underlying_malloc(size_t align, size_t size) {
    return align > HAK_BLOCK_ALIGN ? hak_libc_memalign(align, size) : hak_libc_malloc(size);
}

static void *malloc_result(void *block) {
    if (HAK_UNLIKELY(block == NULL)) {
        errno = ENOMEM;
    }
    return block;
}

/* --- blocks of slabs -------------------------------------------------------------------------- */

/* The hit path refused a bin's first block. Fatal, unless the program wrote HAK_LINK_MARK there. */
static HAK_COLD void check_refused(void *block) {
    hak_require(hak_link_has_free_marker(hak_link_word(block)), HAK_FATAL_CORRUPT_LINK, block);
    hak_check_mark(block);
    hak_link_set_mark(block, 0);
}

/* While the heap profiler samples, every request comes here: a block of the bin, as on the hit
 * path, whose bytes are counted. NULL: a sample is due, the thread's distance is of another rate,
 * or the bin has no block to hand out. In the child of a fork a thread that once sampled may have a
 * distance of rate 0, which is counted down without effect. */
HAK_INLINE void *take_counted(unsigned sc, size_t rate) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    int64_t bytes = hak_sc_info[sc].bytes;
    void *block = NULL;
    if (HAK_LIKELY(tcache->profile_left > bytes && tcache->profile_rate == rate)) {
        block = hak_fast_pop_class(tcache, sc);
    }
    if (HAK_LIKELY(block != NULL)) {
        tcache->profile_left -= bytes;
    }
    return block;
}

static void *take(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request) {
    void *block = NULL;
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_rate) != 0)) {
        block = hak_services.profile_sample(tcache, sc, request);
    }
    block = HAK_LIKELY(block == NULL) ? hak_fast_pop_class(tcache, sc) : block;
    if (block != NULL) {
        return block;
    }
    if (HAK_UNLIKELY(tcache->bin[sc].head != NULL)) {
        check_refused(tcache->bin[sc].head);
        return hak_fast_pop_class(tcache, sc);
    }
    return hak_slow_refill(tcache, sc, request);
}

static HAK_COLD void *take_from_fallback(unsigned sc, const hak_request_t *request) {
    void *block = take(hak_tcache_fallback_lock(), sc, request);
    hak_tcache_fallback_unlock();
    return block;
}

HAK_INLINE void *malloc_small(unsigned sc, size_t align, size_t size) {
    hak_request_t request = {.bytes = size, .align = align};
    hak_tcache_t *tcache = hak_tcache_own();
    if (HAK_LIKELY(tcache != NULL)) {
        return take(tcache, sc, &request);
    }
    return is_forced() ? underlying_malloc(align, size) : take_from_fallback(sc, &request);
}

static HAK_NOINLINE void *malloc_class(unsigned sc, size_t size) {
    return malloc_result(malloc_small(sc, HAK_BLOCK_ALIGN, size));
}

static HAK_NOINLINE void *aligned_block(size_t align, size_t size);

/* A place without memory; a watched block, if one is due; or a block of the smallest class. */
static HAK_NOINLINE void *malloc_zero_size(size_t align) {
    hak_request_t request = {.bytes = 0, .align = align};
    hak_tcache_t *tcache = hak_tcache_own();
    if (HAK_UNLIKELY(tcache == NULL && is_forced())) {
        return malloc_result(underlying_malloc(align, 0));
    }
    bool is_due = tcache != NULL && tcache->guard_left <= 1 && hak_services.guard_sample != NULL;
    void *block = is_due ? hak_services.guard_sample(tcache, &request) : NULL;
    block = block != NULL ? block : hak_zero_size_alloc(align);
    return block != NULL ? block : aligned_block(align, 1);
}

void *hak_slow_malloc(size_t size) {
    if (HAK_UNLIKELY(size == 0)) {
        return malloc_zero_size(HAK_BLOCK_ALIGN);
    }
    unsigned sc = hak_sc_of_small(size);
    void *block = take_counted(sc, hak_load_relaxed(&hak_profile_rate));
    return HAK_LIKELY(block != NULL) ? block : malloc_class(sc, size);
}

/* --- larger blocks ---------------------------------------------------------------------------- */

static hak_large_result_t malloc_large(size_t size, size_t align) {
    hak_large_result_t result = {0};
    hak_tcache_t *tcache = hak_tcache_own();
    if (HAK_UNLIKELY(size > HAK_SLOW_MOST_BYTES || align > HAK_SLOW_MOST_BYTES)) {
        return result; /* no reclaim can help */
    }
    if (tcache != NULL) {
        hak_single_writer_add(&tcache->counters.large_alloc, 1);
    } else if (is_forced()) {
        result.block = underlying_malloc(align, size);
        return result;
    }
    hak_partition_t partition = hak_tcache_partition(tcache);
    size_t wide = align > HAK_UNIT_BYTES ? size + align : size; /* what is mapped for it */
    result = hak_large_alloc(partition, size, align);
    for (unsigned i = 0;
         HAK_UNLIKELY(result.block == NULL) && hak_services.memory_out(tcache, i, wide); i++) {
        result = hak_large_alloc(partition, size, align);
    }
    if (HAK_LIKELY(tcache != NULL)) {
        hak_single_writer_add(&tcache->counters.oom, result.block == NULL);
        tcache->taken_bytes += result.block != NULL ? hak_align_up(size, HAK_UNIT_BYTES) : 0;
        hak_tally_follow(tcache);
    }
    hak_wanted_serve();
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_rate) != 0) && result.block != NULL) {
        hak_services.profile_large(tcache, result.block, size);
    }
    return result;
}

void *hak_malloc_medium(size_t size) {
    if (HAK_UNLIKELY(size > HAK_SC_MAX_SIZE)) {
        return malloc_result(malloc_large(size, HAK_BLOCK_ALIGN).block);
    }
    unsigned sc = hak_sc_of_medium(size);
    size_t rate = hak_load_relaxed(&hak_profile_rate);
    void *block = HAK_UNLIKELY(rate != 0)
                      ? take_counted(sc, rate)
                      : hak_fast_pop_class(hak_tcache_self(hak_pagemap_base()), sc);
    return HAK_LIKELY(block != NULL) ? block : malloc_class(sc, size);
}

/* --- calloc, aligned -------------------------------------------------------------------------- */

void *hak_slow_calloc(size_t size) {
    if (hak_tcache_own() == NULL && is_forced()) {
        return hak_libc_calloc(1, size);
    }
    if (size <= HAK_SC_MAX_SIZE) {
        void *block = hak_fast_malloc(size);
        return block == NULL ? NULL : memset(block, 0, size);
    }
    hak_large_result_t result = malloc_large(size, HAK_BLOCK_ALIGN);
    if (result.block != NULL && !result.is_zero) {
        hak_large_zero(result.block, size);
    }
    return malloc_result(result.block);
}

/* size > 0 */
static void *aligned_block(size_t align, size_t size) {
    unsigned sc = hak_sc_of_aligned(size, align);
    if (HAK_UNLIKELY(sc == HAK_SC_COUNT)) {
        return malloc_result(malloc_large(size, align).block);
    }
    void *block = take_counted(sc, hak_load_relaxed(&hak_profile_rate));
    block = HAK_LIKELY(block != NULL) ? block : malloc_small(sc, align, size);
    if (hak_tag_is_left_out(align) && hak_tag_of(block) != 0) { /* guarded blocks have no tag */
        block = hak_tag_take(block, hak_sc_info[sc].bytes);
    }
    return malloc_result(block);
}

void *hak_slow_aligned(size_t align, size_t size) {
    return HAK_UNLIKELY(size == 0) ? malloc_zero_size(align) : aligned_block(align, size);
}
