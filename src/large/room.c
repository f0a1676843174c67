/* SPDX-License-Identifier: MIT
 *
 * Room for what is about to be used, while control groups leave little (reclaim/limit.c says how
 * little): what is in use and what is unused may together not be above a bound, so unused memory
 * goes before fresh memory is taken. A load that takes again what it freed needs no fresh memory,
 * and loses nothing by this. */
#include "large/large.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "os/os.h"

enum {
    ROOM_KEPT = 1 << 20,         /* unused units that stay whatever happens */
    ROOM_LEAST = HAK_UNIT_BYTES, /* less is not worth a call */
    ROOM_MOST = 64 << 20,        /* in one call: some milliseconds */
};

/* The kernel takes nothing back (locked memory): no use asking often. */
static const uint64_t ROOM_RETRY_NS = 1000ull * 1000 * 1000;

HAK_LOCKED_STATE uint64_t hak_room_retry_at_ns; /* [atomic] */

void hak_large_footprint(hak_footprint_t *footprint) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    hak_span_stats(&span);
    hak_large_stats(&large);
    footprint->unused_bytes = span.unused_dirty_bytes;
    footprint->cached_bytes = large.huge_cached_dirty_bytes;
    footprint->all_bytes = span.in_use_bytes + large.huge_in_use_bytes + footprint->unused_bytes +
                           footprint->cached_bytes;
}

/* Nobody took meanwhile what was to go. */
static bool room_is_as_it_was(const hak_footprint_t *had) {
    hak_footprint_t has;
    hak_large_footprint(&has);
    return has.unused_bytes >= had->unused_bytes && has.cached_bytes >= had->cached_bytes;
}

/* First cached blocks: few calls. */
static size_t room_make(const hak_footprint_t *has, size_t excess, uint64_t now) {
    size_t kept = hak_least(has->unused_bytes, ROOM_KEPT), given = 0;
    size_t cached = hak_least(has->cached_bytes, excess);
    size_t unused = hak_least(has->unused_bytes - kept, excess - cached);
    if (cached >= ROOM_LEAST) {
        given = hak_large_spare(cached);
        hak_count_by(room_huge_bytes, given);
    }
    if (unused >= ROOM_LEAST) {
        size_t purged = hak_span_purge(has->unused_bytes - unused);
        hak_count_by(room_span_bytes, purged);
        given += purged;
    }
    if (given == 0 && (cached >= ROOM_LEAST || unused >= ROOM_LEAST) && room_is_as_it_was(has)) {
        hak_store_relaxed(&hak_room_retry_at_ns, now + ROOM_RETRY_NS);
    }
    return given;
}

/* What may go now. Above the limit each fault of the program waits for the kernel: what brings it
 * below goes at once. If not even all that is unused would, what stays saves faults at least: so
 * then, and below the limit, only what the step allows. */
static size_t room_excess(const hak_footprint_t *has, size_t wanted, size_t step) {
    size_t limit = hak_load_relaxed(&hak_knobs.limit_hard_bytes);
    size_t soft = hak_least(wanted - hak_load_relaxed(&hak_knobs.limit_soft_bytes), step);
    size_t hard = wanted > limit ? wanted - limit : 0;
    hard = hard <= has->unused_bytes + has->cached_bytes ? hak_least(hard, ROOM_MOST) : 0;
    return soft > hard ? soft : hard;
}

void hak_large_make_room(size_t bytes) {
    size_t most = hak_load_relaxed(&hak_knobs.limit_soft_bytes);
    if (HAK_LIKELY(most == SIZE_MAX)) {
        return;
    }
    hak_footprint_t has;
    hak_large_footprint(&has);
    bytes += has.all_bytes;
    uint64_t now = hak_os_now_ns();
    if (bytes > most && now >= hak_load_relaxed(&hak_room_retry_at_ns)) {
        size_t step = hak_load_relaxed(&hak_knobs.limit_step_bytes);
        size_t given = room_make(&has, room_excess(&has, bytes, step), now);
        hak_store_relaxed(&hak_knobs.limit_step_bytes, step - hak_least(step, given));
    }
}
