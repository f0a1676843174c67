/* SPDX-License-Identifier: MIT
 *
 * The sources of the protocol, compiled against double/base/atomics.h, and around them the least
 * that they need: memory, a page map of one leaf, no operating system. */
#define __libc_single_threaded model_single_threaded

#include "world.h"

#include "front/flush.c"
#include "os/lock.c"
#include "slab/owner.c"
#include "slab/remote.c"
#include "slab/sizeclass.c"
#include "slab/slab.c"

#include <sys/mman.h>

char model_single_threaded;
hak_pagemap_t hak_pagemap; /* only the zero leaf is used */
hak_process_counters_t hak_counters;
hak_knobs_t hak_knobs;
uint32_t hak_wanted; /* each thread sees what it set itself: no execution more */

hak_owner_t *world_home[WORLD_OWNERS + 1];
hak_slab_t *world_sending[WORLD_UNITS];

hak_superslab_t world_superslab;
static unsigned world_units_free; /* [lock SPAN] bit per unit */
static _Alignas(64) char world_meta[WORLD_OWNERS][sizeof(hak_owner_t)];
static unsigned world_meta_used;
static uint64_t world_bits[WORLD_UNITS][HAK_LINE_BYTES / sizeof(uint64_t)];
static unsigned world_bits_free; /* [lock META] bit per bitmap */

/* --- what the sources call -------------------------------------------------------------------- */

void *hak_meta_alloc(size_t bytes) {
    if (world_meta_used == WORLD_OWNERS) {
        return NULL;
    }
    void *memory = world_meta[world_meta_used++];
    model_zero(memory, bytes);
    return memory;
}

/* Bitmaps of slabs, one line each. */
void *hak_meta_take(unsigned lines) {
    MODEL_CHECK(lines == 1, "a bitmap of more than a line");
    hak_lock_acquire(HAK_LOCK_META);
    bool is_there = world_bits_free != 0;
    unsigned i = is_there ? hak_ctz(world_bits_free) : 0;
    world_bits_free &= ~(1u << i);
    hak_lock_release(HAK_LOCK_META);
    return is_there ? world_bits[i] : NULL;
}

void hak_meta_give(void *piece, unsigned lines) {
    (void)lines;
    size_t i = (size_t)((char *)piece - (char *)world_bits) / sizeof *world_bits;
    MODEL_CHECK(world_bits[i][0] == 0, "a bitmap is given back with marks");
    hak_lock_acquire(HAK_LOCK_META);
    world_bits_free |= 1u << i;
    hak_lock_release(HAK_LOCK_META);
}

uint32_t *world_entry(unsigned unit) {
    size_t index = ((uintptr_t)world_superslab.base >> HAK_UNIT_LOG2) + unit;
    return &hak_pagemap.zero.entry[(uint32_t)index % HAK_PAGEMAP_LEAF_UNITS];
}

unsigned world_unit(const void *address) {
    return (unsigned)(((const char *)address - world_superslab.base) / HAK_UNIT_BYTES);
}

void hak_pagemap_set_units(const void *base, size_t count, uint32_t entry) {
    (void)count; /* slabs of the class have one unit */
    hak_store_relaxed(world_entry(world_unit(base)), entry);
}

/* No scenario opens a slab because its memory is dense. */
hak_dense_t hak_dense_sure;

void hak_dense_sample(hak_dense_t *dense, const char *base, size_t bytes) {
    (void)dense, (void)base, (void)bytes;
}

bool hak_span_alloc(hak_partition_t partition, unsigned count, size_t align, hak_dense_t *use,
                    hak_span_t *span) {
    (void)partition, (void)align, (void)use;
    hak_lock_acquire(HAK_LOCK_SPAN);
    bool is_there = world_units_free != 0;
    unsigned unit = is_there ? hak_ctz(world_units_free) : 0;
    world_units_free &= ~(1u << unit);
    hak_lock_release(HAK_LOCK_SPAN);
    if (is_there) {
        ghost_unit(unit, false);
        span->superslab = &world_superslab;
        span->base = world_superslab.base + (size_t)unit * HAK_UNIT_BYTES;
        span->unit = unit;
        span->count = count;
    }
    return is_there;
}

void hak_span_free(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned touched) {
    (void)superslab, (void)count, (void)touched;
    ghost_unit(unit, true);
    hak_lock_acquire(HAK_LOCK_SPAN);
    world_units_free |= 1u << unit;
    (void)hak_or_relaxed(&hak_wanted, HAK_WANTED_PURGE);
    hak_lock_release(HAK_LOCK_SPAN);
}

static void world_serve(hak_tcache_t *tcache) {
    (void)tcache, hak_store_relaxed(&hak_wanted, 0);
    MODEL_CHECK(lock_own.owner == NULL || lock_own.is_forking, "memory is purged under a lock");
}

void hak_meta_note_used(ptrdiff_t bytes) {
    (void)bytes;
}

hak_slab_t *hak_slab_in_turn(hak_owner_t *owner, unsigned sc) {
    (void)owner, (void)sc;
    MODEL_CHECK(false, "no scenario asks for blocks of the fullest slab");
    return NULL;
}

hak_services_t hak_services = {.serve = world_serve};
size_t hak_span_purged_bytes, hak_span_limit_bytes = SIZE_MAX; /* nothing is purged, or limited */

void hak_span_visit(void (*visit)(hak_superslab_t *, void *), void *context) {
    visit(&world_superslab, context);
}

/* --- setting up ------------------------------------------------------------------------------- */

static void world_map(void) {
    if (world_superslab.base != NULL) {
        return;
    }
    char *memory = mmap(NULL, 2 * HAK_SUPERSLAB_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MODEL_CHECK(memory != MAP_FAILED, "no memory");
    uintptr_t base = ((uintptr_t)memory + HAK_SUPERSLAB_BYTES) & -(uintptr_t)HAK_SUPERSLAB_BYTES;
    world_superslab.base = (char *)base;
    hak_pagemap.zero.superslab[(uint32_t)base >> HAK_SUPERSLAB_LOG2] = &world_superslab;
}

hak_slab_t *world_slab_of(unsigned unit) {
    return (hak_slab_t *)&world_superslab.unit[unit];
}

static void share_owner(hak_owner_t *owner) {
    model_share(MODEL_WORD(&owner->queue));
    model_share(MODEL_WORD(&owner->users));
    model_share(MODEL_WORD(&owner->is_left));
    model_share(MODEL_WORD(&owner->lock.is_taken));
}

static void share_all(unsigned owners, unsigned units) {
    model_share(MODEL_WORD(&hak_all_owners));
    model_share(MODEL_WORD(&hak_owner_adopt_cursor));
    model_share(MODEL_WORD(&hak_locks[HAK_LOCK_REGISTRY].state));
    model_share(MODEL_WORD(&hak_locks[HAK_LOCK_SPAN].state));
    model_share(MODEL_WORD(&hak_locks[HAK_LOCK_META].state));
    hak_remote_unnoted = 0;
    model_share(MODEL_WORD(&hak_remote_unnoted));
    for (unsigned i = 0; i < owners; i++) {
        share_owner((hak_owner_t *)world_meta[i]);
    }
    for (unsigned unit = 0; unit < units; unit++) {
        hak_slab_t *slab = world_slab_of(unit);
        model_share(MODEL_WORD(hak_remote_number(&world_superslab, unit)));
        model_share(MODEL_WORD(hak_remote_word(&world_superslab, unit, 0)));
        model_share(MODEL_WORD(&slab->queue_next));
        model_share(MODEL_WORD(&slab->owner));
        model_share(MODEL_WORD(world_entry(unit)));
        world_sending[unit] = NULL;
        model_share(MODEL_WORD(&world_sending[unit]));
    }
}

void world_threads(void) {
    model_thread_state(MODEL_WORD(&lock_own.is_forking));
    model_thread_state(MODEL_WORD(&lock_own.held));
    model_thread_state(MODEL_WORD(&lock_own.waiting));
    model_thread_state(MODEL_WORD(&lock_own.forked));
    model_thread_state(MODEL_WORD(&lock_own.owner));
    model_thread_state(MODEL_WORD(&lock_own.before));
    model_thread_state(MODEL_WORD(&hak_in_unlocked_update));
    model_thread_state(MODEL_WORD(&hak_wanted));
    model_thread_state(MODEL_WORD(&world_time));
}

/* Owners that a thread makes later are among the words from the start. */
void world_start(unsigned owners, unsigned units) {
    world_threads();
    ghost_start();
    world_map();
    world_units_free = (1u << units) - 1;
    world_bits_free = (1u << WORLD_UNITS) - 1;
    hak_owner_start();
    for (unsigned i = 1; i <= owners; i++) {
        world_home[i] = hak_owner_join(HAK_PARTITION_ANY);
    }
    share_all(WORLD_OWNERS, units);
}

unsigned world_slab(unsigned owner, unsigned count) {
    unsigned unit = hak_ctz(world_units_free);
    hak_slab_t *slab = slab_create(world_home[owner], WORLD_SC);
    slab->capacity = (uint16_t)count;
    hak_list_push_front(&world_home[owner]->partial[WORLD_SC], &slab->link);
    world_home[owner]->partial_count[WORLD_SC]++;
    slab->state = HAK_SLAB_PARTIAL;
    for (unsigned i = 0; i < count; i++) {
        world_take(world_home[owner], 1);
    }
    return unit;
}

/* --- what threads do -------------------------------------------------------------------------- */

void world_take(hak_owner_t *owner, uint32_t want) {
    hak_blocks_t blocks = hak_slab_refill(owner, WORLD_SC, want);
    if (blocks.count != 0 && blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    for (uint32_t i = 0; i < blocks.count; i++) {
        char *block = blocks.head;
        blocks.head = hak_link_get(block);
        ghost_move(block, true);
        *(uint64_t *)block = 0; /* the program writes to it */
    }
}

hak_blocks_t world_blocks(unsigned unit, unsigned first, unsigned count) {
    uint32_t bytes = hak_sc_info[WORLD_SC].bytes;
    char *head = world_superslab.base + (size_t)unit * HAK_UNIT_BYTES + (size_t)first * bytes;
    hak_blocks_t blocks = {.head = head, .count = count, .stride = bytes};
    hak_slab_link(&blocks);
    for (unsigned i = 0; i < count; i++) {
        ghost_move(head + (size_t)i * bytes, false);
    }
    return blocks;
}

void world_push(unsigned unit, unsigned first, unsigned count) {
    (void)world_blocks(unit, first, count);
    hak_marks_t marks = {.superslab = &world_superslab,
                         .bits = hak_mask(count) << first,
                         .count = count,
                         .unit = (uint8_t)unit};
    hak_remote_send(&marks, &world_sending[unit]);
}

void world_give(unsigned owner, unsigned unit, unsigned first) {
    hak_blocks_t blocks = world_blocks(unit, first, 1);
    hak_slab_mark_one(world_slab_of(unit), first);
    hak_slab_count_free(world_home[owner], world_slab_of(unit), 1, blocks.head);
}

void world_refill(unsigned owner) {
    if (hak_lock_try(&world_home[owner]->lock)) {
        world_take(world_home[owner], WORLD_BLOCKS);
        hak_owner_unlock(world_home[owner]);
    } else {
        model_reach(MARK_BUSY);
    }
}

void world_adopt(unsigned owner) {
    hak_owner_t *home = world_home[owner];
    if (hak_lock_try(&home->lock)) {
        hak_slab_t *slab = hak_slab_adopt(home, WORLD_SC, HAK_ADOPT_LAST_RESORT);
        if (slab != NULL) {
            slab_full_to_partial(home, slab);
        }
        hak_owner_unlock(home);
    }
}

/* hak_owner_maintain, but that it is sure which owner is visited. */
void world_tick(unsigned owner) {
    hak_owner_t *visited = world_home[owner];
    if (owner_wants_maintenance(visited) && hak_lock_try(&visited->lock)) {
        owner_maintain(visited, OWNER_DRAIN_BUDGET);
        hak_owner_unlock(visited);
    }
}

void world_flush(unsigned owner, hak_blocks_t blocks) {
    hak_tcache_t tcache;
    hak_bin_side_t far_side[HAK_SC_COUNT - HAK_SIDES_NEAR];
    tcache.home = world_home[owner];
    tcache.far_side = far_side;
    hak_bin_side(&tcache, WORLD_SC)->counters.remote_out = 0;
    MODEL_CHECK(hak_tcache_flush_blocks(&tcache, WORLD_SC, blocks) == NULL, "a rest");
}
