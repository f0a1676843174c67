/* SPDX-License-Identifier: MIT
 *
 * Holes: OS pages of a partly used slab that no block in use touches. They are given back by
 * malloc_trim, after a while if the slab is idle, and before the heap has a new peak.
 * A page that the program locked cannot go: its slab is remembered, and the others go.
 * What is marked as free holds nothing, unlike the blocks of lists, which are linked through their
 * first words; so the own list is marked first. Purged blocks are linked when handed out. */
#include "base/knobs.h"
#include "os/os.h"
#include "slab/owner.h"
#include "slab/slab_inl.h"

static void slab_mark_list(hak_slab_t *slab) {
    for (void *block = slab->free; slab->listed != 0; slab->listed--) {
        uint32_t index = hak_slab_index(slab, block);
        bool is_far = (size_t)((char *)block - slab->base) >> 32 != 0;
        if (HAK_UNLIKELY(is_far || index >= slab->carved)) {
            hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL);
        }
        void *next = hak_link_get(block);
        if (HAK_UNLIKELY(!hak_slab_mark_one(slab, index))) {
            hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
        }
        hak_link_set_mark(block, HAK_LINK_MARK);
        block = next;
    }
    slab->free = NULL;
}

/* The first block from `from` on that is marked, or with flip ~0 that is not; `carved`: none. */
static uint32_t slab_next(const hak_slab_t *slab, const uint64_t *marks, uint32_t from,
                          uint64_t flip) {
    while (from < slab->carved) {
        uint64_t bits = (marks[from / 64] ^ flip) >> from % 64;
        if (bits != 0) {
            from += hak_ctz(bits);
            return from < slab->carved ? from : slab->carved;
        }
        from = (from / 64 + 1) * 64;
    }
    return slab->carved;
}

typedef struct hole {
    size_t from, to; /* whole OS pages; from >= to: there is none */
    uint32_t end;    /* first block behind it */
} hole_t;

/* What the next row of marked blocks from `block` on leaves free. */
static hole_t slab_next_hole(const hak_slab_t *slab, const uint64_t *marks, uint32_t block) {
    block = slab_next(slab, marks, block, 0);
    hole_t hole = {.end = slab_next(slab, marks, block, ~0ull)};
    /* what was never handed out may hold memory of the span's user before, or of a huge page */
    size_t to = hole.end < slab->carved ? (size_t)hole.end * slab->block_bytes
                                        : (size_t)slab->units * HAK_UNIT_BYTES;
    hole.from = hak_align_up((size_t)block * slab->block_bytes, hak_os_page_bytes());
    hole.to = hak_align_down(to, hak_os_page_bytes());
    return hole;
}

/* What purging holes came to. */
typedef struct purge_sum {
    size_t bytes;
    uint32_t calls;
    uint32_t refused; /* of these */
} purge_sum_t;

enum { HOLES_REFUSED_MOST = 4 }; /* of a slab; all of its pages are locked, rather than one */

/* If it is `least` bytes or more. */
static void hole_purge(hak_slab_t *slab, const hole_t *hole, size_t least, purge_sum_t *sum) {
    size_t from = hole->from, to = hole->to;
    if (from + least > to) {
        return;
    }
    uint64_t units = hak_mask((unsigned)((to - 1) / HAK_UNIT_BYTES) + 1) &
                     ~hak_mask((unsigned)(from / HAK_UNIT_BYTES));
    sum->calls++;
    if (!slab->has_purged_pages) {
        slab->has_purged_pages = true;
        hak_slab_set_entry(slab);
    }
    if (!hak_os_purge(slab->base + from, to - from)) {
        sum->refused++;
        return;
    }
    hak_span_note_holes(hak_pagemap_superslab(slab->base), units << slab->unit);
    sum->bytes += to - from;
}

/* Holes of at least so many bytes. */
static purge_sum_t slab_purge_holes(hak_slab_t *slab, size_t least) {
    purge_sum_t sum = {0};
    slab_mark_list(slab);
    for (hole_t hole = {0}; hole.end < slab->carved && sum.refused < HOLES_REFUSED_MOST;) {
        hole = slab_next_hole(slab, slab->bits, hole.end);
        hole_purge(slab, &hole, least, &sum);
    }
    if (sum.calls != 0) {
        hak_count_by(purge_calls, sum.calls);
        hak_count_by(purge_hole_bytes, sum.bytes);
    }
    slab->looked = (uint16_t)(slab->free_count + 1);
    slab->is_refused = sum.refused != 0;
    slab->is_purged = !slab->is_refused;
    slab->is_spared = false;
    if (sum.bytes > slab->hole_bytes) {
        hak_add_relaxed(&hak_span_hole_bytes, sum.bytes - slab->hole_bytes);
        slab->hole_bytes = (uint32_t)sum.bytes;
    }
    return sum;
}

/* No block came or went since the last look. */
static bool slab_is_idle(const hak_slab_t *slab) {
    return slab->looked == slab->free_count + 1;
}

/* Each slab looked at goes to the end of the list, so that the first is always the next one. */
static hak_slab_t *slab_in_turn(hak_owner_t *owner, unsigned sc) {
    hak_slab_t *slab = HAK_CONTAINER_OF(owner->partial[sc].next, hak_slab_t, link);
    hak_list_remove(&slab->link);
    hak_list_push_back(&owner->partial[sc], &slab->link);
    return slab;
}

size_t hak_slab_purge_holes(hak_owner_t *owner, unsigned sc, uint32_t slabs) {
    size_t given_back = 0;
    for (; slabs > 0 && !hak_list_is_empty(&owner->partial[sc]); slabs--) {
        hak_slab_t *slab = slab_in_turn(owner, sc);
        bool is_idle = slab_is_idle(slab), is_again = is_idle && slab->is_refused;
        uint32_t before = slab->hole_bytes;
        if (!slab->is_purged || !is_idle) {
            size_t bytes = slab_purge_holes(slab, 1).bytes;
            given_back += is_again ? slab->hole_bytes - before : bytes; /* the rest had gone */
        }
    }
    return given_back;
}

enum {
    HOLES_SLABS = 8,      /* at a time: a fork waits for it */
    HOLES_LEAST_PART = 2, /* of a slab free: less is not worth the calls, and huge pages */
    HOLES_CALL_WORK = 32, /* work is counted in looks at a slab, or at a block of a list */
    HOLES_MOST_WORK = 256 * HOLES_CALL_WORK, /* of one time: a millisecond or two */
};

static void owner_purge_holes(hak_owner_t *owner, void *context) {
    size_t *given_back = context;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        int64_t left = hak_single_writer_load(&owner->partial_count[sc]);
        for (; left > 0 && hak_owner_try_lock(owner); left -= HOLES_SLABS) {
            *given_back += hak_slab_purge_holes(owner, sc, HOLES_SLABS);
            hak_owner_unlock(owner);
        }
    }
}

size_t hak_owner_purge_holes(void) {
    size_t given_back = 0;
    hak_owner_visit(owner_purge_holes, &given_back);
    return given_back;
}

/* --- what would go back, for statistics ---------------------------------------------------------
 *
 * Nothing is changed: the own list is marked in a copy. */

enum {
    LOOK_WORDS = HAK_UNIT_BYTES / HAK_BLOCK_ALIGN / 64, /* of the bitmap with most blocks */
    LOOK_HOLES = 8 * HOLES_SLABS,                       /* every other OS page of a unit */
};

typedef struct look {
    hak_hole_t hole[LOOK_HOLES];
    unsigned count;
} look_t;

/* A list with a bad link is left to the call that uses it. */
static void slab_copy_marks(const hak_slab_t *slab, uint64_t *marks) {
    const void *block = slab->free;
    for (uint32_t i = 0; i < (slab->carved + 63) / 64; i++) {
        marks[i] = slab->bits[i];
    }
    for (uint32_t left = slab->listed; left > 0; left--) {
        uint32_t index = hak_slab_index(slab, block);
        bool is_far = (size_t)((const char *)block - slab->base) >> 32 != 0;
        if (is_far || index >= slab->carved || !hak_link_is_tagged(hak_link_word(block))) {
            return;
        }
        marks[index / 64] |= 1ull << index % 64;
        block = hak_link_next(hak_link_word(block));
    }
}

static void slab_look(const hak_slab_t *slab, look_t *look) {
    uint64_t marks[LOOK_WORDS] = {0};
    size_t made = (size_t)slab->carved * slab->block_bytes;
    made = hak_least(hak_align_up(made, hak_os_page_bytes()), slab->units * HAK_UNIT_BYTES);
    slab_copy_marks(slab, marks);
    for (hole_t hole = {0}; hole.end < slab->carved;) {
        hole = slab_next_hole(slab, marks, hole.end);
        if (hole.from < hole.to && look->count < LOOK_HOLES) {
            size_t split = hole.to < made ? hole.to : made;
            look->hole[look->count++] = (hak_hole_t){
                .base = slab->base + hole.from,
                .free_bytes = split - hole.from,
                .uncarved_bytes = hole.to - split,
            };
        }
    }
}

typedef struct look_order {
    hak_hole_visit_t *visit;
    void *context;
    bool is_whole;
} look_order_t;

static void owner_visit_holes(hak_owner_t *owner, void *context) {
    look_order_t *order = context;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        int64_t left = hak_single_writer_load(&owner->partial_count[sc]);
        for (; left > 0; left -= HOLES_SLABS) {
            look_t look = {.count = 0};
            if (!hak_owner_try_lock(owner)) {
                order->is_whole = false;
                return;
            }
            for (int64_t i = 0; i < HOLES_SLABS && i < left && owner->partial_count[sc] != 0; i++) {
                slab_look(slab_in_turn(owner, sc), &look);
            }
            hak_lock_unlock(&owner->lock); /* nothing became unused */
            for (unsigned i = 0; i < look.count; i++) {
                order->visit(&look.hole[i], order->context);
            }
        }
    }
}

bool hak_owner_visit_holes(hak_hole_visit_t *visit, void *context) {
    look_order_t order = {.visit = visit, .context = context, .is_whole = true};
    hak_owner_visit(owner_visit_holes, &order);
    return order.is_whole;
}

/* --- before the heap grows beyond its peak (span/purge.c) ---------------------------------------
 *
 * An OS page that goes and comes back costs a thousand cycles and more, so only holes go that are
 * worth their call, and what may go is a share of all spans, of which half is due again after each
 * window: loads that need them back lose one to three percent
 * (docs/experiments/0030-spare-before-a-peak.md). */

enum {
    SPARE_HOLE_PAGES = 4,
    SPARE_SPANS_PART = 16, /* of all spans */
    SPARE_LOOK_WORK = 8,   /* a bitmap is looked through */
    SPARE_REFUSED_MOST = 8,
};

HAK_LOCKED_STATE size_t hak_holes_spared; /* [atomic] bytes that went lately */

void hak_owner_forget_spared(void) {
    hak_store_relaxed(&hak_holes_spared, hak_load_relaxed(&hak_holes_spared) / 2);
}

static size_t spare_most(void) {
    hak_span_stats_t spans;
    hak_span_stats(&spans);
    size_t most = spans.in_use_bytes / SPARE_SPANS_PART;
    return most - hak_least(most, hak_load_relaxed(&hak_holes_spared));
}

typedef struct spare {
    size_t wanted, given_back; /* bytes */
    int32_t work;              /* left */
    uint32_t refused;          /* calls */
} spare_t;

/* As long as nothing went: what tells locked memory from a locked page. */
static bool spare_is_refused(const spare_t *spare) {
    return spare->refused >= SPARE_REFUSED_MOST && spare->given_back == 0;
}

static void slab_spare_holes(hak_owner_t *owner, hak_slab_t *slab, spare_t *spare) {
    size_t free_bytes = (size_t)slab->free_count * slab->block_bytes;
    bool is_done = slab_is_idle(slab) && (slab->is_purged || slab->is_spared);
    spare->work--;
    if (is_done || free_bytes < (size_t)slab->units * HAK_UNIT_BYTES / HOLES_LEAST_PART) {
        return;
    }
    uint32_t before = slab->hole_bytes, listed = slab->listed;
    purge_sum_t sum = slab_purge_holes(slab, SPARE_HOLE_PAGES * hak_os_page_bytes());
    slab->is_purged = false; /* the small ones are still there */
    slab->is_spared = true;
    owner->holes.purged += slab->hole_bytes != before;
    spare->given_back += slab->hole_bytes - before;
    spare->refused += sum.refused;
    spare->work -= (int32_t)(SPARE_LOOK_WORK + listed + sum.calls * HOLES_CALL_WORK);
}

static bool spare_goes_on(const spare_t *spare) {
    return spare->work > 0 && spare->given_back < spare->wanted && !spare_is_refused(spare);
}

/* Goes on with the next slabs of a class; false: that was enough. */
static bool owner_spare_class(hak_owner_t *owner, unsigned sc, spare_t *spare) {
    int64_t left = hak_single_writer_load(&owner->partial_count[sc]);
    while (left > 0 && spare_goes_on(spare) && hak_owner_try_lock(owner)) {
        int64_t end = left - HOLES_SLABS;
        for (; left > end && spare_goes_on(spare) && !hak_list_is_empty(&owner->partial[sc]);
             left--) {
            slab_spare_holes(owner, slab_in_turn(owner, sc), spare);
        }
        hak_single_writer_store(&owner->holes.spare_class, (uint8_t)sc);
        left = end;
        hak_owner_unlock(owner);
    }
    return spare_goes_on(spare);
}

/* From the class at which it ended last; large classes first: their holes are large. */
static void owner_spare_holes(hak_owner_t *owner, void *context) {
    unsigned first = hak_single_writer_load(&owner->holes.spare_class);
    for (unsigned i = 0; i < HAK_SC_COUNT; i++) {
        if (!owner_spare_class(owner, (first + HAK_SC_COUNT - i) % HAK_SC_COUNT, context)) {
            return;
        }
    }
}

size_t hak_owner_spare_holes(size_t bytes) {
    size_t most = spare_most();
    spare_t spare = {.wanted = bytes < most ? bytes : most, .work = HOLES_MOST_WORK};
    hak_owner_visit(owner_spare_holes, &spare);
    /* the kernel takes nothing back (locked memory): nothing for some dozens of windows */
    hak_add_relaxed(&hak_holes_spared, spare_is_refused(&spare) ? SIZE_MAX / 4 : spare.given_back);
    return spare.given_back;
}

/* --- by time ------------------------------------------------------------------------------------
 *
 * Rounds over the partial slabs of an owner, a pause between two. A slab that is as the round
 * before left it is idle: its holes go, if those of the whole owner are worth it. When many of the
 * slabs that were purged are needed again, the pause becomes longer. Measured in
 * docs/experiments/0027-holes-go-back.md. */

HAK_LOCKED_STATE hak_owner_t *hak_owner_holes_cursor; /* [atomic] visited last */

enum {
    DECAY_SECTION_WORK = 8 * HOLES_CALL_WORK,
    DECAY_STEP_OWNERS = 4,
    DECAY_REGRET_PART = 4,  /* of the purged slabs, needed again: too many */
    DECAY_BACKOFF_MOST = 6, /* doublings of the pause */
};

static uint32_t slab_decay(hak_holes_round_t *round, hak_slab_t *slab) {
    size_t free_bytes = (size_t)slab->free_count * slab->block_bytes;
    bool is_idle = slab_is_idle(slab);
    slab->is_refused = slab->is_refused && round->number != 0; /* asked again after minutes */
    bool is_done = slab->is_purged || slab->is_refused || slab->round == round->number;
    if (free_bytes < (size_t)slab->units * HAK_UNIT_BYTES / HOLES_LEAST_PART ||
        (is_idle && is_done)) {
        return 1; /* the last: others left the list, and it comes by again */
    }
    round->free_bytes += free_bytes;
    slab->round = round->number;
    if (!is_idle) {
        slab->looked = (uint16_t)(slab->free_count + 1);
        slab->is_purged = false;
        slab->is_spared = false;
        slab->is_refused = false;
    } else if (round->free_bytes_before > hak_load_relaxed(&hak_knobs.retain_idle_bytes) ||
               hak_load_relaxed(&hak_knobs.is_tight)) {
        uint32_t listed = slab->listed;
        purge_sum_t sum = slab_purge_holes(slab, 1);
        round->purged += sum.bytes != 0;
        round->regretted += sum.refused != 0; /* a call for nothing, too */
        return 1 + listed + sum.calls * HOLES_CALL_WORK;
    }
    return 1;
}

static void round_end(hak_holes_round_t *round, uint64_t now) {
    bool is_regretted = round->regretted > HOLES_SLABS + round->purged / DECAY_REGRET_PART;
    round->backoff = (uint8_t)hak_backoff(round->backoff, is_regretted, DECAY_BACKOFF_MOST);
    round->number++;
    round->purged /= 2; /* those of earlier rounds count, but less and less */
    round->regretted = 0;
    round->class_end = 0;
    round->free_bytes_before = round->free_bytes;
    round->free_bytes = 0;
    hak_store_relaxed(&round->due_ns, now + (HAK_WINDOW_NS << round->backoff));
}

/* To the next class with partial slabs; false: the round is over. */
static bool round_next_class(hak_owner_t *owner) {
    hak_holes_round_t *round = &owner->holes;
    while (round->left == 0 && round->class_end < HAK_SC_COUNT) {
        round->left = owner->partial_count[round->class_end++];
    }
    return round->left != 0;
}

uint32_t hak_slab_decay_holes(hak_owner_t *owner, uint64_t now, uint32_t work) {
    hak_holes_round_t *round = &owner->holes;
    uint32_t done = 0;
    while (done < work && now >= round->due_ns) {
        if (!round_next_class(owner)) {
            round_end(round, now);
        } else if (hak_list_is_empty(&owner->partial[round->class_end - 1])) {
            round->left = 0;
        } else {
            round->left--;
            done += slab_decay(round, slab_in_turn(owner, round->class_end - 1));
        }
    }
    return done;
}

/* Each step goes on with another owner. */
void hak_owner_decay_holes(void) {
    uint64_t now = hak_os_now_ns();
    uint32_t work = 0;
    for (unsigned i = 0; i < DECAY_STEP_OWNERS && work < HOLES_MOST_WORK; i++) {
        hak_owner_t *owner = hak_owner_next(&hak_owner_holes_cursor);
        while (work < HOLES_MOST_WORK && now >= hak_load_relaxed(&owner->holes.due_ns) &&
               hak_lock_try(&owner->lock)) {
            work += hak_slab_decay_holes(owner, now, DECAY_SECTION_WORK);
            hak_owner_unlock(owner);
        }
    }
}
