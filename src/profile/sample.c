/* SPDX-License-Identifier: MIT
 *
 * Which requests are sampled, and where their blocks lie. The order of steps: the stack is walked,
 * the block is taken, the record is made; each with no lock of the others. A free goes the opposite
 * way. So in between a block may lack its record (PROFILE-2), and nothing waits for anything else.
 */
#include "profile/sample.h"

#include "base/probe.h"
#include "front/fast.h"
#include "large/large.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/chance.h"
#include "slab/remote.h"
#include "stack/stack.h"

HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_owner_t hak_sample_owner; /* SLAB-10 */
/* A wait for the owner was in vain. */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) bool hak_sample_is_stuck; /* [atomic] */
HAK_LARGE_STATE(4) uint64_t hak_sample_naps;

/* With the 400th sample within 0.2 s the rate doubles, and again with each 100 more
 * (docs/experiments/0149-pace-by-samples.md). A sample's weight is by the rate that drew its
 * distance: sums stay unbiased. Who asks for less than PACE_LEAST gets it. */
enum { PACE_LEAST = 256 << 10, PACE_SAMPLES = 400, PACE_MORE = 100 };
static const uint64_t PACE_NS = 200 * 1000 * 1000;
HAK_LOCKED_STATE HAK_LARGE_STATE(4) size_t hak_sample_wanted; /* [lock PROFILE] rate asked for */
HAK_LARGE_STATE(4) static uint64_t pace_due_ns;               /* [atomic] */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_pace_left;   /* [lock PROFILE] samples */

/* --- the owner -------------------------------------------------------------------------------- */

void hak_sample_open(void) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    if (hak_sample_owner.first_entry == 0) {
        hak_owner_init(&hak_sample_owner, HAK_KIND_SAMPLED);
        hak_lock_add(&hak_sample_owner.lock);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
}

enum { SAMPLE_NAPS = 1000 };
static const uint64_t SAMPLE_NAP_NS = 50000;

/* Waits for the owner at most 50 ms: its holder may be preempted, end in a fatal error, sit in a
 * signal handler, or be missing in the child of a fork. After that nobody waits until the owner was
 * free once. */
static bool owner_lock_patiently(void) {
    for (unsigned naps = 0; !hak_owner_try_lock(&hak_sample_owner); naps++) {
        if (!hak_lock_holds_none() || hak_load_relaxed(&hak_sample_is_stuck)) {
            return false; /* a handler; the fallback tcache */
        }
        if (naps == SAMPLE_NAPS) {
            hak_store_relaxed(&hak_sample_is_stuck, true);
            return false;
        }
        hak_add_relaxed(&hak_sample_naps, HAK_FAULT);
        hak_os_sleep(SAMPLE_NAP_NS);
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_sample_is_stuck))) {
        hak_store_relaxed(&hak_sample_is_stuck, false);
    }
    return true;
}

void hak_sample_after_fork(void) {
    if (hak_load_relaxed(&hak_sample_owner.lock.has_refused_fork)) {
        hak_store_relaxed(&hak_sample_is_stuck, true);
    }
    hak_tcache_t *self = hak_tcache_self(hak_pagemap_base());
    hak_tcache_t *tcache = hak_tcache_is_empty(self) ? NULL : self;
    for (; tcache != NULL; tcache = hak_tcache_behind(tcache, self)) {
        tcache->profile_rate = 0; /* draws a distance of its own, not its parent's */
    }
    hak_store_relaxed(&hak_profile_rate, hak_sample_wanted);
}

/* The owner is held. */
static void block_mark(hak_slab_t *slab, void *block) {
    uint32_t index = hak_slab_index(slab, block);
    hak_require(index < slab->carved, HAK_FATAL_INTERIOR_FREE, block);
    hak_require(hak_slab_mark_one(slab, index), HAK_FATAL_DOUBLE_FREE, block);
    hak_link_set(block, NULL);
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_slab_count_free(&hak_sample_owner, slab, 1, block);
}

/* A freed block of the current slab, still as it was freed; NULL: it has none. The owner is held.
 */
static void *block_take_marked(unsigned sc) {
    hak_slab_t *slab = hak_sample_owner.current[sc];
    if (slab == NULL || slab->free_count == 0) {
        return NULL;
    }
    uint32_t word = 0;
    while (slab->bits[word] == 0) {
        word++;
    }
    void *block = slab->base + ((size_t)word * 64 + hak_ctz(slab->bits[word])) * slab->block_bytes;
    slab->bits[word] &= slab->bits[word] - 1;
    hak_single_writer_store(&slab->free_count, slab->free_count - 1);
    return block;
}

/* A block whose link is set, and whose second word says nothing. The owner is held. */
static void *block_refill(unsigned sc) {
    hak_blocks_t blocks = hak_slab_refill(&hak_sample_owner, sc, 1);
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    return blocks.head;
}

/* NULL: memory is out, or the owner stays locked, or is not seen to be made yet. */
static void *block_take(unsigned sc) {
    /* pairs OWNERS */
    if (hak_load_acquire(&hak_owner_sampled) == NULL || !owner_lock_patiently()) {
        return NULL;
    }
    void *block = block_take_marked(sc);
    block = block != NULL ? block : block_refill(sc);
    hak_owner_unlock(&hak_sample_owner);
    hak_wanted_serve();
    if (block == NULL) {
        return NULL;
    }
    (void)hak_link_get(block); /* fatal if it was written to */
    hak_link_set_mark(block, 0);
    hak_link_clear(block);
    return HAK_HARDEN ? hak_harden_hand_out(block, hak_sc_info[sc].bytes) : block;
}

void hak_sample_release(void) {
    if (hak_sample_owner.first_entry != 0 && hak_owner_try_lock(&hak_sample_owner)) {
        hak_slab_receive(&hak_sample_owner);
        hak_slab_release_current(&hak_sample_owner);
        hak_owner_unlock(&hak_sample_owner);
        hak_wanted_serve();
    }
}

/* --- which ------------------------------------------------------------------------------------ */

static int64_t sample_gap(size_t rate) {
    return hak_chance_gap(rate, hak_chance_random());
}

static void sample_draw(hak_tcache_t *tcache, size_t rate) {
    tcache->profile_left = sample_gap(rate);
    tcache->profile_turn++;
}

/* Whether a request of so many bytes is sampled. A distance that is of another rate begins anew:
 * what is left of one says nothing of its length. */
static bool sample_is_due(hak_tcache_t *tcache, size_t bytes, size_t rate) {
    if (rate == 0 || tcache == NULL) {
        return rate != 0 && sample_gap(rate) <= (int64_t)bytes;
    }
    if (tcache->profile_rate != rate) {
        tcache->profile_rate = rate;
        sample_draw(tcache, rate);
    }
    tcache->profile_left -= (int64_t)bytes;
    if (tcache->profile_left > 0) {
        return false;
    }
    sample_draw(tcache, rate);
    return true;
}

/* Goes back by each byte that the thread asks for, and elsewhere with its next sample. */
static uint32_t sample_clock(const hak_tcache_t *tcache) {
    return (uint32_t)tcache->profile_turn << 24 | ((uint32_t)tcache->profile_left & 0xffffff);
}

bool hak_sample_is_temporary(const hak_profile_sample_t *sample) {
    const hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return !hak_tcache_is_empty(tcache) && tcache->thread_id == sample->thread_id &&
           sample->clock - sample_clock(tcache) < HAK_PROFILE_TEMPORARY;
}

static uint32_t sample_thread_id(const hak_tcache_t *tcache) {
    bool has_own = tcache != NULL && tcache != &hak_tcache_fallback;
    return has_own ? tcache->thread_id : hak_os_thread_id();
}

static void sample_record(hak_profile_event_t *event, const hak_tcache_t *tcache) {
    hak_sample_pace(true);
    event->depth = hak_stack_walk(event->stack, HAK_PROFILE_FRAMES);
    event->thread_id = sample_thread_id(tcache);
    event->label = tcache != NULL ? tcache->profile_label : NULL;
    event->clock = tcache != NULL ? sample_clock(tcache) : 0;
}

/* Tells the listeners of a block that has a record. */
static void sample_tell(const void *block, size_t bytes, size_t rate) {
    if (hak_probe_is_armed() && rate != 0) {
        double weight = 1 / hak_chance_of((double)bytes / (double)rate);
        hak_probe_alloc(block, bytes, hak_chance_whole(weight * (double)bytes));
    }
}

static void sample_keep(const hak_profile_event_t *event, const void *block) {
    if (hak_profile_store_add(event)) {
        sample_tell(block, event->bytes, event->rate);
    }
}

/* An address in the slab where the block would lie had it not been sampled; a hint. */
static HAK_UNORDERED const void *sample_companion(const hak_tcache_t *tcache, unsigned sc) {
    const hak_slab_t *slab = tcache->home->current[sc];
    const void *head = tcache->bin[sc].head;
    return head != NULL ? head : slab != NULL ? slab->base : NULL;
}

static HAK_COLD void *sample_small(hak_tcache_t *tcache, unsigned sc,
                                   const hak_request_t *request) {
    hak_profile_event_t event;
    size_t rate = hak_load_relaxed(&hak_profile_rate);
    if (!sample_is_due(tcache, hak_sc_info[sc].bytes, rate)) {
        return NULL;
    }
    sample_record(&event, tcache);
    event.companion = sample_companion(tcache, sc);
    event.rate = rate;
    event.bytes = hak_sc_info[sc].bytes;
    event.requested_bytes = request->bytes;
    void *block = block_take(sc);
    if (block == NULL) {
        hak_profile_store_drop();
        return NULL;
    }
    event.block = hak_tag_strip(block);
    sample_keep(&event, block);
    return block;
}

static HAK_COLD void sample_large(hak_tcache_t *tcache, void *block, size_t size) {
    hak_profile_event_t event;
    size_t rate = hak_load_relaxed(&hak_profile_rate);
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    size_t bytes = hak_large_usable(block, entry);
    if (!sample_is_due(tcache, bytes, rate)) {
        return;
    }
    sample_record(&event, tcache);
    event.companion = (const void *)HAK_PROFILE_LARGE;
    event.rate = rate;
    event.bytes = bytes;
    event.requested_bytes = size;
    event.block = block;
    sample_keep(&event, block);
}

/* --- frees ------------------------------------------------------------------------------------ */

/* Tells the free before the block is free: another thread may get the address at once. */
static HAK_COLD uint64_t sample_take(const void *block) {
    uint64_t token = hak_profile_store_take(hak_tag_strip(block));
    if (token != 0) {
        hak_probe_free(block);
    }
    return token;
}

/* A large block that is kept is told as a new one, as its free was told already. */
static HAK_COLD void sample_end(const void *block, uint64_t token, bool is_kept) {
    if (is_kept) {
        hak_profile_store_keep(token);
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
        sample_tell(block, hak_large_usable(block, entry), hak_load_relaxed(&hak_profile_rate));
    } else {
        hak_profile_store_end(token);
    }
}

/* Without the owner the block waits in the slab's remote marks: a free waits for nothing. */
static HAK_COLD void sample_free(void *block, uint32_t entry) {
    hak_slow_require_used(block, entry, HAK_FATAL_DOUBLE_FREE);
    sample_end(block, sample_take(block), false);
    hak_slab_t *slab = hak_slab_of(block);
    if (hak_owner_try_lock(&hak_sample_owner)) {
        block_mark(slab, block);
        hak_owner_unlock(&hak_sample_owner);
        hak_wanted_serve();
    } else {
        hak_slab_check_freed(slab, block);
        hak_remote_send_block(slab, block, NULL);
    }
}

/* --- start ------------------------------------------------------------------------------------ */

HAK_AT_START void hak_sample_start(void) {
    hak_services.profile_sample = sample_small;
    hak_services.profile_free = sample_free;
    hak_services.profile_large = sample_large;
    hak_services.profile_take = sample_take;
    hak_services.profile_end = sample_end;
}

void hak_sample_set_rate(size_t rate) {
    hak_lock_acquire(HAK_LOCK_PROFILE); /* two at a time would leave a table of both */
    hak_sample_wanted = rate;
    hak_store_relaxed(&pace_due_ns, hak_os_now_ns() + PACE_NS);
    hak_pace_left = PACE_SAMPLES;
    hak_store_relaxed(&hak_profile_rate, rate);
    hak_sc_detour(rate != 0);
    hak_lock_release(HAK_LOCK_PROFILE);
}

void hak_sample_pace(bool is_sample) {
    uint64_t now = hak_os_now_ns();
    if (hak_load_relaxed(&hak_profile_rate) < PACE_LEAST || !hak_lock_holds_none() ||
        (!is_sample && now < hak_load_relaxed(&pace_due_ns))) {
        return;
    }
    hak_lock_acquire(HAK_LOCK_PROFILE);
    size_t rate = hak_load_relaxed(&hak_profile_rate), paced = rate;
    if (now >= hak_load_relaxed(&pace_due_ns)) {
        bool is_few = hak_pace_left > PACE_SAMPLES - PACE_MORE;
        paced = is_few && rate > hak_sample_wanted ? rate / 2 : rate;
        hak_store_relaxed(&pace_due_ns, now + PACE_NS);
        hak_pace_left = PACE_SAMPLES;
    }
    hak_pace_left -= is_sample;
    if (hak_pace_left == 0) {
        paced = 2 * rate;
        hak_pace_left = PACE_MORE;
    }
    hak_store_relaxed(&hak_profile_rate, paced);
    hak_lock_release(HAK_LOCK_PROFILE);
}
