/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: free of small blocks, out of line. A freed block is checked, cleared, and put
 * into the quarantine in place of an older block of its class, chosen at random, which goes to the
 * bin: the reuse of a block is unpredictable, and seldom soon. The rest of the core counts a block
 * in quarantine as in use; it has the free marker.
 *
 * Blocks of 129 to 4608 bytes are cleared and checked as a whole while the thread has a budget for
 * it, so that the cost is bounded by time (docs/experiments/0066-cleared-as-a-whole.md). Larger
 * ones may have OS pages in their middle that the program never touched. */
#include "front/budget.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "front/flush.h"
#include "os/os.h"

#include <string.h>

enum {
    QUARANTINE_TIMES = 8,                  /* bytes: so many times those of an initial bin */
    QUARANTINE_LEAST = 2,                  /* slots of large classes, in a process of few threads */
    QUARANTINE_MOST_TIMES = 32,            /* with many threads: the largest blocks held back */
    SHUFFLE_WINDOW = 16,                   /* blocks; one leaves at random */
    SHUFFLE_MOST = 4096 / HAK_BLOCK_ALIGN, /* blocks of a list: as many as are carved at a time */
    CLEAR_MOST = 4608,                     /* bytes of a block: 4 KiB and a canary */
    CLEAR_BYTES_PER_MS = 1 << 16,          /* the budget grows by */
    CLEAR_MOST_MS = 256,                   /* for so long at most: to 16 MiB, with which the */
    CLEAR_BEGIN_BYTES = 1 << 20,           /* first thread begins; others begin with this */
    CLEAR_REFILLS = 16,                    /* between two looks at the clock once it is used up */
    HELD_UNBINNED = 1, /* in a slot, beside the address: no bin took the block when it came */
};

/* A random number below `bound`: a linear congruential generator's highest bits. Cheaper than
 * hak_random_next by half, and as good here; neither is a secret's. */
HAK_INLINE uint32_t quarantine_random(hak_quarantine_t *quarantine, uint32_t bound) {
    quarantine->random = quarantine->random * 0xd1342543de82ef95ull + 1;
    return (uint32_t)((quarantine->random >> 32) * bound >> 32);
}

/* 8 KiB a class in a process of few threads, or QUARANTINE_LEAST blocks: with one the second free
 * after a block's always brings its place back. With many threads less, and no large ones. */
static uint8_t quarantine_slots(const hak_tcache_t *tcache, size_t bytes) {
    size_t slots = (size_t)tcache->initial_bytes * QUARANTINE_TIMES / bytes;
    size_t least = (size_t)tcache->initial_bytes * QUARANTINE_LEAST / HAK_BIN_INITIAL_BYTES;
    bool is_kept = bytes <= (size_t)tcache->initial_bytes * QUARANTINE_MOST_TIMES;
    slots = hak_most(slots, hak_most(least, is_kept));
    return slots < HAK_QUARANTINE_SLOTS ? (uint8_t)slots : HAK_QUARANTINE_SLOTS;
}

/* The budget for whole clearing grows by time. */
static void clear_earn(hak_tcache_t *tcache) {
    hak_quarantine_t *quarantine = tcache->quarantine;
    uint64_t now = hak_os_now_ns(), ms = (now - quarantine->earned_ns) / 1000000;
    ms = ms < CLEAR_MOST_MS ? ms : CLEAR_MOST_MS;
    quarantine->earned_ns = ms == 0 ? quarantine->earned_ns : now;
    quarantine->clear_left = (int64_t)ms * CLEAR_BYTES_PER_MS;
    tcache->clear_most = ms == 0 ? 0 : CLEAR_MOST;
}

void hak_quarantine_attach(hak_tcache_t *tcache) {
    if (tcache->quarantine == NULL) {
        tcache->quarantine = hak_meta_alloc(sizeof(hak_quarantine_t));
        if (tcache->quarantine == NULL) {
            return;
        }
        /* threads that end leave the budget to those that use their tcaches again */
        clear_earn(tcache); /* since the clock began */
        bool is_first = tcache->next == NULL;
        int64_t *left = &tcache->quarantine->clear_left;
        *left = is_first ? *left : CLEAR_BEGIN_BYTES;
    }
    uint64_t seed = hak_secret.canary ^ (uint64_t)tcache->thread_id << 32; /* new after fork */
    tcache->quarantine->random += hak_random_next(&seed) ^ (uintptr_t)tcache;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        tcache->quarantine->slots[sc] = quarantine_slots(tcache, hak_sc_info[sc].bytes);
        tcache->quarantine->next[sc] = 0;
    }
}

HAK_INLINE void *held_block(uintptr_t held) {
    return (void *)(held & ~(uintptr_t)HELD_UNBINNED);
}

/* Exchanges what is in a slot. */
HAK_INLINE uintptr_t held_take(uintptr_t *slot, uintptr_t instead) {
    uintptr_t held = *slot;
    hak_single_writer_store(slot, instead);
    hak_require(held == 0 || hak_link_word(held_block(held)) == HAK_LINK_MARKER,
                HAK_FATAL_CORRUPT_LINK, held_block(held));
    return held;
}

uint32_t hak_quarantine_count(const hak_tcache_t *tcache, unsigned sc) {
    const hak_quarantine_t *quarantine = tcache->quarantine;
    uint32_t count = 0;
    for (unsigned i = 0; i < HAK_QUARANTINE_SLOTS; i++) {
        count += hak_single_writer_load(&quarantine->slot[sc][i]) != 0;
    }
    return count;
}

void hak_quarantine_flush(hak_tcache_t *tcache) {
    hak_quarantine_t *quarantine = tcache->quarantine;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_blocks_t blocks = {0};
        for (unsigned i = 0; i < HAK_QUARANTINE_SLOTS; i++) {
            void *block = held_block(held_take(&quarantine->slot[sc][i], 0));
            if (block != NULL) {
                hak_link_set(block, blocks.head);
                blocks.head = block;
                blocks.count++;
            }
        }
        hak_tcache_flush_list(tcache, sc, blocks);
    }
}

void hak_quarantine_inspect(hak_tcache_t *tcache) {
    hak_quarantine_t *quarantine = tcache->quarantine;
    for (unsigned i = 0; i < HAK_SC_COUNT * HAK_QUARANTINE_SLOTS; i++) {
        uintptr_t *slot = &quarantine->slot[i / HAK_QUARANTINE_SLOTS][i % HAK_QUARANTINE_SLOTS];
        (void)held_take(slot, *slot);
    }
}

/* Each block takes a random place in a window; the block that it displaces comes next. */
hak_blocks_t hak_quarantine_shuffle(hak_tcache_t *tcache, hak_blocks_t blocks) {
    void *window[SHUFFLE_WINDOW] = {0};
    uintptr_t first_link;
    void *tail = &first_link, *block = blocks.head;
    uint32_t count = blocks.count < SHUFFLE_MOST ? blocks.count : SHUFFLE_MOST;
    if (count < 2) {
        return blocks;
    }
    if (tcache->clear_most == 0 && ++tcache->quarantine->refills % CLEAR_REFILLS == 0) {
        clear_earn(tcache);
    }
    for (uint32_t i = 0; i < count + SHUFFLE_WINDOW; i++) {
        uint32_t place =
            i < count ? quarantine_random(tcache->quarantine, SHUFFLE_WINDOW) : i - count;
        void *leaving = window[place];
        if (i < count) {
            window[place] = block;
            block = hak_link_get(block);
        }
        if (leaving != NULL) {
            hak_link_set(tail, leaving);
            tail = leaving;
        }
    }
    hak_link_set(tail, block);
    return (hak_blocks_t){.head = hak_link_get(&first_link), .count = blocks.count};
}

/* --- free ------------------------------------------------------------------------------------- */

/* The canary is gone. A free block, or one never handed out, has none either. */
static HAK_COLD HAK_NORETURN void block_damaged(const void *block) {
    hak_slab_check_freed(hak_slab_of(block), block);
    hak_fatal(hak_find_free_block(block) ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_OVERFLOW, block, NULL);
}

/* A block that no bin took when it came, or would take now. */
static HAK_NOINLINE void quarantine_leave(hak_tcache_t *tcache, uintptr_t held) {
    void *block = held_block(held);
    hak_link_clear(block); /* slow paths expect a block in use */
    hak_slow_free(block, tcache, hak_pagemap_index(hak_pagemap_base(), block));
}

/* A cleared block takes the place of another of its class, which goes to the bin. */
HAK_INLINE void quarantine_put_clear(hak_tcache_t *tcache, unsigned sc, void *block,
                                     uintptr_t unbinned) {
    hak_quarantine_t *quarantine = tcache->quarantine;
    uintptr_t held = (uintptr_t)block | unbinned;
    if (HAK_LIKELY(quarantine != NULL && quarantine->slots[sc] != 0)) {
        uintptr_t *slot = quarantine->slot[sc];
        hak_link_set(block, NULL);
        held = held_take(&slot[quarantine->next[sc]], held);
        quarantine->next[sc] = (uint8_t)quarantine_random(quarantine, quarantine->slots[sc]);
        HAK_FETCH((void *)slot[quarantine->next[sc]]);
        if (held == 0) { /* the slot was empty */
            return;
        }
    }
    if (HAK_UNLIKELY((held & HELD_UNBINNED) != 0 ||
                     !hak_bin_push(&tcache->bin[sc], (void *)held))) {
        quarantine_leave(tcache, held);
    }
}

/* A block that the budget allows to clear as a whole. */
static HAK_NOINLINE void quarantine_put_whole(hak_tcache_t *tcache, unsigned sc, void *block,
                                              uintptr_t unbinned, unsigned tag) {
    hak_quarantine_t *quarantine = tcache->quarantine;
    size_t bytes = hak_sc_info[sc].bytes;
    if (HAK_UNLIKELY(quarantine == NULL)) { /* nor a budget */
        hak_harden_wipe(block, bytes, tag);
    } else {
        hak_harden_wipe_whole(block, bytes, tag);
        quarantine->clear_left -= (int64_t)bytes;
        if (HAK_UNLIKELY(quarantine->clear_left < 0)) {
            clear_earn(tcache);
        }
    }
    quarantine_put_clear(tcache, sc, block, unbinned);
}

/* A block of class `sc` whose address is right; `unbinned` is 0 or HELD_UNBINNED. */
HAK_INLINE void quarantine_put(hak_tcache_t *tcache, unsigned sc, void *block, uintptr_t unbinned) {
    size_t bytes = hak_sc_info[sc].bytes;
    unsigned tag = hak_tag_of(block);
    block = hak_tags_are_on() ? hak_tag_take(block, bytes) : block;
    if (HAK_UNLIKELY(!hak_harden_is_intact(block, bytes))) {
        block_damaged(block);
    }
    if (bytes > 2 * HAK_FILL_PART_BYTES && bytes <= tcache->clear_most) {
        quarantine_put_whole(tcache, sc, block, unbinned, tag);
        return;
    }
    hak_harden_wipe(block, bytes, tag);
    quarantine_put_clear(tcache, sc, block, unbinned);
}

hak_partition_t hak_partition_of(const void *block, uint32_t entry) {
    bool is_slab = hak_slab_is_entry(entry);
    if (!HAK_HARDEN || (!is_slab && (entry & HAK_KIND_MASK) != HAK_KIND_LARGE)) {
        return HAK_PARTITION_ANY;
    }
    return is_slab && !hak_slab_is_ownerless(entry)
               ? hak_slab_partition(entry)
               : hak_span_partition(hak_pagemap_superslab(block));
}

/* The block may be of the other partition than the tcache. false: it is not, and is not freed. */
static HAK_COLD bool free_elsewhere(void *block, const hak_tcache_t *tcache, uint32_t entry) {
    hak_partition_t partition = hak_partition_of(block, entry);
    bool is_here = hak_tcache_is_empty(tcache) || partition == hak_tcache_partition(tcache);
    if (is_here) {
        return false;
    }
    uintptr_t base = hak_pagemap_base(), before = hak_partition_enter(partition);
    hak_tcache_t *other = hak_tcache_self(base);
    if (hak_tcache_partition(other) != partition) { /* metadata is out: as without a tcache */
        other = (hak_tcache_t *)base;
    }
    hak_quarantine_free(block, other, hak_pagemap_index(base, block));
    hak_partition_leave(before);
    return true;
}

/* Of a class that is not begun, or whose slabs are larger than a unit, or no block at all. */
static HAK_NOINLINE void quarantine_free_other(void *block, hak_tcache_t *tcache, uint32_t entry,
                                               uintptr_t index) {
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry))) {
        hak_slow_free(block, tcache, index);
        return;
    }
    hak_slab_check_start(index, entry, block);
    bool may_differ = ((entry ^ tcache->first_entry) & HAK_SLAB_PLAIN_ID) != 0;
    /* entries of slabs with purged pages and of sampled blocks do not tell the partition */
    if (HAK_UNLIKELY(hak_slab_is_ownerless(entry) || may_differ) &&
        free_elsewhere(block, tcache, entry)) {
        return;
    }
    unsigned sc = hak_sc_of_entry(entry);
    bool is_unbinned = hak_slab_is_ownerless(entry) || (tcache->begun >> sc & 1) == 0;
    if (HAK_UNLIKELY(hak_slab_entry_is_sampled(entry))) {
        hak_services.profile_end(block, hak_services.profile_take(block), false);
    }
    quarantine_put(tcache, sc, block, is_unbinned ? HELD_UNBINNED : 0);
}

/* Does not read the slab's record, which is rarely cached, nor the page map for the block that
 * leaves: a bin took it when it came. What lies behind a slab's last block has no canary. */
void hak_quarantine_free(void *block, hak_tcache_t *tcache, uintptr_t index) {
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    hak_bin_t *bin = hak_bin_at(tcache, entry & HAK_KIND_MASK);
    if (HAK_UNLIKELY(((entry ^ tcache->first_entry) & HAK_SLAB_PLAIN_ID) != 0 ||
                     !hak_is_multiple((uint16_t)(uintptr_t)block, &bin->size_reciprocal))) {
        quarantine_free_other(block, tcache, entry, index);
    } else {
        quarantine_put(tcache, (unsigned)(bin - tcache->bin), block, 0);
    }
}
