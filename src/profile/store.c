/* SPDX-License-Identifier: MIT
 *
 * Every change is one short locked section, without a system call, except that the mapping is made
 * in one.
 *
 * The peak of each site: a peak has a number, and a site notes its sums before its first change
 * after a peak. So a new peak costs nothing, though the sums of all sites are those of its
 * moment. */
#include "profile/store.h"

#include "base/atomics.h"
#include "base/bits.h"
#include "base/counters.h"
#include "front/hooks.h"
#include "os/lock.h"
#include "os/optional.h"
#include "os/os.h"
#include "profile/chance.h"
#include "profile/sample.h"
#include "span/span.h"

#include <string.h>

HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_profile_store_t hak_profile_store;

enum {
    STORE_SAMPLE_SHARE = 512, /* bytes of the store for one bucket of samples: 8 samples */
    STORE_SITE_SHARE = 2048,
};

/* --- places ----------------------------------------------------------------------------------- */

static uint32_t *sample_bucket(const void *block) {
    hak_profile_store_t *store = &hak_profile_store;
    uint64_t hash = ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15ull;
    return (uint32_t *)store->base + ((uint32_t)(hash >> 32) & store->sample_mask);
}

static uint32_t *site_bucket(uint64_t hash) {
    hak_profile_store_t *store = &hak_profile_store;
    return (uint32_t *)store->base + store->sample_mask + 1 +
           ((uint32_t)(hash >> 32) & store->site_mask);
}

uint32_t hak_profile_store_first(const hak_profile_store_t *store) {
    size_t buckets = (size_t)store->sample_mask + store->site_mask + 2;
    return (uint32_t)hak_align_up(buckets * sizeof(uint32_t), HAK_LINE_BYTES);
}

/* Two buckets an octave: from 2^n and from 1.5 x 2^n on. */
static unsigned lifetime_bucket(uint64_t ns) {
    if (ns >> HAK_PROFILE_LIFETIME_LOG2 == 0) {
        return 0;
    }
    unsigned log2 = hak_log2(ns);
    unsigned bucket = 2 * (log2 - HAK_PROFILE_LIFETIME_LOG2) + (unsigned)(ns >> (log2 - 1) & 1);
    return bucket < HAK_PROFILE_LIFETIMES ? bucket : HAK_PROFILE_LIFETIMES - 1;
}

/* --- begin, end ------------------------------------------------------------------------------- */

/* false: a signal handler interrupted this thread's own section, or it is another process's, of
 * which this is a child that the C library did not fork. */
static bool store_enter(void) {
    const hak_profile_store_t *store = &hak_profile_store;
    if (HAK_UNLIKELY(hak_lock_holds(HAK_LOCK_PROFILE))) {
        return false;
    }
    hak_lock_acquire(HAK_LOCK_PROFILE);
    bool is_own = store->head == NULL || store->process_id == hak_os_process_id();
    if (!is_own) {
        hak_lock_release(HAK_LOCK_PROFILE);
    }
    return is_own;
}

/* Of the lock, after a change. */
static void store_leave(void) {
    hak_profile_store_t *store = &hak_profile_store;
    if (HAK_UNLIKELY(store->head != NULL)) {
        *(hak_profile_store_t *)store->head = *store;
    }
    hak_lock_release(HAK_LOCK_PROFILE);
}

/* The memory is zero. */
static void store_begin(void) {
    hak_profile_store_t *store = &hak_profile_store;
    store->site_mask = (1u << hak_log2(store->bytes / STORE_SITE_SHARE)) - 1;
    store->sample_mask = (1u << hak_log2(store->bytes / STORE_SAMPLE_SHARE)) - 1;
    store->low = hak_profile_store_first(store);
    store->high = (uint32_t)store->bytes;
    store->spare = 0;
    store->generation++;
    store->taken = store->dropped = store->sites = store->sites_dropped = store->live = 0;
    store->live_bytes = store->variance = store->peak_bytes = 0;
    store->peak_number = store->peak_time_ns = 0;
    store->started_ns = hak_os_wall_ns();
    hak_profile_forget_large();
}

HAK_LOCKED_STATE hak_region_t hak_profile_region; /* [lock PROFILE] for statistics */

static void store_show(void) {
    if (hak_profile_region.base != NULL) {
        hak_profile_region.base = hak_profile_store.base;
    } else {
        hak_profile_region = (hak_region_t){.base = hak_profile_store.base,
                                            .bytes = hak_profile_store.bytes,
                                            .kind = HAK_REGION_META};
        hak_region_add(&hak_profile_region);
    }
}

bool hak_profile_store_open(size_t bytes, size_t rate, bool is_whole) {
    hak_profile_store_t *store = &hak_profile_store;
    if (!store_enter()) {
        return false;
    }
    if (store->base == NULL) {
        store->bytes = hak_align_up(bytes, HAK_UNIT_BYTES);
        store->base = hak_os_map(store->bytes, hak_os_page_bytes());
        store->is_whole = is_whole;
        if (store->base != NULL) {
            store_begin();
            store_show();
        }
    }
    bool is_there = store->base != NULL;
    store->rate = is_there ? rate : 0;
    store_leave();
    return is_there;
}

void hak_profile_store_pause(void) {
    if (store_enter()) {
        hak_profile_store.is_whole = false;
        store_leave();
    }
}

/* Where the kernel refuses: what reads as zero is not written, and gets no memory. */
static void store_clear(const hak_profile_store_t *store) {
    uint64_t *word = (uint64_t *)store->base, *end = (uint64_t *)(store->base + store->bytes);
    for (; word < end; word++) {
        if (*word != 0) {
            *word = 0;
        }
    }
}

void hak_profile_store_reset(void) {
    hak_profile_store_t *store = &hak_profile_store;
    if (!store_enter()) {
        return;
    }
    if (store->base != NULL) {
        if (store->head != NULL || !hak_os_purge(store->base, store->bytes)) { /* in a file */
            store_clear(store);
        }
        store->is_whole = false;
        store_begin();
    }
    store_leave();
}

HAK_LOCKED_STATE char *hak_profile_reserve; /* [lock of the observer] */

/* Links are offsets, so the store may lie anywhere. */
size_t hak_profile_store_move(char *to, void *head) {
    hak_profile_store_t *store = &hak_profile_store;
    if (!store_enter()) {
        return 0;
    }
    char *old = store->base;
    size_t bytes = old != NULL ? store->bytes : 0;
    bool is_moved = to != NULL && bytes != 0;
    if (is_moved) {
        memcpy(to, old, store->low);
        memcpy(to + store->high, old + store->high, bytes - store->high);
        store->base = hak_profile_region.base = to;
        store->process_id = hak_os_process_id();
        store->head = head;
    }
    store_leave();
    if (is_moved && hak_profile_reserve == NULL && hak_os_purge(old, bytes)) {
        hak_profile_reserve = old;
    } else if (is_moved) {
        hak_os_unmap(old, bytes);
    }
    return bytes;
}

void hak_profile_store_abandon(void) {
    hak_profile_store = (hak_profile_store_t){.generation = hak_profile_store.generation + 1};
    hak_profile_forget_large();
}

/* --- sites ------------------------------------------------------------------------------------ */

static uint64_t event_hash(const hak_profile_event_t *event) {
    uint64_t hash = (uintptr_t)event->label * 0x9e3779b97f4a7c15ull;
    for (unsigned i = 0; i < event->depth; i++) {
        hash = (hash ^ event->stack[i]) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    return hash;
}

static bool site_is(const hak_profile_site_t *site, const hak_profile_event_t *event,
                    uint64_t hash) {
    return site->hash == hash && site->label == event->label && site->depth == event->depth &&
           memcmp(site->stack, event->stack, event->depth * sizeof event->stack[0]) == 0;
}

/* Its offset; 0: there is no room. */
static uint32_t site_find(const hak_profile_event_t *event) {
    hak_profile_store_t *store = &hak_profile_store;
    uint64_t hash = event_hash(event);
    uint32_t *bucket = site_bucket(hash), offset = *bucket;
    while (offset != 0 && !site_is(hak_profile_site_at(store->base, offset), event, hash)) {
        offset = hak_profile_site_at(store->base, offset)->next;
    }
    uint32_t bytes = hak_profile_site_bytes(event->depth);
    if (offset != 0 || store->high - store->low < bytes) {
        return offset;
    }
    offset = store->low;
    store->low += bytes;
    store->sites++;
    hak_profile_site_t *site = hak_profile_site_at(store->base, offset);
    site->hash = hash;
    site->label = event->label;
    site->depth = event->depth;
    site->peak_number = store->peak_number;
    memcpy(site->stack, event->stack, event->depth * sizeof event->stack[0]);
    site->next = *bucket;
    *bucket = offset;
    return offset;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* The site is about to change. */
static void site_note_peak(hak_profile_site_t *site) {
    if (site->peak_number != hak_profile_store.peak_number) {
        site->peak_number = hak_profile_store.peak_number;
        site->peak = site->in_use;
    }
}

static void sum_add(hak_profile_sum_t *sum, const hak_profile_sample_t *sample) {
    sum->samples++;
    sum->raw_bytes += sample->bytes;
    sum->objects += sample->weight;
    sum->bytes += sample->weight * (double)sample->bytes;
}

/* Differences of floating-point numbers: what should be 0 becomes 0. */
static void sum_remove(hak_profile_sum_t *sum, const hak_profile_sample_t *sample) {
    sum->samples--;
    sum->raw_bytes -= sample->bytes;
    sum->objects = sum->samples != 0 ? sum->objects - sample->weight : 0;
    sum->bytes = sum->samples != 0 ? sum->bytes - sample->weight * (double)sample->bytes : 0;
}

/* The variance of a block's share of the estimate, by its own sample: (1 - p) / p^2 S^2. */
static double sample_variance(const hak_profile_sample_t *sample) {
    double bytes = (double)sample->bytes;
    return sample->weight * (sample->weight - 1) * bytes * bytes;
}

static void store_count_in(hak_profile_site_t *site, const hak_profile_sample_t *sample) {
    hak_profile_store_t *store = &hak_profile_store;
    site_note_peak(site);
    sum_add(&site->in_use, sample);
    sum_add(&site->all, sample);
    site->requested_bytes += sample->weight * (double)sample->requested_bytes;
    site->variance += sample_variance(sample);
    store->live++;
    store->taken++;
    store->variance += sample_variance(sample);
    store->live_bytes += sample->weight * (double)sample->bytes;
    if (store->live_bytes > store->peak_bytes) {
        store->peak_bytes = store->live_bytes;
        store->peak_number++;
        store->peak_time_ns = sample->time_ns;
    }
}

static void store_count_out(hak_profile_site_t *site, const hak_profile_sample_t *sample) {
    hak_profile_store_t *store = &hak_profile_store;
    uint64_t now = hak_os_exact_ns();
    site_note_peak(site);
    sum_remove(&site->in_use, sample);
    bool is_left = site->in_use.samples != 0;
    double requested = sample->weight * (double)sample->requested_bytes;
    site->requested_bytes = is_left ? site->requested_bytes - requested : 0;
    site->variance = is_left ? site->variance - sample_variance(sample) : 0;
    site->lifetime[lifetime_bucket(hak_excess(now, sample->time_ns))]++;
    site->temporary += hak_sample_is_temporary(sample);
    store->live--;
    store->variance = store->live != 0 ? store->variance - sample_variance(sample) : 0;
    store->live_bytes -= sample->weight * (double)sample->bytes;
    store->live_bytes = store->live != 0 ? store->live_bytes : 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* 0: there is no room. */
static uint32_t sample_make(void) {
    hak_profile_store_t *store = &hak_profile_store;
    uint32_t offset = store->spare, bytes = (uint32_t)sizeof(hak_profile_sample_t);
    if (offset != 0) {
        store->spare = hak_profile_sample_at(store->base, offset)->next;
    } else if (store->high - store->low >= bytes) {
        store->high -= bytes;
        offset = store->high;
    }
    return offset;
}

static void sample_link(uint32_t offset) {
    hak_profile_sample_t *sample = hak_profile_sample_at(hak_profile_store.base, offset);
    uint32_t *bucket = sample_bucket((const void *)sample->address);
    sample->next = *bucket;
    *bucket = offset;
    hak_add_relaxed(hak_profile_cell((const void *)sample->address),
                    sample->companion == HAK_PROFILE_LARGE);
}

/* Takes the record of a block out of its bucket; 0: it has none. */
static uint32_t sample_unlink(const void *block) {
    char *base = hak_profile_store.base;
    uint32_t *link = sample_bucket(block);
    while (*link != 0 && hak_profile_sample_at(base, *link)->address != (uintptr_t)block) {
        link = &hak_profile_sample_at(base, *link)->next;
    }
    uint32_t offset = *link;
    if (offset != 0) {
        const hak_profile_sample_t *sample = hak_profile_sample_at(base, offset);
        *link = sample->next;
        hak_sub_relaxed(hak_profile_cell(block), sample->companion == HAK_PROFILE_LARGE);
    }
    return offset;
}

static void sample_discard(uint32_t offset) {
    hak_profile_sample_t *sample = hak_profile_sample_at(hak_profile_store.base, offset);
    sample->thread_id = 0;
    sample->next = hak_profile_store.spare;
    hak_profile_store.spare = offset;
}

static void store_note_drop(bool is_site) {
    hak_profile_store.dropped++;
    hak_profile_store.sites_dropped += is_site;
}

/* A sample first: without room for it a new site would be empty. */
static bool store_add(const hak_profile_event_t *event) {
    hak_profile_store_t *store = &hak_profile_store;
    uint32_t offset = store->base != NULL ? sample_make() : 0;
    uint32_t site = offset != 0 ? site_find(event) : 0;
    if (site == 0) {
        store_note_drop(offset != 0);
        if (offset != 0) {
            sample_discard(offset);
        }
        return false;
    }
    hak_profile_sample_t *sample = hak_profile_sample_at(store->base, offset);
    *sample = (hak_profile_sample_t){
        .address = (uintptr_t)event->block,
        .companion = (uintptr_t)event->companion,
        .bytes = event->bytes,
        .requested_bytes = event->requested_bytes,
        .time_ns = hak_os_exact_ns(),
        .weight = 1 / hak_chance_of((double)event->bytes / (double)event->rate),
        .site = site,
        .thread_id = event->thread_id,
        .clock = event->clock,
    };
    sample_link(offset);
    store_count_in(hak_profile_site_at(store->base, site), sample);
    return true;
}

bool hak_profile_store_add(const hak_profile_event_t *event) {
    if (!store_enter()) {
        return false;
    }
    bool is_kept = store_add(event);
    store_leave();
    return is_kept;
}

void hak_profile_store_drop(void) {
    if (store_enter()) {
        store_note_drop(false);
        store_leave();
    }
}

static uint64_t sample_token(uint32_t offset) {
    return offset != 0 ? (uint64_t)hak_profile_store.generation << 32 | offset : 0;
}

/* The record that was taken; 0: it had none, or a reset in between took it along. */
static uint32_t sample_taken(uint64_t token) {
    return token >> 32 == hak_profile_store.generation ? (uint32_t)token : 0;
}

uint64_t hak_profile_store_take(const void *block) {
    hak_profile_store_t *store = &hak_profile_store;
    if (!store_enter()) {
        return 0;
    }
    uint64_t token = sample_token(store->base != NULL ? sample_unlink(block) : 0);
    hak_lock_release(HAK_LOCK_PROFILE);
    return token;
}

void hak_profile_store_end(uint64_t token) {
    hak_profile_store_t *store = &hak_profile_store;
    if (token == 0 || !store_enter()) {
        return;
    }
    uint32_t offset = sample_taken(token);
    if (offset != 0) {
        hak_profile_sample_t *sample = hak_profile_sample_at(store->base, offset);
        store_count_out(hak_profile_site_at(store->base, sample->site), sample);
        sample_discard(offset);
    }
    store_leave();
}

void hak_profile_store_keep(uint64_t token) {
    if (!store_enter()) {
        return;
    }
    if (sample_taken(token) != 0) {
        sample_link(sample_taken(token));
    }
    hak_lock_release(HAK_LOCK_PROFILE);
}
