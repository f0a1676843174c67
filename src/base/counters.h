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
    X(refill, "allocations that found the thread's cache of their size empty, and filled it")      \
    X(asked_bytes, "bytes requested by the allocations that refill counts")                        \
    X(overflow, "frees that found the thread's cache of their size full")                          \
    X(remote_out, "messages with freed blocks to heaps of other CPUs, about one slab each")

/* Of an owner and a class. */
#define HAK_CLASS_COUNTERS(X)                                                                      \
    X(slab_create, "slabs made: runs of 64 to 448 KiB, cut into blocks of one size")

/* Of a tcache. */
#define HAK_THREAD_COUNTERS(X)                                                                     \
    X(large_alloc, "allocations of large and huge blocks: above 64 KiB")                           \
    X(oom, "requests refused with ENOMEM, as there was no memory")

#define HAK_PROCESS_COUNTERS(X)                                                                    \
    X(superslab_map, "superslabs, of 4 MiB each, mapped from the kernel")                          \
    X(superslab_unmap, "superslabs, of 4 MiB each, given back to the kernel")                      \
    X(huge_page_skipped, "2 MiB ranges kept on small pages because huge ones were slow to touch")  \
    X(purge_calls, "calls that asked the kernel to take unused memory and leave its addresses")    \
    X(purge_units, "pieces of 64 KiB whose memory was returned to the kernel")                     \
    X(purge_regret_units, "pieces of 64 KiB needed again after their memory was returned")         \
    X(learner_change, "times the learner changed how long unused memory is kept")                  \
    X(learner_resets, "failed forecasts of the learner, after which the standard rules came back") \
    X(limit_reads, "reads of the memory limits of the process's control groups")                   \
    X(limit_purged_bytes, "bytes of unused memory returned because of a memory limit")             \
    X(limit_purged_huge_bytes, "bytes of cached huge blocks returned because of a memory limit")   \
    X(huge_map, "mappings made for huge blocks: above 1 MiB")                                      \
    X(huge_map_bytes, "bytes of the mappings made for huge blocks")                                \
    X(huge_hit, "huge blocks served from freed ones that were kept for reuse")                     \
    X(realloc_copied_bytes, "bytes that realloc copied, of blocks above 128 KiB")                  \
    X(os_failure, "system calls of the allocator that the kernel refused")                         \
    X(foreign_free, "another allocator's blocks that were freed or resized, passed on to it")      \
    X(fallback_use, "operations of threads that have no cache of their own")                       \
    X(guard_sample, "small blocks put under the watch of the sampled guard")                       \
    X(guard_free, "small blocks freed while the sampled guard watched them")

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

#endif
