/* SPDX-License-Identifier: MIT
 *
 * Prints the figures that the documents name, a line each: name = value. Names tell the unit. They
 * come from the constants, types and tables of the core as it goes into the libraries, so this file
 * is the whole core and sees what is private to its files. tools/check_figures.py compares. */
#include "unity.c"

#include "cold.c"

#include "derived.h"

#include <stdio.h>

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
    X(slab_most_blocks, hak_sc_info[0].blocks)                                                     \
    X(small_most_bytes, HAK_SC_MAX_BYTES)                                                          \
    X(large_most_bytes, (uint64_t)HAK_LARGE_MAX_UNITS *HAK_UNIT_BYTES)                             \
    /* sizes of records */                                                                         \
    X(tcache_bytes, sizeof(hak_tcache_t) + tcache_far_bytes())                                     \
    X(owner_bytes, sizeof(hak_owner_t))                                                            \
    X(superslab_record_bytes, offsetof(hak_superslab_t, plane))                                    \
    X(superslab_units, HAK_SUPERSLAB_UNITS)                                                        \
    X(remote_planes, HAK_SUPERSLAB_PLANES)                                                         \
    X(remote_plane_bytes, sizeof(hak_plane_t))                                                     \
    X(remote_planes_bytes, HAK_SUPERSLAB_PLANES * sizeof(hak_plane_t))                             \
    X(remote_first_line_blocks, remote_first_line_blocks())                                        \
    X(remote_one_line_bytes, remote_one_line_bytes())                                              \
    X(slab_most_words, hak_sc_info[0].blocks / 64)                                                 \
    X(table_place_bytes, table_place_bytes())                                                      \
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
    X(bin_step_bytes, bin_step_bytes())                                                            \
    X(bin_most_bytes, hak_knobs.bin_max_bytes)                                                     \
    X(bin_most_blocks, hak_knobs.bin_max_blocks)                                                   \
    X(cache_bytes, hak_knobs.cache_bytes)                                                          \
    X(pass_callers, PASS_CALLERS)                                                                  \
    X(cache_thread_bytes, BUDGET_FLOOR)                                                            \
    X(messages_slots, MESSAGES_SLOTS)                                                              \
    /* what stays unused */                                                                        \
    X(retain_least_bytes, hak_knobs.retain_min_bytes)                                              \
    X(retain_twice_least_bytes, 2 * hak_knobs.retain_min_bytes)                                    \
    X(retain_percent, hak_knobs.retain_percent)                                                    \
    X(retain_learned_percent, REGRET_MOST)                                                         \
    X(retain_idle_bytes, hak_knobs.retain_idle_bytes)                                              \
    X(retain_idle_part, TARGET_IDLE_DIVISOR)                                                       \
    X(retain_step_bytes, TARGET_STEP_BYTES)                                                        \
    X(retain_step_times, TARGET_STEP_TIMES)                                                        \
    X(purge_delay_ns, HAK_WINDOW_NS + HAK_EVENT_STEP_NS)                                           \
    X(purge_retry_ns, TARGET_RETRY_NS)                                                             \
    X(decay_window_ns, HAK_WINDOW_NS)                                                              \
    X(decay_most_ns, 2 * (HAK_WINDOW_NS + HAK_EVENT_STEP_NS))                                      \
    X(keep_count, HAK_STRATEGIES)                                                                  \
    X(keep_least_ns, HAK_STRATEGY_MS[0] * 1000000)                                                 \
    X(keep_most_ns, HAK_STRATEGY_MS[HAK_STRATEGIES - 1] * 1000000)                                 \
    X(keep_even_ns, hak_knobs.retain_percent *HAK_EVENT_STEP_NS / EVEN_PERCENT)                    \
    X(keep_lock_ns, LOCK_NS)                                                                       \
    X(slab_purge_pause_ns, HAK_WINDOW_NS)                                                          \
    X(slab_purge_pause_most_ns, HAK_WINDOW_NS << DECAY_BACKOFF_MOST)                               \
    X(slab_purge_least_part, PURGE_LEAST_DIVISOR)                                                  \
    X(slab_purge_refused_rounds, UINT8_MAX + 1)                                                    \
    X(slab_purge_refused_ns, (UINT8_MAX + 1) * HAK_WINDOW_NS)                                      \
    X(slab_purge_refused_calls, PURGE_REFUSED_MOST)                                                \
    X(huge_vast_bytes, HUGE_VAST_BYTES)                                                            \
    X(huge_cache_bytes, hak_knobs.huge_cache_bytes)                                                \
    X(huge_cache_part, CACHE_SHARE)                                                                \
    X(huge_cache_recent_bytes, CACHE_LEAST_TIMES *hak_knobs.huge_cache_bytes)                      \
    X(huge_cache_window_ns, HAK_WINDOW_NS)                                                         \
    X(huge_sample_pages, SAMPLES_MOST + SAMPLES_AGAIN)                                             \
    X(huge_sample_calls, (SAMPLES_MOST + SAMPLES_AGAIN) * SAMPLE_WORDS)                            \
    X(huge_cache_address_times, CACHE_ADDRESS_TIMES)                                               \
    X(huge_cache_extents, CACHE_EXTENTS)                                                           \
    X(huge_cache_moved_extents, MOVED_EXTENTS)                                                     \
    X(huge_cache_trim_steps, TRIM_STEPS)                                                           \
    X(map_part, MAP_SHARE)                                                                         \
    X(map_superslabs, MAP_MOST)                                                                    \
    X(map_bytes, (uint64_t)MAP_MOST *HAK_SUPERSLAB_BYTES)                                          \
    X(idle_superslabs, IDLE_LEAST)                                                                 \
    X(idle_superslabs_part, IDLE_SHARE)                                                            \
    X(zero_size_blocks, REGION_COUNT *REGION_WORDS * 64)                                           \
    X(huge_apart_blocks, HUGE_APART_MOST)                                                          \
    X(huge_whole_least_bytes, HUGE_WHOLE_LEAST_BYTES)                                              \
    X(page_tables_of_a_mib_bytes, (1 << 20) / 4096 * 8)                                            \
    X(huge_walk_most, HUGE_WALK_MOST)                                                              \
    X(vacant_apart_bytes, APART_LEAST_BYTES)                                                       \
    X(vacant_search_steps, SEARCH_STEPS)                                                           \
    X(vacant_unmapped_ranges, UNMAP_HOLD)                                                          \
    X(vacant_unmapped_calls, UNMAP_STEP)                                                           \
    X(huge_page_bytes, HAK_HUGE_PAGE_BYTES)                                                        \
    X(huge_page_least_bytes, (uint64_t)HUGE_PAGE_LEAST_UNITS *HAK_UNIT_BYTES)                      \
    X(huge_page_slow_ns, HUGE_PAGE_SLOW_NS)                                                        \
    X(huge_page_slow_run, HUGE_PAGE_SLOW_RUN)                                                      \
    X(huge_page_pause, HUGE_PAGE_PAUSE)                                                            \
    X(guard_slots, HAK_GUARD_SLOTS)                                                                \
    X(guard_slots_most, HAK_GUARD_SLOTS_MOST)                                                      \
    X(guard_bytes, hak_align_up((2 * HAK_GUARD_SLOTS + 1) * 4096, HAK_UNIT_BYTES))                 \
    X(guard_every_bytes, hak_align_up((2 * HAK_GUARD_SLOTS_MOST + 1) * 4096, HAK_UNIT_BYTES))      \
    X(guard_every_memory_bytes, HAK_GUARD_SLOTS_MOST * 4096)                                       \
    X(guard_memory_bytes, HAK_GUARD_SLOTS * 4096)                                                  \
    X(guard_records_bytes, guard_records_bytes(HAK_GUARD_SLOTS))                                   \
    X(guard_records_most_bytes, guard_records_bytes(HAK_GUARD_SLOTS_MOST))                         \
    X(guard_rate, hak_knobs.guard_rate)                                                            \
    X(guard_extra_blocks, HAK_ALLOWANCE_BLOCKS)                                                    \
    X(guard_extra_second_blocks, 1000000000 / HAK_ALLOWANCE_GAP_NS)                                \
    X(guard_first_odds, GUARD_FIRST_ODDS)                                                          \
    X(guard_extra_bytes, HAK_ALLOWANCE_BYTES)                                                      \
    /* work of one call */                                                                         \
    X(event_ticks, HAK_EVENT_TICKS)                                                                \
    X(event_look_ticks, HAK_EVENT_POLL_TICKS)                                                      \
    X(event_step_ns, HAK_EVENT_STEP_NS)                                                            \
    X(call_most_blocks, SHRINK_CLASSES *SHRINK_BLOCKS + OVERFLOW_SMALL_BLOCKS)                     \
    X(call_tight_blocks, (uint64_t)HAK_SC_COUNT *SHRINK_BLOCKS + OVERFLOW_SMALL_BLOCKS)            \
    X(overflow_blocks, OVERFLOW_BLOCKS)                                                            \
    X(overflow_small_blocks, OVERFLOW_SMALL_BLOCKS)                                                \
    X(overflow_small_bytes, OVERFLOW_SMALL_BYTES)                                                  \
    X(settle_blocks, (uint64_t)SHRINK_CLASSES *SHRINK_BLOCKS)                                      \
    X(settle_tight_blocks, (uint64_t)HAK_SC_COUNT *SHRINK_BLOCKS)                                  \
    X(refill_drained_slabs, 2 * SLAB_DRAIN_BUDGET) /* refill_find, and the refill itself */        \
    X(adopt_owners, ADOPT_VISITS)                                                                  \
    X(adopt_looks, ADOPT_LOOKS)                                                                    \
    X(adopt_drained_slabs, ADOPT_DRAIN_BUDGET)                                                     \
    X(event_owners, EVENT_OWNERS)                                                                  \
    X(event_drained_slabs, OWNER_DRAIN_BUDGET)                                                     \
    X(call_drained_slabs, EVENT_OWNERS *OWNER_DRAIN_BUDGET + 2 * SLAB_DRAIN_BUDGET +               \
                              ADOPT_VISITS * ADOPT_DRAIN_BUDGET)                                   \
    X(packed_drained_slabs, EVENT_OWNERS *OWNER_DRAIN_BUDGET + 2 * SLAB_DRAIN_BUDGET +             \
                                2 * ADOPT_VISITS * ADOPT_DRAIN_BUDGET)                             \
    X(span_alignments, HAK_SPAN_ALIGNS - 1)                                                        \
    X(span_alignment_least_bytes, 2 * HAK_UNIT_BYTES)                                              \
    X(span_alignment_most_bytes, HAK_SPAN_MOST_ALIGN)                                              \
    X(summary_line_bytes, HAK_SUMMARY_LINE)                                                        \
    X(summary_line, HAK_SUMMARY_LINE)                                                              \
    X(summary_lines_of_10_000, summary_lines(1 << 14))                                             \
    X(summary_lines_of_a_million, summary_lines(1 << 20))                                          \
    X(peak_part, PEAK_SHARE)                                                                       \
    X(peak_slabs, PURGE_MOST_WORK)                                                                 \
    X(peak_calls, PURGE_MOST_WORK / HAK_SLAB_CALL_WORK)                                            \
    X(peak_slabs_part, PEAK_SPANS_DIVISOR)                                                         \
    X(peak_window_ns, HAK_WINDOW_NS)                                                               \
    X(slab_purge_slabs, PURGE_MOST_WORK)                                                           \
    X(slab_purge_calls, PURGE_MOST_WORK / HAK_SLAB_CALL_WORK)                                      \
    X(slab_purge_owners, DECAY_STEP_OWNERS)                                                        \
    X(slab_purge_held_calls, DECAY_SECTION_WORK / HAK_SLAB_CALL_WORK)                              \
    X(slab_purge_held_slabs, HAK_SLAB_SECTION)                                                     \
    X(purge_calls, PURGE_CALLS)                                                                    \
    X(purge_calls_of_a_superslab, HAK_SUPERSLAB_UNITS / 2)                                         \
    X(purge_splits, PURGE_SPLITS)                                                                  \
    X(cgroup_least_bytes, READ_LEAST)                                                              \
    X(cgroup_looks_of_a_second, 1000000000 / READ_OVER_NS)                                         \
    X(cgroup_near_part, NEAR_DIVISOR)                                                              \
    X(cgroup_far_part, FAR_DIVISOR)                                                                \
    X(cgroup_grain_part, GRAIN_DIVISOR)                                                            \
    X(cgroup_grain_least_bytes, GRAIN_LEAST)                                                       \
    X(cgroup_grain_most_bytes, GRAIN_MOST)                                                         \
    X(cgroup_reserve_most_bytes, RESERVE_MOST)                                                     \
    X(cgroup_levels, KEPT_LEVELS)                                                                  \
    X(cgroup_misses, MISSES_MOST)                                                                  \
    X(kept_least, KEPT_LEAST)                                                                      \
    X(kept_numbers, KEPT_NUMBERS)                                                                  \
    X(kept_table, KEPT_TABLE)                                                                      \
    X(cgroup_call_bytes, LIMIT_MOST)                                                               \
    X(cgroup_step_bytes, STEP_LEAST)                                                               \
    X(cgroup_step_part, STEP_DIVISOR)                                                              \
    X(room_retry_ns, TARGET_RETRY_NS)                                                              \
    X(search_steps, SEARCH_LEAST_STEPS)                                                            \
    X(search_period_steps, SEARCH_PERIOD_STEPS)                                                    \
    X(search_burst_steps, SEARCH_BURST_STEPS)                                                      \
    X(inspect_blocks, INSPECT_MOST_BLOCKS)                                                         \
    X(visit_superslabs, HAK_SPAN_VISIT_BATCH)                                                      \
    X(fork_naps, FORK_NAPS)                                                                        \
    X(fork_nap_ns, FORK_NAP_NS)                                                                    \
    X(owner_naps, OWNER_NAPS)                                                                      \
    X(owner_nap_ns, OWNER_NAP_NS)                                                                  \
    X(locks, HAK_LOCK_COUNT - 1) /* besides those of owners */                                     \
    X(owners_least, OWNER_LEAST)                                                                   \
    X(owners_reserve_times, OWNER_RESERVE)                                                         \
    X(option_count, HAK_CONF_OPTIONS)                                                              \
    X(option_live_count, option_live_count())

#define PERCENTS(X)                                                                                \
    X(slab_rest_percent, slab_rest_percent())                                                      \
    X(superslab_record_percent, record_percent())                                                  \
    X(slab_bits_16_percent, bits_percent(hak_sc_of_small(16)))                                     \
    X(slab_bits_128_percent, bits_percent(hak_sc_of_small(128)))                                   \
    X(slab_bits_all_percent, bits_all_percent())                                                   \
    X(metadata_128_percent, record_percent() + bits_percent(hak_sc_of_small(128)))                 \
    X(metadata_16_percent, record_percent() + bits_percent(hak_sc_of_small(16)))                   \
    X(remote_plane_percent, planes_percent(1))                                                     \
    X(remote_planes_percent, planes_percent(HAK_SUPERSLAB_PLANES))                                 \
    X(metadata_all_percent,                                                                        \
      record_percent() + bits_all_percent() + planes_percent(HAK_SUPERSLAB_PLANES))

#define PRINT_COUNT(name, value) printf("%s = %llu\n", #name, (unsigned long long)(value));
#define PRINT_PERCENT(name, value) printf("%s = %.4f\n", #name, value);

int main(void) {
    hak_life_process_start();
    COUNTS(PRINT_COUNT)
    PERCENTS(PRINT_PERCENT)
    return 0;
}
