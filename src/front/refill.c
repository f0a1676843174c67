/* SPDX-License-Identifier: MIT
 *
 * Fills an empty bin from the slabs; when memory is out, after reclaim, or else serves the request
 * by a large block. */
#include "front/refill.h"
#include "base/knobs.h"
#include "front/budget.h"
#include "front/event.h"
#include "front/find_free.h"
#include "front/flush.h"
#include "front/quarantine.h"
#include "large/large.h"

/* Bounds of a bin that overflows with blocks of other owners, each of which may keep a slab; from
 * LONG_RUN overflows without a refill on twice the bytes and four times the blocks. */
enum { SENDING_BYTES = 32 << 10, SENDING_BLOCKS = 256, LONG_RUN = 8 };

/* A bin that overflowed since the last refill doubles: the load's amplitude exceeds it. Exchange of
 * blocks has no amplitude, so bounds apply (docs/experiments/0154-bins-of-long-runs.md). */
static void bin_adapt(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    unsigned more = side->overflows >= LONG_RUN;
    size_t blocks = (size_t)side->capacity * 2, bytes = blocks * hak_sc_info[sc].bytes;
    bool may_grow =
        !side->has_sent || (blocks >> 2 * more <= SENDING_BLOCKS && bytes >> more <= SENDING_BYTES);
    if (side->overflows != 0 && may_grow) {
        hak_bin_grow(tcache, sc);
    }
    side->overflows = 0;
    side->has_sent = false;
}

enum { REFILL_BYTES = 4096 }; /* one OS page */

/* Half of the capacity, or `want` if that is more, which doubles per refill up to an OS page of
 * blocks: a thread that uses little of a class shall not keep much of it. */
static uint32_t refill_want(hak_tcache_t *tcache, unsigned sc) {
    const hak_bin_side_t *side = hak_bin_side(tcache, sc);
    uint32_t half = (uint32_t)side->capacity / 2, want = side->want;
    if (want * hak_sc_info[sc].bytes < REFILL_BYTES) {
        size_t most = hak_load_relaxed(&hak_knobs.bin_max_blocks) + 1;
        hak_bin_resize(tcache, sc, side->capacity, (uint32_t)hak_least(want * 2, most));
    }
    return want > half ? want : half;
}

static hak_blocks_t refill_once(hak_tcache_t *tcache, unsigned sc) {
    uint32_t want = refill_want(tcache, sc);
    hak_owner_t *owner = hak_tcache_lock_home(tcache);
    hak_blocks_t blocks = hak_slab_refill(owner, sc, want);
    hak_owner_unlock(owner);
    tcache->taken_bytes += (uint64_t)blocks.count * hak_sc_info[sc].bytes;
    if (blocks.stride != 0) {
        hak_slab_link(&blocks); /* before a purge finds their neighbours */
    }
    hak_wanted_serve_by(tcache);
    return hak_quarantine_of(tcache) != NULL ? hak_quarantine_shuffle(tcache, blocks) : blocks;
}

/* Blocks from the slabs after reclaim that may make room for a mapping of so many bytes. */
static HAK_COLD hak_blocks_t refill_reclaim(hak_tcache_t *tcache, unsigned sc, size_t bytes) {
    hak_blocks_t blocks = {0};
    for (unsigned i = 0; blocks.count == 0 && hak_services.memory_out(tcache, i, bytes); i++) {
        blocks = refill_once(tcache, sc);
    }
    return blocks;
}

/* What could be unmapped when reclaim made no room for a superslab; 0: it made some. */
static HAK_LARGE_STATE(4) size_t refill_unmappable; /* [atomic] */

/* Blocks from the slabs; count == 0: the kernel has no room for a superslab. If it said so lately,
 * and no more is unused than then, nothing is reclaimed. */
static hak_blocks_t refill_from_slabs(hak_tcache_t *tcache, unsigned sc) {
    bin_adapt(tcache, sc);
    hak_blocks_t blocks = refill_once(tcache, sc);
    if (HAK_UNLIKELY(blocks.count == 0) &&
        (!hak_load_relaxed(&hak_span_is_refused) ||
         hak_large_unmappable() > hak_load_relaxed(&refill_unmappable))) {
        blocks = refill_reclaim(tcache, sc, HAK_SUPERSLAB_BYTES);
        hak_store_relaxed(&refill_unmappable, blocks.count == 0 ? hak_large_unmappable() : 0);
    }
    return blocks;
}

/* No slab fits into the memory that a limit leaves: a unit, or a mapping of its own, may. */
static HAK_COLD void *refill_from_large(hak_tcache_t *tcache, const hak_request_t *request) {
    hak_partition_t partition = hak_tcache_partition(tcache);
    void *block = hak_large_alloc(partition, request->bytes, request->align).block;
    if (block == NULL) {
        return NULL;
    }
    hak_single_writer_add(&tcache->counters.large_alloc, 1);
    tcache->taken_bytes += hak_align_up(request->bytes, HAK_UNIT_BYTES);
    hak_wanted_serve();
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_rate) != 0)) {
        hak_services.profile_large(tcache, block, request->bytes);
    }
    return block;
}

/* Memory is out: a large block; else all that reclaim finds, for *blocks or a large block. NULL
 * without blocks: nothing is left. */
static HAK_COLD void *refill_scarce(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request,
                                    hak_blocks_t *blocks) {
    void *block = refill_from_large(tcache, request);
    if (block == NULL) {
        *blocks = refill_reclaim(tcache, sc, HAK_UNIT_BYTES);
    }
    if (block == NULL && blocks->count == 0) {
        block = refill_from_large(tcache, request);
        hak_single_writer_add(&tcache->counters.oom, block == NULL);
    }
    return block;
}

/* A guarded block, if one is due. */
static HAK_COLD void *refill_sample(hak_tcache_t *tcache, const hak_request_t *request) {
    return hak_services.guard_sample != NULL ? hak_services.guard_sample(tcache, request) : NULL;
}

/* A guarded block in place of the first one, which stays in the bin (TCACHE-3). NULL: none is due,
 * or the bin is full: before the next refill then. */
static HAK_COLD void *refill_guarded(hak_tcache_t *tcache, unsigned sc, void *first,
                                     const hak_request_t *request) {
    hak_bin_t *bin = &tcache->bin[sc];
    void *block = bin->slots_left > 0 ? refill_sample(tcache, request) : NULL;
    if (block != NULL) {
        hak_store_hot(&bin->head, first);
        bin->slots_left--;
    }
    return block;
}

/* The list exceeds the bin's bound: flushes its newest blocks, and lowers `want`. */
static HAK_COLD hak_blocks_t refill_bound(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks,
                                          uint32_t most) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    hak_bin_resize(tcache, sc, hak_bin_capacity(side), (uint32_t)hak_least(side->want, most + 1));
    blocks.count -= most + 1;
    return (hak_blocks_t){hak_tcache_flush_blocks(tcache, sc, blocks), most + 1, 0};
}

static void *refill(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    hak_bin_begin(tcache, sc);
    hak_event_tick(tcache, true);
    void *guarded = HAK_UNLIKELY(tcache->guard_left <= 1) ? refill_sample(tcache, request) : NULL;
    if (HAK_UNLIKELY(guarded != NULL)) {
        return guarded;
    }
    hak_blocks_t blocks = refill_from_slabs(tcache, sc);
    if (HAK_UNLIKELY(blocks.count == 0)) {
        void *block = refill_scarce(tcache, sc, request, &blocks);
        if (blocks.count == 0) {
            return block;
        }
    }
    int64_t rest = (int64_t)blocks.count - 1, half = (uint32_t)side->capacity / 2;
    int64_t slots_left = side->capacity - (rest < half ? rest : half);
    int64_t allowed = (int64_t)hak_load_relaxed(&hak_knobs.bin_max_blocks) - rest;
    if (HAK_UNLIKELY(slots_left > allowed)) {
        slots_left = allowed > 0 ? allowed : 0;
        blocks =
            allowed < 0 ? refill_bound(tcache, sc, blocks, (uint32_t)(rest + allowed)) : blocks;
        rest = (int64_t)blocks.count - 1;
    }
    if (HAK_UNLIKELY(bin->head != NULL)) { /* a hook of what was reclaimed filled the bin */
        hak_bin_flush(tcache, sc);
    }
    side->idle = 0;
    hak_single_writer_add(&side->counters.refill, 1);
    hak_single_writer_add(&side->counters.asked_bytes, request->bytes);
    hak_check_mark(blocks.head);
    hak_store_hot(&bin->head, hak_link_get(blocks.head));
    bin->slots_left = (int32_t)slots_left;
    side->total = (int32_t)(slots_left + rest); /* TCACHE-3 */
    tcache->guard_left -= blocks.count;
    if (HAK_UNLIKELY(tcache->guard_left <= 0)) {
        guarded = refill_guarded(tcache, sc, blocks.head, request);
        if (guarded != NULL) {
            return guarded;
        }
    }
    hak_link_clear(blocks.head);
    return HAK_HARDEN ? hak_harden_hand_out(blocks.head, hak_sc_info[sc].bytes) : blocks.head;
}

void *hak_slow_refill(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request) {
    hak_tcache_change(tcache, 1);
    void *block = refill(tcache, sc, request);
    hak_tally_follow(tcache);
    hak_tcache_change(tcache, -1);
    return block;
}
