/* SPDX-License-Identifier: MIT
 *
 * Counters of slow-path events. Every layer counts, only stat/ reports. No counter is ever touched
 * on a hit path. Two kinds: per tcache (one writer, read as an estimate) and per process (atomic).
 */
#ifndef HAK_BASE_COUNTERS_H
#define HAK_BASE_COUNTERS_H

#include "base/atomics.h"
#include "base/words.h"

/* One row per counter: name, text. */
#define HAK_TCACHE_COUNTERS(X)                                                                     \
    X(refill_list, "refills from a slab's own list")                                               \
    X(refill_carve, "refills by carving fresh blocks")                                             \
    X(refill_partial, "refills that took a partial slab")                                          \
    X(refill_adopt, "refills that adopted another owner's slab")                                   \
    X(slab_create, "slabs created")                                                                \
    X(slab_retire, "slabs retired")                                                                \
    X(overflow, "frees that found a bin full")                                                     \
    X(remote_out, "batches handed to other owners")                                                \
    X(remote_in, "batches received from other threads")                                            \
    X(large_alloc, "large and huge allocations")                                                   \
    X(large_free, "large and huge frees")                                                          \
    X(oom, "requests that ended in ENOMEM")

#define HAK_PROCESS_COUNTERS(X)                                                                    \
    X(superslab_map, "superslabs mapped")                                                          \
    X(superslab_unmap, "superslabs unmapped")                                                      \
    X(huge_page_open, "2 MiB ranges opened for huge pages")                                        \
    X(purge_calls, "purge calls to the kernel")                                                    \
    X(purge_units, "units purged")                                                                 \
    X(purge_regret_units, "purged units that were wanted again")                                   \
    X(pressure_look, "looks at the memory limits of control groups")                               \
    X(room_span_bytes, "bytes of unused units purged because of them")                             \
    X(room_huge_bytes, "bytes of cached huge blocks returned because of them")                     \
    X(huge_map, "huge mappings made")                                                              \
    X(huge_map_bytes, "bytes of these")                                                            \
    X(huge_hit, "huge blocks served from the cache")                                               \
    X(huge_unmap, "huge mappings returned")                                                        \
    X(huge_remap, "reallocations that moved pages, not bytes")                                     \
    X(realloc_copied_bytes, "bytes copied by realloc above 128 KiB")                               \
    X(os_failure, "operating system calls that failed")                                            \
    X(foreign_free, "pointers passed on to another allocator")                                     \
    X(guest_use, "operations of threads without a tcache")                                         \
    X(guard_sample, "small blocks watched by the sampled guard")

#define HAK_COUNTER_FIELD(name, text) uint64_t name;

typedef struct hak_tcache_counters {
    HAK_TCACHE_COUNTERS(HAK_COUNTER_FIELD)
} hak_tcache_counters_t;

typedef struct hak_process_counters {
    HAK_PROCESS_COUNTERS(HAK_COUNTER_FIELD)
} hak_process_counters_t;

extern hak_process_counters_t hak_counters; /* [atomic] */

#define hak_count(name) ((void)hak_add_relaxed(&hak_counters.name, 1))
#define hak_count_by(name, n) ((void)hak_add_relaxed(&hak_counters.name, (uint64_t)(n)))

#endif
