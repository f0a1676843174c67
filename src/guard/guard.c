/* SPDX-License-Identifier: MIT
 *
 * Sampling, and the life of a slot. No system call is made with the lock held, except once, for the
 * region. A call that the kernel refuses costs a sample, nothing else. */
#include "guard/guard.h"

#include "base/bits.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "front/fast.h"
#include "guard/allowance.h"
#include "guard/slot.h"
#include "guard/stack_print.h"
#include "os/lock.h"
#include "span/span.h"
#include "stack/stack.h"

HAK_LOCKED_STATE hak_guard_region_t hak_guard_region;

/* --- when ------------------------------------------------------------------------------------- */

/* Mean number of blocks until an extra one, which the allowance permits: not always the first of
 * the next refill. */
enum { GUARD_EXTRA_BLOCKS = 64 };
/* 1 process in so many begins with a countdown like that to a block of the rate, which makes the
 * region. */
enum { GUARD_FIRST_ODDS = 16 };

static uint32_t guard_is_drawn; /* [atomic] the first countdown began */

static bool guard_has_extra(void) {
    return hak_load_relaxed(&hak_knobs.guard_rate) == HAK_GUARD_RATE;
}

/* Uniform in 1 to 2n - 1: n on average, and no program can stay in step with it. */
static int64_t guard_uniform(uint64_t *state, uint64_t mean) {
    return 1 + (int64_t)(hak_random_next(state) % (2 * mean - 1));
}

static int64_t guard_interval(uint64_t *state) {
    uint64_t rate = hak_load_relaxed(&hak_knobs.guard_rate);
    return rate != 0 ? guard_uniform(state, rate) : INT64_MAX;
}

/* Begins the next countdown. */
static void guard_next(hak_tcache_t *tcache, bool is_extra) {
    uint64_t *state = &tcache->guard_random;
    tcache->guard_is_extra = is_extra;
    tcache->guard_left =
        is_extra ? guard_uniform(state, GUARD_EXTRA_BLOCKS) : guard_interval(state);
}

/* Differs in each thread and process, without a system call, nor the clock, whose first use costs
 * two page faults; it need not be secret. */
static uint64_t guard_seed(const hak_tcache_t *tcache) {
    uint64_t place = (uintptr_t)tcache ^ (uintptr_t)HAK_FRAME() << 16;
    return (place ^ (uint64_t)tcache->thread_id << 48) | 1;
}

/* Begins the countdown of a new tcache: whether it is over with the present request. */
static bool guard_begin(hak_tcache_t *tcache) {
    int64_t left = tcache->guard_left;
    tcache->guard_random = guard_seed(tcache);
    bool is_first = hak_swap_relaxed(&guard_is_drawn, 1) == 0;
    bool is_drawn = hak_random_next(&tcache->guard_random) % GUARD_FIRST_ODDS == 0;
    guard_next(tcache, guard_has_extra() && is_first && is_drawn);
    tcache->guard_is_extra = false;
    tcache->guard_left += left - 1; /* it counts */
    return tcache->guard_left <= 0;
}

/* Whether a block is due, and within the allowance. */
static bool guard_is_due(hak_tcache_t *tcache) {
    if (!hak_guard_region.is_on) {
        if (!hak_load_relaxed(&hak_knobs.guard)) {
            tcache->guard_left = INT64_MAX;
        }
        return false; /* perhaps only until options are read */
    }
    if (tcache->guard_random == 0 && !guard_begin(tcache)) {
        return false;
    }
    if (!guard_has_extra()) {
        guard_next(tcache, false);
        return hak_load_relaxed(&hak_knobs.guard_rate) != 0;
    }
    uint64_t now = hak_os_now_ns();
    bool is_due = hak_allowance_take(now, tcache->guard_is_extra);
    guard_next(tcache, hak_allowance_has(now));
    return is_due;
}

void hak_guard_follow(hak_tcache_t *tcache) {
    uint64_t rate = hak_load_relaxed(&hak_knobs.guard_rate);
    if (!hak_guard_region.is_on || tcache->guard_random == 0 || rate == 0) {
        return;
    }
    bool is_extra =
        guard_has_extra() && !tcache->guard_is_extra && hak_allowance_has(hak_os_now_ns());
    if (is_extra || tcache->guard_left > 2 * (int64_t)rate - 1) {
        guard_next(tcache, is_extra);
    }
}

/* --- slots ------------------------------------------------------------------------------------ */

static char *slot_page(const hak_guard_slot_t *slot) {
    size_t index = (size_t)(slot - hak_guard_region.slot);
    return hak_load_relaxed(&hak_guard_region.base) + (2 * index + 1) * hak_os_page_bytes();
}

/* Largest region whose slots keep their OS pages: its size with OS pages of 4 KiB. */
enum { GUARD_KEPT_BYTES = 8 << 20 };

/* GUARD held. */
static bool guard_region_make(uint32_t count) {
    hak_guard_region_t *region = &hak_guard_region;
    size_t bytes = hak_align_up((2 * (size_t)count + 1) * hak_os_page_bytes(), HAK_UNIT_BYTES);
    char *base = hak_os_reserve(bytes, HAK_UNIT_BYTES);
    if (base == NULL) {
        return false;
    }
    if (!hak_pagemap_prepare(base, bytes)) {
        hak_os_unmap(base, bytes);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        region->queue[i] = (uint16_t)i;
    }
    region->slot_count = count;
    region->queue_count = count;
    region->keeps_pages = count > HAK_GUARD_SLOTS && bytes <= GUARD_KEPT_BYTES;
    hak_pagemap_set(base, bytes / HAK_UNIT_BYTES, HAK_KIND_GUARD);
    hak_store_release(&region->base, base); /* pairs GUARD-5 */
    region->region = (hak_region_t){.base = base, .bytes = bytes, .kind = HAK_REGION_GUARD};
    hak_region_add(&region->region);
    return true;
}

/* GUARD held. With little address space it has as few slots as by default. */
static bool guard_region_begin(void) {
    hak_guard_region_t *region = &hak_guard_region;
    bool is_every = hak_load_relaxed(&hak_knobs.guard_rate) == 1 &&
                    hak_load_relaxed(&hak_knobs.bin_max_blocks) == 0;
    uint32_t count = is_every ? HAK_GUARD_SLOTS_MOST : HAK_GUARD_SLOTS;
    if (region->slot == NULL) {
        region->slot = hak_meta_alloc((sizeof *region->slot + sizeof *region->queue) * count);
        region->slot_most = count;
    }
    if (region->slot == NULL) {
        return false;
    }
    region->queue = (uint16_t *)(region->slot + region->slot_most);
    return guard_region_make(region->slot_most) ||
           (region->slot_most > HAK_GUARD_SLOTS && guard_region_make(HAK_GUARD_SLOTS));
}

/* NULL: all slots are in use, or there is no region. */
static hak_guard_slot_t *slot_take(void) {
    hak_guard_region_t *region = &hak_guard_region;
    hak_guard_slot_t *slot = NULL;
    hak_lock_acquire(HAK_LOCK_GUARD);
    if ((region->base != NULL || guard_region_begin()) && region->queue_count != 0) {
        slot = &region->slot[region->queue[region->queue_first]];
        region->queue_first = (region->queue_first + 1) % region->slot_count;
        region->queue_count--;
    }
    hak_lock_release(HAK_LOCK_GUARD);
    return slot;
}

/* GUARD held. */
static void slot_push(const hak_guard_slot_t *slot) {
    hak_guard_region_t *region = &hak_guard_region;
    uint32_t last = (region->queue_first + region->queue_count) % region->slot_count;
    region->queue[last] = (uint16_t)(slot - region->slot);
    region->queue_count++;
}

static void slot_give(const hak_guard_slot_t *slot) {
    if (hak_load_relaxed(&hak_guard_region.is_stopped)) {
        return;
    }
    hak_lock_acquire(HAK_LOCK_GUARD);
    slot_push(slot);
    hak_lock_release(HAK_LOCK_GUARD);
}

/* Purging an OS page and faulting it in again costs as much as the rest of a block's life: slots
 * keep theirs where every block is guarded. */
static void slot_conceal(const hak_guard_slot_t *slot) {
    (void)hak_os_conceal(slot_page(slot), hak_os_page_bytes());
    if (!hak_guard_region.keeps_pages) {
        (void)hak_os_purge(slot_page(slot), hak_os_page_bytes());
    }
}

/* In the child of a fork, which holds GUARD: queues slots that other threads held between queue and
 * use. A slot being filled is empty; one being freed is free, perhaps without a record of that. */
static void slots_recover(void) {
    hak_guard_region_t *region = &hak_guard_region;
    uint64_t queued[HAK_GUARD_SLOTS_MOST / 64 + 1] = {0};
    for (uint32_t i = 0; i < region->queue_count; i++) {
        uint16_t at = region->queue[(region->queue_first + i) % region->slot_count];
        queued[at / 64] |= 1ull << at % 64;
    }
    for (uint32_t i = 0; region->base != NULL && i < region->slot_count; i++) {
        hak_guard_slot_t *slot = &region->slot[i];
        if ((queued[i / 64] >> i % 64 & 1) != 0 || slot->state == HAK_GUARD_LIVE) {
            continue;
        }
        if (slot->state == HAK_GUARD_UNUSED) {
            slot->block = NULL;
        }
        slot_conceal(slot);
        slot_push(slot);
    }
}

/* --- canaries --------------------------------------------------------------------------------- */

/* Canary bytes on each side of a block: most strays are short, and an OS page may have 64 KiB. */
enum { CANARY_BYTES = 256 };

/* Never 0, the value that strays write most, and never equal to its neighbour. */
static unsigned char canary_at(const char *place) {
    return (unsigned char)((uintptr_t)place * 0x4du | 0x80);
}

/* The ranges on both sides of the block. */
typedef struct canary {
    char *from, *before; /* `before` is the block */
    char *behind, *to;   /* `behind` is its end */
} canary_t;

static canary_t canary_of(const hak_guard_slot_t *slot) {
    char *page = slot_page(slot), *end = page + hak_os_page_bytes();
    char *behind = slot->block + slot->bytes;
    size_t left = hak_least((size_t)(slot->block - page), CANARY_BYTES);
    size_t right = hak_least((size_t)(end - behind), CANARY_BYTES);
    return (canary_t){slot->block - left, slot->block, behind, behind + right};
}

static void canary_write(const hak_guard_slot_t *slot) {
    canary_t canary = canary_of(slot);
    for (char *at = canary.from; at < canary.before; at++) {
        *at = (char)canary_at(at);
    }
    for (char *at = canary.behind; at < canary.to; at++) {
        *at = (char)canary_at(at);
    }
}

static HAK_COLD void canary_died(hak_guard_slot_t *slot, hak_fatal_kind_t kind, const void *at) {
    hak_store_relaxed(&slot->state, HAK_GUARD_LIVE); /* its state when it was overwritten */
    hak_guard_report(kind, at, slot);
}

/* Fatal if a stray write hit it: reports the byte nearest to the block, which tells most. */
static void canary_check(hak_guard_slot_t *slot) {
    canary_t canary = canary_of(slot);
    for (const char *at = canary.behind; at < canary.to; at++) {
        if (*(const unsigned char *)at != canary_at(at)) {
            canary_died(slot, HAK_FATAL_OVERFLOW, at);
        }
    }
    for (const char *at = canary.before; at-- > canary.from;) {
        if (*(const unsigned char *)at != canary_at(at)) {
            canary_died(slot, HAK_FATAL_UNDERFLOW, at);
        }
    }
}

/* --- the calls of the front ------------------------------------------------------------------- */

/* A system call only in threads without a tcache; no other thread writes the ID of one in use. */
static uint32_t guard_thread_id(void) {
    const hak_tcache_t *self = hak_tcache_self(hak_pagemap_base());
    return hak_tcache_is_empty(self) ? hak_os_thread_id() : self->thread_id;
}

/* Records the thread and its stack. */
static void event_note(hak_guard_event_t *event) {
    event->thread_id = guard_thread_id();
    event->count = hak_stack_walk(event->frame, HAK_GUARD_FRAMES);
}

/* Half of the blocks end at a guard, as far as their alignment allows; half begin at one. */
static void *slot_fill(hak_guard_slot_t *slot, const hak_request_t *request, bool is_left) {
    char *page = slot_page(slot);
    size_t bytes = request->bytes == 0 ? 1 : request->bytes;
    size_t room = hak_os_page_bytes() - bytes;
    hak_store_relaxed(&slot->state, HAK_GUARD_UNUSED); /* for slots_recover in a child */
    HAK_SIGNAL_FENCE();
    slot->block = is_left ? page : page + hak_align_down(room, request->align);
    slot->bytes = (uint32_t)bytes;
    slot->freed.thread_id = 0;
    slot->freed.count = 0;
    event_note(&slot->allocated);
    canary_write(slot);
    hak_store_release(&slot->state, HAK_GUARD_LIVE); /* pairs GUARD-6 */
    hak_count(guard_sample);
    return slot->block;
}

static HAK_COLD void *guard_sample(hak_tcache_t *tcache, const hak_request_t *request) {
    size_t page = hak_os_page_bytes();
    if (!guard_is_due(tcache) || request->bytes > page || request->align > page ||
        hak_load_relaxed(&hak_guard_region.is_stopped)) {
        return NULL;
    }
    void *block = NULL;
    hak_set_unlocked_update(true); /* GUARD-2, if a signal handler forks */
    hak_guard_slot_t *slot = slot_take();
    if (slot != NULL && hak_os_commit(slot_page(slot), page)) {
        block = slot_fill(slot, request, (hak_random_next(&tcache->guard_random) & 1) != 0);
    } else if (slot != NULL) {
        slot_give(slot);
    }
    hak_set_unlocked_update(false);
    return block;
}

static hak_fatal_kind_t free_kind(const hak_guard_slot_t *slot, const void *block) {
    if (slot == NULL || hak_load_relaxed(&slot->state) == HAK_GUARD_UNUSED) {
        return HAK_FATAL_INVALID_FREE;
    }
    if (hak_load_relaxed(&slot->state) == HAK_GUARD_LIVE) {
        return HAK_FATAL_INTERIOR_FREE;
    }
    return slot->block == block ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_DEAD_FREE;
}

/* Of two threads that free the block, one is reported. */
static HAK_COLD void guard_free(void *block) {
    hak_guard_slot_t *slot = hak_guard_slot_of(block);
    uint32_t live = HAK_GUARD_LIVE;
    hak_set_unlocked_update(true); /* as in guard_sample */
    if (slot == NULL || slot->block != block ||
        !hak_cas_acquire(&slot->state, &live, HAK_GUARD_FREED)) { /* pairs GUARD-6 */
        hak_guard_report(free_kind(slot, block), block, slot);
    }
    canary_check(slot);
    hak_count(guard_free);
    event_note(&slot->freed);
    slot_conceal(slot);
    slot_give(slot);
    hak_set_unlocked_update(false);
}

static HAK_COLD size_t guard_usable(const void *block, hak_fatal_kind_t kind) {
    const hak_guard_slot_t *slot = hak_guard_slot_of(block);
    if (slot == NULL || slot->block != block ||
        hak_load_acquire(&slot->state) != HAK_GUARD_LIVE) { /* pairs GUARD-6 */
        hak_guard_report(kind, block, slot);
    }
    return slot->bytes;
}

/* The program may forbid itself the call later, and its own handlers may pass on to ours. */
void hak_guard_start(void) {
    bool is_on = hak_load_relaxed(&hak_knobs.guard) && !hak_load_relaxed(&hak_knobs.force_libc) &&
                 hak_os_trap_install(hak_guard_trap);
    hak_services.describe = hak_describe;
    hak_services.trace = hak_load_relaxed(&hak_knobs.backtrace) ? hak_guard_trace : NULL;
    hak_services.guard_sample = guard_sample;
    hak_services.guard_free = guard_free;
    hak_services.guard_usable = guard_usable;
    hak_guard_region.is_on = is_on;
    hak_store_relaxed(&hak_knobs.guard, is_on);
}

/* The intervals of parent and child diverge. A reporting thread is gone. */
void hak_guard_after_fork(bool is_clean) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (is_clean) {
        slots_recover();
    } else {
        hak_store_relaxed(&hak_guard_region.is_stopped, true);
    }
    hak_store_relaxed(&hak_guard_region.is_telling, 0);
    hak_store_relaxed(&hak_allowance_full_ns, UINT64_MAX);
    hak_guard_stack_after_fork();
    if (!hak_tcache_is_empty(tcache)) {
        tcache->guard_random = 0;
        tcache->guard_left = 0;
    }
}
