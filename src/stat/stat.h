/* SPDX-License-Identifier: MIT
 *
 * One snapshot of all figures (docs/statistics.md), for the functions of the C library that tell
 * some. Figures are estimates while other threads work, exact when they rest. Any thread may call,
 * even without a tcache; nothing is allocated from ourselves.
 *
 *   a superslab is   live + cached + remote + quarantine + lost     blocks of its slabs
 *                    + slab_free + uncarved + slab_tail             the rest of them
 *                    + large + unused_dirty + unused_clean + moving its other units
 *   mapped is        that, huge and huge_cached */
#ifndef HAK_STAT_STAT_H
#define HAK_STAT_STAT_H

#include "base/counters.h"
#include "base/fmt.h"
#include "slab/slab.h"

/* Rows like those of base/counters.h, also read by tools/gen_stats.py. */

/* Bytes: name, text. */
#define HAK_STAT_BYTES(X)                                                                          \
    X(mapped, "address space of superslabs and of huge blocks, cached ones included")              \
    X(in_use, "blocks the program holds, and free ones in caches or on their way")                 \
    X(live, "small blocks the program holds")                                                      \
    X(cached, "free small blocks in bins of threads")                                              \
    X(remote, "free small blocks sent to other CPUs' heaps, not received yet")                     \
    X(quarantine, "free small blocks held back (hardened library)")                                \
    X(lost, "free small blocks in caches of threads that a fork left behind")                      \
    X(slab_free, "free small blocks in their slabs")                                               \
    X(uncarved, "parts of slabs from which no block was handed out yet")                           \
    X(slab_tail, "ends of slabs after their last block")                                           \
    X(hole, "memory of slabs that was returned to the kernel and not used since")                  \
    X(large, "large blocks the program holds: from 64 KiB to 1 MiB")                               \
    X(moving, "memory a thread takes or returns now; hardened: held back and guards")              \
    X(unused_dirty, "unused parts of superslabs that hold memory")                                 \
    X(unused_clean, "unused parts of superslabs that hold none")                                   \
    X(huge, "huge blocks the program holds: above 1 MiB")                                          \
    X(huge_cached, "freed huge blocks kept for reuse")                                             \
    X(huge_cached_dirty, "resident part of freed huge blocks that are kept for reuse, estimated")  \
    X(guard, "OS pages of small blocks that the sampled guard watches")                            \
    X(meta, "the allocator's own records")

/* Numbers: name in text, in JSON, as a metric; text. */
#define HAK_STAT_COUNTS(X)                                                                         \
    X(superslab_count, superslabs, superslabs, "areas of 4 MiB for small and large blocks")        \
    X(thread_count, threads, threads, "threads that have a cache of their own")                    \
    X(tcache_count, tcaches, tcaches, "caches of threads, and those kept for threads to come")     \
    X(large_count, large, large_blocks, "large blocks the program holds: from 64 KiB to 1 MiB")    \
    X(huge_count, huge, huge_blocks, "huge blocks the program holds: above 1 MiB")

/* Of a class, in blocks: name, text. */
#define HAK_STAT_BLOCKS(X)                                                                         \
    X(slabs, "slabs of the class")                                                                 \
    X(blocks, "blocks of the class that were handed out at least once: the sum of all below")      \
    X(live, "blocks of the class that the program holds")                                          \
    X(cached, "free blocks of the class in bins of threads")                                       \
    X(remote, "free blocks of the class sent to other CPUs' heaps, not received yet")              \
    X(quarantine, "free blocks of the class held back (hardened library)")                         \
    X(lost, "free blocks of the class in caches of threads that a fork left behind")               \
    X(free, "free blocks of the class in their slabs")

#define HAK_STAT_FIELD(name, text) uint64_t name;

typedef struct hak_class_stats {
    HAK_STAT_BLOCKS(HAK_STAT_FIELD)
} hak_class_stats_t;

#define HAK_STAT_BYTES_FIELD(name, text) uint64_t name##_bytes;
#define HAK_STAT_COUNT_FIELD(name, key, metric, text) uint64_t name;

#define HAK_STAT_FIELDS                                                                            \
    HAK_STAT_BYTES(HAK_STAT_BYTES_FIELD)                                                           \
    HAK_STAT_COUNTS(HAK_STAT_COUNT_FIELD)                                                          \
    hak_class_stats_t sc[HAK_SC_COUNT];

/* The observer's snapshot has more (observe/snapshot.h). */
typedef struct hak_snapshot {
    HAK_STAT_FIELDS
} hak_snapshot_t;

void hak_stat_collect(hak_snapshot_t *snapshot);
/* The same for small stacks: the snapshot, which is large, gets a mapping, if there is memory. */
typedef void hak_stat_use_t(void *context, hak_snapshot_t *snapshot);
void hak_stat_use(hak_stat_use_t *use, void *context);

/* Makes the sums of what was collected; the observer does, too. */
void hak_stat_sum(hak_snapshot_t *snapshot);
/* Maps *bytes, rounded up to OS pages there, and touches them; NULL: refused */
void *hak_stat_map(size_t *bytes);

/* Collects, then writes the totals: no lock is held while the sink is written to. */
void hak_stat_write_text(const hak_sink_t *sink);
void hak_stat_write_xml(const hak_sink_t *sink);

#endif
