/* SPDX-License-Identifier: MIT
 *
 * Prints the figures that the documents name, a line each: name = value. Names tell the unit. They
 * come from the constants, types and tables of the core as it goes into the libraries, so this file
 * is the whole core and sees what is private to its files. tools/check_figures.py compares. */
#include "unity.c"

#include "rare.c"

#include <stdio.h>

/* --- size classes ---------------------------------------------------------------------------- */

static uint64_t slab_bytes(unsigned sc) {
    return (uint64_t)hak_sc_info[sc].units * HAK_UNIT_BYTES;
}

static uint64_t slab_most_units(void) {
    uint64_t most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        most = hak_most(most, hak_sc_info[sc].units);
    }
    return most;
}

/* Up to this size each block lies in a slab of one unit. */
static uint64_t slab_of_a_unit_most_bytes(void) {
    unsigned sc = 0;
    while (hak_sc_info[sc + 1].units == 1) {
        sc++;
    }
    return hak_sc_info[sc].bytes;
}

/* Of a slab, behind its last whole block. */
static double slab_rest_percent(void) {
    double most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        double rest = 100.0 * (double)(slab_bytes(sc) % hak_sc_info[sc].bytes);
        most = rest / (double)slab_bytes(sc) > most ? rest / (double)slab_bytes(sc) : most;
    }
    return most;
}

/* --- what threads hold ------------------------------------------------------------------------ */

/* Capacity at first of the bins of blocks up to that size. */
static uint64_t bins_first_bytes(uint32_t block_bytes) {
    uint64_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT && hak_sc_info[sc].bytes <= block_bytes; sc++) {
        sum +=
            (uint64_t)hak_bin_initial_capacity(HAK_BIN_INITIAL_BYTES, sc) * hak_sc_info[sc].bytes;
    }
    return sum;
}

static uint64_t bins_most_bytes(void) {
    uint64_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        sum += (uint64_t)hak_bin_max_capacity(sc) * hak_sc_info[sc].bytes;
    }
    return sum;
}

/* The largest class whose bins begin with so many blocks. */
static uint64_t bin_begins_with(uint32_t initial_bytes, int32_t blocks) {
    uint64_t most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        bool has = hak_bin_initial_capacity(initial_bytes, sc) >= blocks;
        most = has ? hak_sc_info[sc].bytes : most;
    }
    return most;
}

/* Threads a CPU from which on bins begin with so many bytes. */
static uint64_t bins_begin_less_threads(uint64_t initial_bytes) {
    return hak_knobs.cache_bytes * BUDGET_SHARE_TIMES / (INITIAL_PART * initial_bytes);
}

/* Blocks in the outboxes of a thread, smallest first. */
static uint64_t outboxes_most_blocks(void) {
    uint64_t left = hak_knobs.outbox_bytes, blocks = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint64_t fit = left / hak_sc_info[sc].bytes;
        uint64_t count = hak_least(fit, (uint64_t)hak_outbox_capacity(sc));
        left -= count * hak_sc_info[sc].bytes;
        blocks += count;
    }
    return blocks;
}

/* Blocks of a slab's whole list above what a bin holds. */
static uint64_t list_over_blocks(void) {
    return hak_sc_info[0].blocks - hak_knobs.bin_max_blocks;
}

/* --- metadata --------------------------------------------------------------------------------- */

static double record_percent(void) {
    return 100.0 * sizeof(hak_superslab_t) / HAK_SUPERSLAB_BYTES;
}

static double bits_percent(unsigned sc) {
    return 100.0 * slab_bits_lines(sc) * HAK_LINE_BYTES / (double)slab_bytes(sc);
}

/* If blocks of each class fill the heap in turn: pieces of one length serve each other. */
static double bits_all_percent(void) {
    double most[HAK_META_MOST_LINES + 1] = {0}, sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        double percent = bits_percent(sc), *line = &most[slab_bits_lines(sc)];
        *line = percent > *line ? percent : *line;
    }
    for (unsigned lines = 1; lines <= HAK_META_MOST_LINES; lines++) {
        sum += most[lines];
    }
    return sum;
}

static uint64_t summary_lines(uint32_t superslabs) {
    return top_level(superslabs) + 1;
}

/* --- figures ---------------------------------------------------------------------------------- */

#define COUNTS(X)                                                                                  \
    X(class_count, HAK_SC_COUNT)                                                                   \
    X(unit_bytes, HAK_UNIT_BYTES)                                                                  \
    X(superslab_bytes, HAK_SUPERSLAB_BYTES)                                                        \
    X(superslab_units, HAK_SUPERSLAB_UNITS)                                                        \
    X(slab_most_units, slab_most_units())                                                          \
    X(slab_most_bytes, slab_most_units() * HAK_UNIT_BYTES)                                         \
    X(slab_of_a_unit_most_bytes, slab_of_a_unit_most_bytes())                                      \
    X(carve_bytes, SLAB_CARVE_BYTES)                                                               \
    X(small_most_bytes, HAK_SC_MAX_BYTES)                                                          \
    X(large_most_bytes, (uint64_t)HAK_LARGE_MAX_UNITS *HAK_UNIT_BYTES)                             \
    /* sizes of records */                                                                         \
    X(tcache_bytes, sizeof(hak_tcache_t))                                                          \
    X(owner_bytes, sizeof(hak_owner_t))                                                            \
    X(superslab_record_bytes, sizeof(hak_superslab_t))                                             \
    X(huge_record_bytes, sizeof(struct hak_huge))                                                  \
    X(huge_blocks_most, (uint64_t)HUGE_CHUNKS << HUGE_CHUNK_LOG2)                                  \
    X(pagemap_leaf_bytes, sizeof(hak_pagemap_leaf_t))                                              \
    X(pagemap_leaf_reach_bytes, 1ull << HAK_PAGEMAP_LEAF_LOG2)                                     \
    X(slab_bits_least_bytes, HAK_LINE_BYTES)                                                       \
    /* bins */                                                                                     \
    X(bin_first_bytes, HAK_BIN_INITIAL_BYTES)                                                      \
    X(bin_first_blocks, BIN_INITIAL_MAX_BLOCKS)                                                    \
    X(bin_of_two_blocks_bytes, bin_begins_with(HAK_BIN_INITIAL_BYTES, 2))                          \
    X(bin_less_threads, bins_begin_less_threads(HAK_BIN_INITIAL_BYTES))                            \
    X(bin_least_threads, bins_begin_less_threads(INITIAL_LEAST))                                   \
    X(bin_least_bytes, INITIAL_LEAST)                                                              \
    X(bin_least_block_bytes, bin_begins_with(INITIAL_LEAST, 1))                                    \
    X(bins_first_bytes, bins_first_bytes(HAK_SC_MAX_BYTES))                                        \
    X(bins_first_small_bytes, bins_first_bytes(1024))                                              \
    X(bins_most_bytes, bins_most_bytes())                                                          \
    X(bin_most_bytes, hak_knobs.bin_max_bytes)                                                     \
    X(bin_most_blocks, hak_knobs.bin_max_blocks)                                                   \
    X(cache_bytes, hak_knobs.cache_bytes)                                                          \
    X(cache_thread_bytes, BUDGET_FLOOR)                                                            \
    X(outbox_bytes, hak_knobs.outbox_bytes)                                                        \
    X(outbox_class_bytes, (uint64_t)hak_outbox_capacity(hak_sc_of(4096)) * 4096)                   \
    X(outbox_class_blocks, OUTBOX_MOST_BLOCKS)                                                     \
    X(sorter_places, SORTER_PLACES)                                                                \
    /* what stays unused */                                                                        \
    X(retain_least_bytes, hak_knobs.retain_min_bytes)                                              \
    X(retain_percent, hak_knobs.retain_percent)                                                    \
    X(retain_learned_percent, RETAIN_MOST)                                                         \
    X(retain_idle_bytes, hak_knobs.retain_idle_bytes)                                              \
    X(retain_idle_part, DECAY_SHARE)                                                               \
    X(retain_step_bytes, (uint64_t)DECAY_STEP_UNITS *HAK_UNIT_BYTES)                               \
    X(retain_step_times, DECAY_STEP_TIMES)                                                         \
    X(purge_delay_ns, PURGE_DELAY_NS)                                                              \
    X(decay_window_ns, DECAY_WINDOW_NS)                                                            \
    X(holes_pause_ns, DECAY_PAUSE_NS)                                                              \
    X(holes_least_part, DECAY_LEAST_PART)                                                          \
    X(holes_refused_ns, (UINT8_MAX + 1) * DECAY_PAUSE_NS)                                          \
    X(holes_refused_calls, HOLES_REFUSED_MOST)                                                     \
    X(huge_cache_bytes, hak_knobs.huge_cache_bytes)                                                \
    X(huge_cache_part, CACHE_SHARE)                                                                \
    X(huge_cache_recent_bytes, CACHE_LEAST_TIMES *hak_knobs.huge_cache_bytes)                      \
    X(huge_cache_window_ns, CACHE_WINDOW_NS)                                                       \
    X(huge_cache_address_times, CACHE_ADDRESS_TIMES)                                               \
    X(huge_cache_extents, CACHE_EXTENTS)                                                           \
    X(map_part, MAP_SHARE)                                                                         \
    X(map_superslabs, MAP_MOST)                                                                    \
    X(map_bytes, (uint64_t)MAP_MOST *HAK_SUPERSLAB_BYTES)                                          \
    X(idle_superslabs, IDLE_LEAST)                                                                 \
    X(idle_superslabs_part, IDLE_SHARE)                                                            \
    X(huge_apart_blocks, HUGE_APART_MOST)                                                          \
    X(vacant_apart_bytes, APART_LEAST_BYTES)                                                       \
    X(vacant_event_records, VACANT_STEP)                                                           \
    X(vacant_search_steps, SEARCH_STEPS)                                                           \
    X(vacant_scan_records, SCAN_STEP)                                                              \
    X(vacant_refused_calls, REFUSED_MOST)                                                          \
    X(huge_page_bytes, HAK_HUGE_PAGE_BYTES)                                                        \
    X(huge_page_least_bytes, (uint64_t)HUGE_PAGE_LEAST_UNITS *HAK_UNIT_BYTES)                      \
    X(guard_slots, HAK_GUARD_SLOTS)                                                                \
    X(guard_slots_most, HAK_GUARD_SLOTS_MOST)                                                      \
    X(guard_bytes, hak_align_up((2 * HAK_GUARD_SLOTS + 1) * 4096, HAK_UNIT_BYTES))                 \
    X(guard_every_bytes, hak_align_up((2 * HAK_GUARD_SLOTS_MOST + 1) * 4096, HAK_UNIT_BYTES))      \
    X(guard_memory_bytes, HAK_GUARD_SLOTS * 4096)                                                  \
    X(guard_rate, hak_knobs.guard_rate)                                                            \
    /* work of one call */                                                                         \
    X(event_ticks, HAK_EVENT_TICKS)                                                                \
    X(event_look_ticks, HAK_EVENT_LOOK_TICKS)                                                      \
    X(event_step_ns, HAK_EVENT_STEP_NS)                                                            \
    X(outboxes_most_blocks, outboxes_most_blocks())                                                \
    X(list_over_blocks, list_over_blocks())                                                        \
    X(call_most_blocks,                                                                            \
      outboxes_most_blocks() + SETTLE_CLASSES * SETTLE_BLOCKS + list_over_blocks())                \
    X(overflow_blocks, OVERFLOW_BLOCKS)                                                            \
    X(settle_blocks, (uint64_t)SETTLE_CLASSES *SETTLE_BLOCKS)                                      \
    X(settle_tight_blocks, (uint64_t)HAK_SC_COUNT *SETTLE_BLOCKS)                                  \
    X(refill_drained_slabs, 2 * SLAB_DRAIN_BUDGET) /* refill_find, and the refill itself */        \
    X(adopt_owners, ADOPT_VISITS)                                                                  \
    X(adopt_looks, ADOPT_LOOKS)                                                                    \
    X(adopt_drained_slabs, ADOPT_DRAIN_BUDGET)                                                     \
    X(event_owners, EVENT_OWNERS)                                                                  \
    X(event_drained_slabs, OWNER_DRAIN_BUDGET)                                                     \
    X(span_alignments, HAK_SPAN_ALIGNS - 1)                                                        \
    X(span_alignment_least_bytes, 2 * HAK_UNIT_BYTES)                                              \
    X(span_alignment_most_bytes, HAK_SUPERSLAB_BYTES)                                              \
    X(summary_line_bytes, HAK_SUMMARY_LINE)                                                        \
    X(summary_line, HAK_SUMMARY_LINE)                                                              \
    X(summary_lines_of_10_000, summary_lines(1 << 14))                                             \
    X(summary_lines_of_a_million, summary_lines(1 << 20))                                          \
    X(peak_part, PEAK_SHARE)                                                                       \
    X(peak_slabs, SPARE_MOST_WORK)                                                                 \
    X(peak_calls, SPARE_MOST_WORK / SPARE_CALL_WORK)                                               \
    X(peak_holes_part, SPARE_SPANS_PART)                                                           \
    X(holes_slabs, DECAY_STEP_WORK)                                                                \
    X(holes_calls, DECAY_STEP_WORK / DECAY_CALL_WORK)                                              \
    X(holes_owners, DECAY_STEP_OWNERS)                                                             \
    X(holes_held_calls, DECAY_SECTION_WORK / DECAY_CALL_WORK)                                      \
    X(holes_held_slabs, HOLES_SLABS)                                                               \
    X(purge_calls_of_a_superslab, HAK_SUPERSLAB_UNITS / 2)                                         \
    X(purge_splits, PURGE_SPLITS)                                                                  \
    X(cgroup_least_bytes, LOOK_LEAST)                                                              \
    X(cgroup_looks_of_a_second, 1000000000 / LOOK_OVER_NS)                                         \
    X(cgroup_levels, KEPT_LEVELS)                                                                  \
    X(kept_least, KEPT_LEAST)                                                                      \
    X(kept_numbers, KEPT_NUMBERS)                                                                  \
    X(kept_table, KEPT_TABLE)                                                                      \
    X(cgroup_call_bytes, ROOM_MOST)                                                                \
    X(hunt_steps, HUNT_LEAST_STEPS)                                                                \
    X(hunt_period_steps, HUNT_PERIOD_STEPS)                                                        \
    X(hunt_burst_steps, HUNT_BURST_STEPS)                                                          \
    X(visit_superslabs, VISIT_BATCH)                                                               \
    X(fork_wait_ns, FORK_NAPS *FORK_NAP_NS)                                                        \
    X(owner_wait_ns, OWNER_NAPS *OWNER_NAP_NS)                                                     \
    X(locks, HAK_LOCK_COUNT - 1) /* besides those of owners */                                     \
    X(owners_least, OWNER_LEAST)                                                                   \
    X(owners_reserve_times, OWNER_RESERVE)

#define PERCENTS(X)                                                                                \
    X(slab_rest_percent, slab_rest_percent())                                                      \
    X(superslab_record_percent, record_percent())                                                  \
    X(slab_bits_16_percent, bits_percent(hak_sc_of_small(16)))                                     \
    X(slab_bits_128_percent, bits_percent(hak_sc_of_small(128)))                                   \
    X(slab_bits_all_percent, bits_all_percent())                                                   \
    X(metadata_128_percent, record_percent() + bits_percent(hak_sc_of_small(128)))                 \
    X(metadata_16_percent, record_percent() + bits_percent(hak_sc_of_small(16)))                   \
    X(metadata_all_percent, record_percent() + bits_all_percent())

#define PRINT_COUNT(name, value) printf("%s = %llu\n", #name, (unsigned long long)(value));
#define PRINT_PERCENT(name, value) printf("%s = %.4f\n", #name, value);

int main(void) {
    hak_life_process_start();
    COUNTS(PRINT_COUNT)
    PERCENTS(PRINT_PERCENT)
    return 0;
}
