/* SPDX-License-Identifier: MIT
 *
 * The growth of bins. While the budget lasts, a thread may draw the larger of twice its even share,
 * as seldom all want theirs, and a quarter of the rest. So the threads that work draw the share of
 * those that sleep, and some is left for threads that begin to work
 * (docs/experiments/0024-cache-follows-cpus.md). */
#include "front/budget.h"
#include "base/knobs.h"
#include "front/flush.h"
#include "os/optional.h"

enum {
    BUDGET_LEFT_DIVISOR = 4,
    BUDGET_SHARE_TIMES = 2,
    BUDGET_FLOOR = 4096,   /* a thread may draw this much of its share even if none is left */
    INITIAL_DIVISOR = 128, /* of its share, a bin's first capacity */
    INITIAL_LEAST = 128,
    SHRINK_CLASSES = 4, /* bins per event, and blocks flushed of each: bound its work */
    SHRINK_BLOCKS = 64,
    SHRINK_EVENTS = 2, /* without a refill or overflow: the bin is idle */
    BIN_INITIAL_MAX_BLOCKS = 16,
    /* Classes up to (bytes of a bin)^2 / this begin with two blocks, or with one: up to 8 KiB and
     * 64 KiB with few threads, 128 bytes and 1 KiB with many. */
    BIN_TWO_BLOCKS = 128,
    BIN_ONE_BLOCK = 16,
};

HAK_LOCKED_STATE size_t hak_budget_drawn;     /* [atomic] TCACHE-7 */
HAK_LOCKED_STATE uint32_t hak_budget_threads; /* [atomic] with a tcache, or nearly */
HAK_LOCKED_STATE uint32_t hak_budget_quota;   /* [atomic] CPUs; 0: not read yet */

/* By the CPUs that the process may use: present ones, or its quota if that is less. */
size_t hak_budget_bytes(void) {
    size_t each = hak_load_relaxed(&hak_knobs.cache_bytes), budget;
    uint32_t quota = hak_load_relaxed(&hak_budget_quota), cpus = hak_os_cpu_count();
    return hak_mul(each, quota != 0 && quota < cpus ? quota : cpus, &budget) ? budget : SIZE_MAX;
}

static size_t budget_share(size_t budget) {
    uint32_t threads = hak_load_relaxed(&hak_budget_threads);
    return threads > BUDGET_SHARE_TIMES ? budget / threads * BUDGET_SHARE_TIMES : budget;
}

/* A signal handler may fork in the middle of a draw; the child then gives back too much. */
size_t hak_budget_drawn_bytes(void) {
    size_t drawn = hak_load_relaxed(&hak_budget_drawn);
    return drawn <= SIZE_MAX / 2 ? drawn : 0;
}

/* The most that one thread may have drawn. */
static size_t budget_most(size_t budget) {
    size_t drawn = hak_budget_drawn_bytes();
    size_t part = drawn < budget ? (budget - drawn) / BUDGET_LEFT_DIVISOR : 0;
    return hak_most(part, budget_share(budget));
}

/* Draws, if the thread may draw so much. The counter is not locked between test and draw:
 * concurrent draws of one step each may exceed the budget. */
static bool budget_draw(hak_tcache_t *tcache, size_t bytes) {
    size_t budget = hak_budget_bytes(), drawn = hak_budget_drawn_bytes();
    bool is_left = drawn <= budget && budget - drawn >= bytes;
    if (tcache->drawn + bytes > hak_least(budget_most(budget), is_left ? SIZE_MAX : BUDGET_FLOOR)) {
        return false;
    }
    tcache->drawn += (uint32_t)bytes;
    hak_add_relaxed(&hak_budget_drawn, bytes);
    return true;
}

void hak_budget_give(hak_tcache_t *tcache, size_t bytes) {
    tcache->drawn -= (uint32_t)bytes;
    hak_sub_relaxed(&hak_budget_drawn, bytes);
}

/* --- capacities ------------------------------------------------------------------------------- */

int32_t hak_bin_initial_capacity(uint32_t initial_bytes, unsigned sc) {
    uint32_t bytes = hak_sc_info[sc].bytes, square = initial_bytes * initial_bytes;
    uint32_t blocks = initial_bytes / bytes;
    uint32_t least = (bytes <= square / BIN_ONE_BLOCK) + (bytes <= square / BIN_TWO_BLOCKS);
    blocks = blocks > BIN_INITIAL_MAX_BLOCKS ? BIN_INITIAL_MAX_BLOCKS : blocks;
    return (int32_t)(blocks < least ? least : blocks);
}

int32_t hak_bin_first_capacity(const hak_tcache_t *tcache, unsigned sc) {
    size_t initial = (size_t)hak_bin_initial_capacity(tcache->initial_bytes, sc);
    return (int32_t)hak_least(initial, hak_load_relaxed(&hak_knobs.bin_max_blocks));
}

int32_t hak_bin_max_capacity(unsigned sc) {
    size_t blocks = hak_load_relaxed(&hak_knobs.bin_max_bytes) / hak_sc_info[sc].bytes;
    size_t initial = (size_t)hak_bin_initial_capacity(HAK_BIN_INITIAL_BYTES, sc);
    size_t most = hak_load_relaxed(&hak_knobs.bin_max_blocks);
    return (int32_t)hak_least(hak_most(blocks, initial), most);
}

int32_t hak_bin_capacity(const hak_bin_side_t *side) {
    return (int32_t)hak_least((size_t)side->capacity, hak_load_relaxed(&hak_knobs.bin_max_blocks));
}

int32_t hak_bin_charge(const hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want) {
    int32_t initial = hak_bin_initial_capacity(tcache->initial_bytes, sc);
    int32_t rest = (int32_t)want - 1, may = capacity > rest ? capacity : rest;
    return may > initial ? may - initial : 0;
}

bool hak_bin_resize(hak_tcache_t *tcache, unsigned sc, int32_t capacity, uint32_t want) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    int32_t before = hak_bin_charge(tcache, sc, side->capacity, side->want);
    int32_t after = hak_bin_charge(tcache, sc, capacity, want);
    size_t bytes = hak_sc_info[sc].bytes;
    if (after > before && !budget_draw(tcache, (size_t)(after - before) * bytes)) {
        return false;
    }
    if (after < before) {
        hak_budget_give(tcache, (size_t)(before - after) * bytes);
    }
    side->capacity = capacity;
    side->want = (uint16_t)want;
    return true;
}

void hak_bin_grow(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    int32_t most = hak_bin_max_capacity(sc);
    int32_t doubled = side->capacity == 0 ? 1 : side->capacity * 2;
    hak_bin_resize(tcache, sc, doubled > most ? most : doubled, side->want);
}

/* --- giving back ------------------------------------------------------------------------------ */

/* Flushes the newest blocks of a bin above its capacity, at most SHRINK_BLOCKS. */
static void bin_cut(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    int32_t kept = side->total - bin->slots_left;
    int32_t capacity = hak_bin_capacity(side), over = kept - capacity;
    if (over > 0) {
        over = over > SHRINK_BLOCKS ? SHRINK_BLOCKS : over;
        hak_blocks_t blocks = {.head = bin->head, .count = (uint32_t)over};
        hak_store_relaxed(&bin->head, NULL); /* as in free_to_full_bin */
        hak_store_hot(&bin->head, hak_tcache_flush_blocks(tcache, sc, blocks));
        kept -= over;
    }
    side->total = kept > capacity ? kept : capacity;
    bin->slots_left = side->total - kept;
    hak_wanted_serve(); /* as in free_to_full_bin */
}

static void bin_shrink_idle(hak_tcache_t *tcache, unsigned sc, bool exceeds_share) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    if (!exceeds_share && side->idle < SHRINK_EVENTS) {
        side->idle++;
        return;
    }
    int32_t initial = hak_bin_first_capacity(tcache, sc);
    int32_t capacity = initial + (side->capacity - initial) / 2;
    size_t want = hak_most(hak_most((size_t)initial / 2, 1), side->want / 2u);
    hak_bin_resize(tcache, sc, capacity, (uint32_t)want);
    bin_cut(tcache, sc);
}

HAK_COLD void hak_budget_shrink_idle(hak_tcache_t *tcache) {
    bool exceeds_share = tcache->drawn > budget_most(hak_budget_bytes());
    /* a single block in a bin may keep a slab from retiring */
    unsigned classes = hak_load_relaxed(&hak_knobs.is_tight) ? HAK_SC_COUNT : SHRINK_CLASSES;
    for (unsigned i = 0; i < classes; i++) {
        if ((tcache->begun >> tcache->shrink_cursor & 1) != 0) {
            bin_shrink_idle(tcache, tcache->shrink_cursor, exceeds_share);
        }
        tcache->shrink_cursor = (uint8_t)((tcache->shrink_cursor + 1) % HAK_SC_COUNT);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

/* The quota is read by one thread, when a second one begins; others assume none meanwhile. */
void hak_budget_join(void) {
    uint32_t unknown = 0;
    if (hak_add_relaxed(&hak_budget_threads, 1) == 1 && hak_load_relaxed(&hak_knobs.cgroup) &&
        hak_cas_relaxed(&hak_budget_quota, &unknown, HAK_OS_NO_QUOTA)) {
        hak_store_relaxed(&hak_budget_quota, hak_os_cpu_quota());
    }
}

/* Never below 0: a fork inside an attachment resets the count in the child. */
void hak_budget_quit(void) {
    uint32_t threads = hak_load_relaxed(&hak_budget_threads);
    while (threads != 0 && !hak_cas_relaxed(&hak_budget_threads, &threads, threads - 1)) {
    }
}

uint32_t hak_budget_initial_bytes(void) {
    size_t bytes = budget_share(hak_budget_bytes()) / INITIAL_DIVISOR;
    return (uint32_t)hak_least(hak_most(bytes, INITIAL_LEAST), HAK_BIN_INITIAL_BYTES);
}

void hak_budget_after_fork(const hak_tcache_t *self, const hak_tcache_t *fallback) {
    const hak_tcache_t *second = self != NULL ? hak_tcache_behind(self, self) : NULL;
    size_t drawn = fallback->drawn + (size_t)(self != NULL ? self->drawn : 0);
    drawn += second != NULL ? second->drawn : 0;
    hak_store_relaxed(&hak_budget_threads, (self != NULL) + (second != NULL));
    hak_store_relaxed(&hak_budget_quota, 0); /* the thread that was reading it may be gone */
    hak_store_relaxed(&hak_budget_drawn, drawn);
}
