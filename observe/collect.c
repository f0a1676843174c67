/* SPDX-License-Identifier: MIT
 *
 * The figures of another program, as stat/collect.c makes some of them inside. */
#include "image.h"

#include "base/bits.h"
#include "figures.h"
#include "front/event.h"

enum { THREADS_MOST = 1 << 20, OWNERS_MOST = 1 << 16 }; /* no process has as many */

#define COLLECT_ADD(name, text) to->name += from->name;

/* --- threads ---------------------------------------------------------------------------------- */

/* Of a tcache, as front/tcache.h tells it. */
typedef struct cache_view {
    obs_tcache_t tcache;
    obs_side_t side[HAK_SC_COUNT];
    uint32_t cached[HAK_SC_COUNT], quarantine[HAK_SC_COUNT];
    bool is_fallback;
} cache_view_t;

static bool view_quarantine(obs_image_t *image, cache_view_t *view) {
    static obs_quarantine_t quarantine; /* as large as small stacks */
    memset(view->quarantine, 0, sizeof view->quarantine);
    if (view->tcache.quarantine == 0) {
        return true;
    }
    if (!obs_fetch(image, quarantine, view->tcache.quarantine, &quarantine)) {
        return false;
    }
    for (unsigned i = 0; i < HAK_SC_COUNT * HAK_QUARANTINE_SLOTS; i++) {
        view->quarantine[i / HAK_QUARANTINE_SLOTS] += quarantine.slot[i] != 0;
    }
    return true;
}

static bool view_read(obs_image_t *image, uint64_t at, cache_view_t *view) {
    if (!obs_fetch(image, tcache, at, &view->tcache)) {
        return false;
    }
    const obs_tcache_t *tcache = &view->tcache;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint64_t far = tcache->far_side, side = tcache->side;
        obs_bin_t bin;
        bool is_near = sc < HAK_SIDES_NEAR;
        uint64_t place = (is_near ? side : far) +
                         (is_near ? sc : sc - HAK_SIDES_NEAR) * (uint64_t)obs_size(image, side);
        view->side[sc] = (obs_side_t){0};
        if ((is_near || far != 0) && !obs_fetch(image, side, place, &view->side[sc])) {
            return false;
        }
        if (!obs_fetch(image, bin, tcache->bin + sc * (uint64_t)obs_size(image, bin), &bin)) {
            return false;
        }
        int64_t cached = (int64_t)(int32_t)view->side[sc].total - (int32_t)bin.slots_left;
        view->cached[sc] = cached > 0 ? (uint32_t)cached : 0;
    }
    view->is_fallback = at == obs_root(image, fallback);
    return view_quarantine(image, view);
}

/* Whether its thread has another one, too (TCACHE-10). */
static bool is_second(const obs_image_t *image, const cache_view_t *view) {
    return obs_is_hardened(image) && (view->tcache.first_entry & HAK_SLAB_PLAIN_ID) != 0;
}

typedef void visit_cache_t(obs_image_t *image, cache_view_t *view, obs_snapshot_t *snapshot);

/* The fallback, then all others, newest first. */
static void visit_caches(obs_image_t *image, obs_snapshot_t *snapshot, visit_cache_t *visit) {
    static cache_view_t view;
    uint64_t at = obs_root(image, fallback);
    obs_walk_t walk = {0};
    bool is_whole, is_fallback = true;
    for (; walk.count < THREADS_MOST && obs_walk_on(&walk, at, &is_whole); is_fallback = false) {
        if (!view_read(image, at, &view)) {
            break;
        }
        visit(image, &view, snapshot);
        at = is_fallback ? obs_root_number(image, HAK_DOOR_ROOT_tcaches, 8) : view.tcache.next;
    }
    image->doubt.lists += !is_whole;
}

static void collect_cache(obs_image_t *image, cache_view_t *view, obs_snapshot_t *snapshot) {
    const obs_tcache_t *from = &view->tcache;
    obs_tcache_counters_t *to = &snapshot->events;
    HAK_THREAD_COUNTERS(COLLECT_ADD)
    snapshot->tcache_count += view->tcache.first_entry != 0;
    snapshot->thread_count += view->tcache.is_attached != 0 && !is_second(image, view);
    bool is_left = view->tcache.is_attached == 0 && !view->is_fallback;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const obs_side_t *from = &view->side[sc];
        hak_bin_counters_t *to = &snapshot->bin[sc];
        hak_class_stats_t *stats = &snapshot->sc[sc];
        HAK_BIN_COUNTERS(COLLECT_ADD)
        if (is_left) {
            stats->lost += view->cached[sc] + view->quarantine[sc];
        } else {
            stats->cached += view->cached[sc];
            stats->quarantine += view->quarantine[sc];
        }
    }
}

/* Since a slow path of either of its caches read the clock, which may be after we did. */
static uint64_t idle_ms(const obs_image_t *image, const obs_tcache_t *tcache, uint64_t known_ms) {
    uint32_t now = (uint32_t)(image->reader->now_ns / HAK_EVENT_STEP_NS);
    int32_t steps = (int32_t)(now - tcache->event_step);
    bool is_known = tcache->event_step != 0 && image->reader->now_ns != 0 && steps > 0;
    uint64_t ms = is_known ? (uint64_t)steps * (HAK_EVENT_STEP_NS / 1000000) : 0;
    return known_ms == 0 || (ms != 0 && ms < known_ms) ? ms : known_ms;
}

static void thread_add(obs_image_t *image, obs_thread_stats_t *thread, const cache_view_t *view) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const obs_side_t *from = &view->side[sc];
        hak_bin_counters_t *to = &thread->bin;
        HAK_BIN_COUNTERS(COLLECT_ADD)
        uint64_t cached = (uint64_t)view->cached[sc] + view->quarantine[sc];
        thread->cached_bytes += cached * hak_sc_info[sc].bytes;
    }
    const obs_tcache_t *from = &view->tcache;
    hak_thread_counters_t *to = &thread->own;
    HAK_THREAD_COUNTERS(COLLECT_ADD)
    thread->drawn_bytes += view->tcache.drawn;
    thread->idle_ms = idle_ms(image, &view->tcache, thread->idle_ms);
}

static void list_add(obs_thread_list_t *list, const obs_thread_stats_t *thread) {
    if (list->count == list->room) {
        size_t room = list->room * 2 + 64;
        obs_thread_stats_t *all = obs_grow(list->thread, room * sizeof *all);
        if (all == NULL) {
            obs_current->doubt.lists++;
            return;
        }
        list->thread = all;
        list->room = room;
    }
    list->thread[list->count++] = *thread;
}

/* One line for both caches of a thread. */
static void list_cache(obs_image_t *image, cache_view_t *view, obs_snapshot_t *snapshot) {
    (void)snapshot;
    static cache_view_t second;
    const obs_tcache_t *tcache = &view->tcache;
    obs_thread_stats_t thread = {.id = tcache->thread_id, .is_attached = tcache->is_attached != 0};
    if (thread.is_attached && is_second(image, view)) {
        return;
    }
    thread_add(image, &thread, view);
    thread.owner = ((tcache->first_entry & ~(uint32_t)HAK_SLAB_PLAIN_ID) >> 8) - 1;
    if (obs_is_hardened(image) && thread.is_attached && tcache->second != 0) {
        if (view_read(image, tcache->second, &second)) {
            thread_add(image, &thread, &second);
        } else {
            image->doubt.lists++;
        }
    }
    bool is_there = thread.is_attached || thread.cached_bytes != 0;
    if (tcache->first_entry != 0 && is_there) {
        list_add(&obs_threads, &thread);
    }
}

obs_thread_list_t obs_threads;

void obs_drop_threads(void) {
    obs_drop(obs_threads.thread);
    obs_threads = (obs_thread_list_t){0};
}

/* --- owners ----------------------------------------------------------------------------------- */

/* That of sampled blocks is no thread's. */
static bool collect_owner(obs_image_t *image, uint64_t at, obs_snapshot_t *snapshot,
                          uint64_t *next) {
    obs_owner_t owner;
    if (!obs_fetch(image, owner, at, &owner)) {
        return false;
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        obs_class_counters_t counters, *from = &counters;
        hak_class_counters_t *to = &snapshot->owner[sc];
        uint64_t place = owner.counters + sc * (uint64_t)obs_size(image, class_counters);
        if (!obs_fetch(image, class_counters, place, &counters)) {
            return false;
        }
        HAK_CLASS_COUNTERS(COLLECT_ADD)
    }
    *next = owner.next;
    return true;
}

static void collect_owners(obs_image_t *image, obs_snapshot_t *snapshot) {
    uint64_t apart = obs_root_number(image, HAK_DOOR_ROOT_owner_apart, 8), next;
    uint64_t at = obs_root_number(image, HAK_DOOR_ROOT_owners, 8);
    obs_walk_t walk = {0};
    bool is_whole;
    for (; walk.count < OWNERS_MOST && obs_walk_on(&walk, at, &is_whole); at = next) {
        if (!collect_owner(image, at, snapshot, &next)) {
            break;
        }
    }
    image->doubt.lists += !is_whole;
    if (apart != 0 && !collect_owner(image, apart, snapshot, &next)) {
        image->doubt.lists++;
    }
}

/* --- superslabs ------------------------------------------------------------------------------- */

typedef struct superslab_work {
    obs_snapshot_t *snapshot;
    unsigned used; /* units in slabs and large blocks */
} superslab_work_t;

static void collect_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    superslab_work_t *work = context;
    obs_snapshot_t *snapshot = work->snapshot;
    hak_class_stats_t *stats = &snapshot->sc[piece->sc];
    (void)range;
    if (piece->kind == HAK_PIECE_SLAB) {
        size_t remote = obs_remote_waiting(piece->unit);
        stats->slabs++;
        stats->blocks += piece->carved;
        stats->free += piece->free;
        stats->remote += hak_least(remote, piece->carved - piece->free);
        work->used += piece->units;
    } else if (piece->kind == HAK_PIECE_LARGE) {
        snapshot->large_bytes += (size_t)piece->units * HAK_UNIT_BYTES;
        snapshot->large_count++;
        work->used += piece->units;
    }
}

/* Units that are neither free nor in a slab or a large block count as moving. */
static void collect_superslab(const hak_range_t *range, obs_snapshot_t *snapshot) {
    superslab_work_t work = {.snapshot = snapshot};
    obs_pieces(range, collect_piece, &work);
    uint64_t free = obs_free_units(), clean = free & obs_clean_units();
    size_t moving = hak_popcount(~free) - hak_least(hak_popcount(~free), work.used);
    snapshot->superslab_count++;
    snapshot->moving_bytes += moving * HAK_UNIT_BYTES;
    snapshot->unused_clean_bytes += (size_t)hak_popcount(clean) * HAK_UNIT_BYTES;
    snapshot->unused_dirty_bytes += (size_t)hak_popcount(free & ~clean) * HAK_UNIT_BYTES;
}

static void collect_ranges(obs_snapshot_t *snapshot) {
    obs_ranges_t inventory;
    obs_ranges_take(&inventory);
    for (size_t i = 0; i < inventory.count; i++) {
        const hak_range_t *range = &inventory.range[i];
        if (range->kind == HAK_RANGE_SUPERSLAB) {
            collect_superslab(range, snapshot);
        } else if (range->kind == HAK_RANGE_CACHED) {
            snapshot->huge_cached_bytes += range->bytes;
        }
    }
    obs_ranges_drop(&inventory);
}

/* --- process ---------------------------------------------------------------------------------- */

static void collect_lost(obs_image_t *image, obs_snapshot_t *snapshot) {
    uint32_t lost[HAK_SC_COUNT] = {0};
    if (!obs_read(image->reader, obs_root(image, lost), lost, sizeof lost)) {
        image->doubt.lists++;
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        snapshot->sc[sc].lost += lost[sc];
    }
}

static uint64_t budget_bytes(obs_image_t *image) {
    uint64_t quota = obs_root_number(image, HAK_DOOR_ROOT_quota_cpus, 4);
    uint64_t cpus = hak_most(obs_root_number(image, HAK_DOOR_ROOT_cpus, 4), 1);
    size_t budget;
    cpus = quota != 0 && quota < cpus ? quota : cpus;
    return hak_mul(image->knobs.cache_bytes, cpus, &budget) ? budget : SIZE_MAX;
}

static void collect_process(obs_image_t *image, obs_snapshot_t *snapshot) {
    obs_counters_t counters, *from = &counters;
    uint64_t drawn = obs_root_number(image, HAK_DOOR_ROOT_drawn_bytes, 8);
    if (!obs_fetch(image, counters, obs_root(image, counters), &counters)) {
        image->doubt.lists++;
        return;
    }
    hak_process_counters_t *to = &snapshot->process;
    HAK_PROCESS_COUNTERS(COLLECT_ADD)
    uint64_t guarded_count = hak_excess(to->guard_sample, to->guard_free);
    snapshot->guard_bytes = guarded_count * image->reader->page_bytes;
    snapshot->cache_bytes = drawn <= SIZE_MAX / 2 ? drawn : 0;
    snapshot->cache_budget_bytes = budget_bytes(image);
    snapshot->memory_limit_bytes = image->knobs.limit_bytes;
    snapshot->memory_is_tight = image->knobs.is_tight != 0;
    snapshot->profile_rate_bytes = obs_root_number(image, HAK_DOOR_ROOT_profile_rate, 8);
}

static void collect_huge(obs_image_t *image, obs_snapshot_t *snapshot) {
    obs_huge_cache_t cache;
    obs_huge_t huge;
    if (!obs_fetch(image, huge_cache, obs_root(image, huge_cache), &cache) ||
        !obs_fetch(image, huge, obs_root(image, huge), &huge)) {
        image->doubt.lists++;
        return;
    }
    snapshot->huge_bytes = cache.in_use_bytes;
    snapshot->huge_count = huge.in_use_count;
    snapshot->huge_cached_dirty_bytes = cache.resident_bytes;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* 0: the standard rules decide. *saved: bytes a second. */
static uint64_t learned_ms(hak_learner_pool_t pool, uint64_t *saved) {
    obs_learner_view_t view;
    obs_learner_read(pool, &view);
    const hak_price_t *own = &view.price[view.strategy],
                      *other = &view.price[HAK_STRATEGY_STANDARD];
    bool decides = view.acts && view.strategy != HAK_STRATEGY_STANDARD;
    uint64_t less = hak_excess(other->taken + other->held, own->taken + own->held);
    *saved = decides ? obs_learner_rate(less) : 0;
    return decides ? HAK_STRATEGY_MS[view.strategy] : 0;
}

/* The sums over all classes. */
static void sum_events(obs_snapshot_t *snapshot) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
#define SUM_BIN(name, text) snapshot->events.name += snapshot->bin[sc].name;
#define SUM_CLASS(name, text) snapshot->events.name += snapshot->owner[sc].name;
        HAK_BIN_COUNTERS(SUM_BIN)
        HAK_CLASS_COUNTERS(SUM_CLASS)
    }
}

/* Changes as tcaches leave their list, and is odd meanwhile (front/abandoned.h). Not of a piece
 * that was read before. */
static uint64_t generation_now(obs_image_t *image) {
    bool is_exact = image->reader->is_exact;
    image->reader->is_exact = true;
    uint64_t generation = obs_root_number(image, HAK_DOOR_ROOT_generation, 4);
    image->reader->is_exact = is_exact;
    return generation;
}

void obs_collect(obs_snapshot_t *snapshot) {
    obs_image_t *image = obs_current;
    uint64_t generation = generation_now(image);
    hak_fence_acquire();       /* pairs GENERATION: system calls order no reads on arm64 */
    obs_forget(image->reader); /* else lists may be older */
    memset(snapshot, 0, sizeof *snapshot);
    visit_caches(image, snapshot, collect_cache);
    collect_owners(image, snapshot);
    collect_ranges(snapshot);
    collect_process(image, snapshot);
    collect_huge(image, snapshot);
    collect_lost(image, snapshot);
    snapshot->hole_bytes = obs_root_number(image, HAK_DOOR_ROOT_purged_bytes, 8);
    snapshot->meta_bytes = obs_root_number(image, HAK_DOOR_ROOT_meta_bytes, 8);
    hak_stat_sum(&snapshot->heap);
    sum_events(snapshot);
    snapshot->keep_units_ms = learned_ms(HAK_LEARNER_UNITS, &snapshot->keep_units_saves_bytes);
    snapshot->keep_huge_ms = learned_ms(HAK_LEARNER_HUGE, &snapshot->keep_huge_saves_bytes);
    visit_caches(image, snapshot, list_cache);
    hak_fence_acquire(); /* pairs GENERATION */
    image->doubt.lists += generation % 2 != 0 || generation_now(image) != generation;
}
