/* SPDX-License-Identifier: MIT
 *
 * The quarantine of huge blocks: a ring of mappings without memory, the oldest of which leaves when
 * the ring or the bound of addresses is full. */
#include "large/huge_quarantine.h"
#include "large/guarded.h"
#include "large/vacant.h"

#include "base/knobs.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    HOLD_MOST = 64, /* mappings */
    HOLD_STEP_NS = 100000000,
    /* The budgets, in page faults of about 2 us (docs/experiments/0058): some 1 % of a CPU each. */
    HOLD_STEP_FAULTS = 512,
    HOLD_CALLS_FAULTS = 4, /* the kernel calls of a malloc and a free cost as much */
    HOLD_FAULT_BYTES = 4096,
    HOLD_SAMPLES = 8, /* OS pages */
};
/* Saved up, and at the start: for memory that is given back, 8 MiB; for guards. */
static const uint32_t hold_burst[] = {2048, 4096};
static const size_t HOLD_MOST_BYTES = (size_t)32 << 20; /* of addresses */

HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_hold_ring_t hak_huge_holds;
HAK_LOCKED_STATE struct huge_holds {
    bool is_on;       /* [atomic] */
    bool has_guards;  /* [atomic] addresses are not short, and the kernel refused none */
    uint32_t left[2]; /* [atomic] of the budgets */
    uint64_t step;    /* [atomic] the last one that was granted */
} hak_huge_hold_state;

void hak_large_quarantine_switch(bool is_on) {
    hak_store_relaxed(&hak_huge_hold_state.left[0], hold_burst[0]);
    hak_store_relaxed(&hak_huge_hold_state.left[1], hold_burst[1]);
    hak_store_relaxed(&hak_huge_hold_state.step, hak_os_now_ns() / HOLD_STEP_NS);
    hak_store_relaxed(&hak_huge_hold_state.has_guards, is_on && !hak_os_is_address_limited());
    hak_store_relaxed(&hak_huge_hold_state.is_on, is_on);
}

/* --- budget ----------------------------------------------------------------------------------- */

/* Each step is granted once: by the thread that advances the word. Takes of others may be lost. */
static void hold_grant(void) {
    uint64_t now = hak_os_now_ns() / HOLD_STEP_NS;
    uint64_t last = hak_load_relaxed(&hak_huge_hold_state.step);
    bool is_due = now > last && hak_cas_relaxed(&hak_huge_hold_state.step, &last, now);
    for (unsigned i = 0; is_due && i < 2; i++) {
        uint64_t granted = hak_least(now - last, hold_burst[i] / HOLD_STEP_FAULTS);
        uint64_t left = hak_load_relaxed(&hak_huge_hold_state.left[i]) + granted * HOLD_STEP_FAULTS;
        hak_store_relaxed(&hak_huge_hold_state.left[i], (uint32_t)hak_least(left, hold_burst[i]));
    }
}

/* Leaves `kept` of it. */
static bool hold_take(uint32_t *budget, size_t faults, size_t kept) {
    if (!hak_load_relaxed(&hak_huge_hold_state.is_on) || hak_huge_is_crowded()) {
        return false;
    }
    if (hak_load_relaxed(budget) < faults + kept) {
        hold_grant();
    }
    uint32_t left = hak_load_relaxed(budget);
    while (left >= faults + kept) {
        if (hak_cas_relaxed(budget, &left, left - (uint32_t)faults)) {
            return true;
        }
    }
    return false;
}

bool hak_huge_quarantine_pay(size_t faults, bool is_guard) {
    return hold_take(&hak_huge_hold_state.left[1], faults, is_guard ? 0 : hold_burst[1] / 2);
}

bool hak_huge_quarantine_has_guards(void) {
    return hak_load_relaxed(&hak_huge_hold_state.has_guards) &&
           !hak_load_relaxed(&hak_knobs.is_tight);
}

void hak_huge_quarantine_end_guards(void) {
    hak_store_relaxed(&hak_huge_hold_state.has_guards, false);
}

/* The page faults that the next user of such memory has, because it went: about as many as OS pages
 * were in use. */
static bool hold_pay(const char *base, size_t bytes) {
    if (!hold_take(&hak_huge_hold_state.left[0], HOLD_CALLS_FAULTS, 0)) {
        return false;
    }
    size_t own = bytes - HAK_HUGE_GUARD_BYTES;
    size_t written = hak_dense_written(base, own, HOLD_SAMPLES); /* SIZE_MAX: not known */
    size_t faults = hak_least(written, own) / HOLD_FAULT_BYTES;
    return hold_take(&hak_huge_hold_state.left[0], faults, 0);
}

/* --- rings ------------------------------------------------------------------------------------ */

static bool ring_pop(hak_hold_ring_t *ring, uint32_t most, size_t most_bytes, hak_hold_t *oldest) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_over = ring->count > most || (ring->count != 0 && ring->bytes > most_bytes);
    if (is_over) {
        *oldest = ring->slot[ring->first];
        ring->first = (ring->first + 1) % HAK_HOLD_SLOTS;
        ring->count--;
        ring->bytes -= oldest->bytes;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_over;
}

bool hak_hold_trim(hak_hold_ring_t *ring, uint32_t most, size_t most_bytes, hak_hold_end_t *end) {
    hak_hold_t oldest;
    unsigned ended = 0; /* a hook of munmap may free a block each time */
    for (; ended < HAK_HOLD_SLOTS && ring_pop(ring, most, most_bytes, &oldest); ended++) {
        end(&oldest);
    }
    return ended != 0;
}

bool hak_hold_push(hak_hold_ring_t *ring, hak_hold_t hold) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool has_room = ring->count < HAK_HOLD_SLOTS;
    if (has_room) {
        ring->slot[(ring->first + ring->count) % HAK_HOLD_SLOTS] = hold;
        ring->count++;
        ring->bytes += hold.bytes;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return has_room;
}

/* --- huge blocks ------------------------------------------------------------------------------ */

/* A mapping that the kernel does not unmap stays ours, for other blocks; at worst it leaks. */
static void hold_end(const hak_hold_t *hold) {
    if (!hak_os_unmap(hold->base, hold->bytes) && hak_os_commit(hold->base, hold->bytes)) {
        hak_vacant_give(hold->base, hold->bytes, hold->shift);
    }
}

/* Inaccessible first: no thread may see the memory go. */
static bool hold_withdraw(char *base, size_t bytes) {
    if (!hak_os_conceal(base, bytes)) {
        return !hak_os_commit(base, bytes); /* of several mappings it may have concealed some */
    }
    return hak_os_purge(base, bytes) || !hak_os_commit(base, bytes); /* refused: locked memory */
}

bool hak_huge_quarantine_put(char *base, size_t bytes, ptrdiff_t shift) {
    if (!hak_load_relaxed(&hak_huge_hold_state.is_on) || bytes > HOLD_MOST_BYTES ||
        hak_huge_is_crowded() || !hold_pay(base, bytes) || !hold_withdraw(base, bytes)) {
        return false;
    }
    hak_hold_t hold = {base, bytes, shift};
    hak_hold_trim(&hak_huge_holds, HOLD_MOST - 1, HOLD_MOST_BYTES - bytes, hold_end);
    if (!hak_hold_push(&hak_huge_holds, hold)) {
        hold_end(&hold);
    }
    return true;
}

bool hak_huge_quarantine_flush(void) {
    bool is_any = hak_guarded_flush();
    return hak_hold_trim(&hak_huge_holds, 0, 0, hold_end) || is_any;
}

size_t hak_huge_quarantine_bytes(void) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    size_t bytes = hak_huge_holds.bytes;
    hak_lock_release(HAK_LOCK_HUGE);
    return bytes;
}

bool hak_huge_quarantine_covers(const void *address) {
    const hak_hold_ring_t *ring = &hak_huge_holds;
    bool is_covered = false;
    hak_lock_acquire(HAK_LOCK_HUGE);
    for (uint32_t i = 0; i < ring->count; i++) {
        const hak_hold_t *hold = &ring->slot[(ring->first + i) % HAK_HOLD_SLOTS];
        is_covered |= (uintptr_t)address - (uintptr_t)hold->base < hold->bytes;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_covered;
}
