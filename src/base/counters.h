/* SPDX-License-Identifier: MIT
 *
 * Counters of slow-path events, never touched on a hit path. Every layer counts, the observer and
 * malloc_stats report. Counters of tcaches and owners have one writer at a time and are read as
 * estimates; those of the process are atomic. */
#ifndef HAK_BASE_COUNTERS_H
#define HAK_BASE_COUNTERS_H

#include "base/atomics.h"
#include "base/words.h"

/* One row per counter: name, text. tools/gen_stats.py reads them. */

/* Of a tcache and a class, in the side of the bin. */
#define HAK_BIN_COUNTERS(X)                                                                        \
    X(refill, "bins that were empty and got blocks")                                               \
    X(asked_bytes, "bytes of the requests that found a bin empty")                                 \
    X(overflow, "frees that found a bin full")                                                     \
    X(remote_out, "messages with freed blocks to heaps of other CPUs, about one slab each")

/* Of an owner and a class. */
#define HAK_CLASS_COUNTERS(X)                                                                      \
    X(refill_list, "refills from a slab's marked blocks")                                          \
    X(refill_carve, "refills by carving fresh blocks")                                             \
    X(refill_fault, "refills with blocks that fault at first use")                                 \
    X(refill_partial, "refills that took a partial slab")                                          \
    X(refill_adopt, "refills that took over a slab of another CPU's heap")                         \
    X(slab_create, "slabs created")                                                                \
    X(slab_retire, "slabs retired")                                                                \
    X(remote_in, "receipts of the messages about a slab")

/* Of a tcache. */
#define HAK_THREAD_COUNTERS(X)                                                                     \
    X(large_alloc, "large and huge allocations")                                                   \
    X(large_free, "large and huge frees")                                                          \
    X(oom, "requests that ended in ENOMEM")

#define HAK_PROCESS_COUNTERS(X)                                                                    \
    X(superslab_map, "superslabs mapped")                                                          \
    X(superslab_unmap, "superslabs unmapped")                                                      \
    X(huge_page_open, "2 MiB ranges opened for huge pages")                                        \
    X(huge_page_skipped, "2 MiB ranges kept on small pages because huge ones were slow to touch")  \
    X(purge_calls, "purge calls to the kernel")                                                    \
    X(purge_units, "pieces of 64 KiB whose memory was returned")                                   \
    X(purge_regret_units, "returned pieces of 64 KiB that were needed again")                      \
    X(learner_change, "changes of how long unused memory is worth keeping")                        \
    X(learner_resets, "failed forecasts of the learner, after which the standard rules came back") \
    X(limit_reads, "reads of the memory limits of the process's control groups")                   \
    X(limit_purged_bytes, "bytes of unused memory returned because of a memory limit")             \
    X(limit_purged_huge_bytes, "bytes of cached huge blocks returned because of a memory limit")   \
    X(huge_map, "huge mappings made")                                                              \
    X(huge_map_bytes, "bytes of huge mappings made")                                               \
    X(huge_hit, "huge blocks served from the cache")                                               \
    X(huge_unmap, "huge mappings returned")                                                        \
    X(huge_resize, "huge blocks that grew or shrank in place")                                     \
    X(huge_remap, "reallocations that moved pages, not bytes")                                     \
    X(realloc_copied_bytes, "bytes copied by realloc above 128 KiB")                               \
    X(os_failure, "operating system calls that failed")                                            \
    X(foreign_free, "pointers passed on to another allocator")                                     \
    X(fallback_use, "operations of threads without a tcache")                                      \
    X(guard_sample, "small blocks watched by the sampled guard")                                   \
    X(guard_free, "blocks that the sampled guard watched and that were freed")                     \
    X(profile_samples, "allocations that the heap profiler sampled")                               \
    X(profile_dropped, "sampled allocations without a record, for lack of memory")

#define HAK_COUNTER_FIELD(name, text) uint64_t name;

typedef struct hak_bin_counters {
    HAK_BIN_COUNTERS(HAK_COUNTER_FIELD)
} hak_bin_counters_t;

typedef struct hak_class_counters {
    HAK_CLASS_COUNTERS(HAK_COUNTER_FIELD)
} hak_class_counters_t;

typedef struct hak_thread_counters {
    HAK_THREAD_COUNTERS(HAK_COUNTER_FIELD)
} hak_thread_counters_t;

typedef struct hak_process_counters {
    HAK_PROCESS_COUNTERS(HAK_COUNTER_FIELD)
} hak_process_counters_t;

extern hak_process_counters_t hak_counters; /* [atomic] */

#define hak_count(name) ((void)hak_add_relaxed(&hak_counters.name, 1))
#define hak_count_by(name, n) ((void)hak_add_relaxed(&hak_counters.name, (uint64_t)(n)))
/* For counters that are counted under one lock only, which is held. */
#define hak_count_locked(name) hak_single_writer_add(&hak_counters.name, 1)

#endif
