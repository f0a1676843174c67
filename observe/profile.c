/* SPDX-License-Identifier: MIT
 *
 * Sites follow one another in the store, and so do samples: both are read in order, no link is
 * followed. A running program changes them meanwhile: the store is read until its head is the same
 * before and after, and sums that differ from their samples (PROFILE-3) are counted as doubtful. */
#include "profile.h"

#include "base/bits.h"
#include "profile/profile.h"

#include <time.h>

enum {
    TRIES = 4,             /* of a store that changes */
    STORE_MOST = 1u << 31, /* twice the most of profile_bytes */
    MORE = 1024,           /* sites and samples beyond those that the head has counted */
};

/* Where a site lies: in the program's store, and in the copy. */
typedef struct place {
    uint32_t there, here;
} place_t;

typedef struct work {
    obs_image_t *image;
    obs_profile_t store;
    char *site;
    size_t site_bytes, site_room;
    place_t *place;
    size_t place_count, place_room;
    hak_profile_sample_t *sample;
    size_t sample_count, sample_room;
    uint32_t doubtful_sites, doubtful_samples;
} work_t;

static work_t work_now; /* what the copy is made of: there is one at a time */
static const char *copy_note;

/* Room for `needed` elements. false: no memory. */
static bool grow(void **all, size_t *room, size_t needed, size_t bytes) {
    if (needed > *room) {
        size_t more = needed + needed / 2 + 64;
        void *grown = obs_grow(*all, more * bytes);
        if (grown == NULL) {
            return false;
        }
        *all = grown;
        *room = more;
    }
    return true;
}

static double as_double(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* --- sites ------------------------------------------------------------------------------------ */

static bool sum_read(obs_image_t *image, uint64_t at, hak_profile_sum_t *sum) {
    obs_sum_t from;
    if (!obs_fetch(image, sum, at, &from)) {
        return false;
    }
    *sum = (hak_profile_sum_t){from.samples, from.raw_bytes, as_double(from.objects),
                               as_double(from.bytes)};
    return true;
}

/* Reads a site to the end of the copy; *bytes: of it in the program. false: it is none. */
static bool site_read(work_t *work, uint32_t offset, uint64_t *bytes) {
    obs_image_t *image = work->image;
    uint64_t at = work->store.base + offset, head = obs_size(image, site);
    obs_site_t from;
    if (!obs_fetch(image, site, at, &from) || from.depth > HAK_PROFILE_FRAMES ||
        head + from.depth * sizeof(uint64_t) > work->store.low - offset) {
        return false;
    }
    size_t room = hak_profile_site_bytes(from.depth);
    if (work->site_bytes + room > UINT32_MAX ||
        !grow((void **)&work->site, &work->site_room, work->site_bytes + room, 1) ||
        !grow((void **)&work->place, &work->place_room, work->place_count + 1, sizeof(place_t))) {
        return false;
    }
    hak_profile_site_t *site = hak_profile_site_at(work->site, (uint32_t)work->site_bytes);
    *site = (hak_profile_site_t){.label = (const void *)(uintptr_t)from.label,
                                 .depth = from.depth,
                                 .peak_number = from.peak_number,
                                 .temporary = from.temporary,
                                 .requested_bytes = as_double(from.requested_bytes),
                                 .variance = as_double(from.variance)};
    memcpy(site->lifetime, from.lifetime, sizeof site->lifetime);
    *bytes = head + from.depth * sizeof(uint64_t);
    return sum_read(image, from.in_use, &site->in_use) && sum_read(image, from.all, &site->all) &&
           sum_read(image, from.peak, &site->peak) && site->all.samples != 0 &&
           obs_read(image->reader, at + head, site->stack, from.depth * sizeof(uint64_t));
}

static void sites_read(work_t *work) {
    const obs_profile_t *store = &work->store;
    uint64_t buckets = (uint64_t)store->sample_mask + store->site_mask + 2, bytes;
    uint64_t offset = hak_align_up(buckets * sizeof(uint32_t), HAK_LINE_BYTES);
    for (; offset < store->low; offset += bytes) {
        if (work->place_count > store->sites + MORE || !site_read(work, (uint32_t)offset, &bytes)) {
            work->doubtful_sites++;
            return;
        }
        work->place[work->place_count++] = (place_t){(uint32_t)offset, (uint32_t)work->site_bytes};
        const hak_profile_site_t *site =
            hak_profile_site_at(work->site, (uint32_t)work->site_bytes);
        work->site_bytes += hak_profile_site_bytes(site->depth);
    }
}

/* In the copy; false: no site begins there. */
static bool site_find(const work_t *work, uint32_t there, uint32_t *here) {
    for (size_t low = 0, high = work->place_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (work->place[middle].there == there) {
            *here = work->place[middle].here;
            return true;
        }
        if (work->place[middle].there < there) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* false: there is no room for more. */
static bool sample_add(work_t *work, const obs_sample_t *from) {
    uint32_t site;
    if (!site_find(work, from->site, &site)) {
        work->doubtful_samples++;
        return true;
    }
    if (work->sample_count > work->store.live + MORE ||
        !grow((void **)&work->sample, &work->sample_room, work->sample_count + 1,
              sizeof *work->sample)) {
        return false;
    }
    work->sample[work->sample_count++] =
        (hak_profile_sample_t){.companion = (uintptr_t)from->companion,
                               .bytes = from->bytes,
                               .time_ns = from->time_ns,
                               .weight = as_double(from->weight),
                               .site = site,
                               .thread_id = from->thread_id};
    return true;
}

static void samples_read(work_t *work) {
    const obs_profile_t *store = &work->store;
    obs_image_t *image = work->image;
    size_t bytes = obs_size(image, sample);
    for (uint64_t at = store->high; store->bytes - at >= bytes; at += bytes) {
        obs_sample_t sample;
        if (!obs_fetch(image, sample, store->base + at, &sample) ||
            (sample.thread_id != 0 && !sample_add(work, &sample))) {
            work->doubtful_samples++;
            return;
        }
    }
}

static int sample_compare(const void *a, const void *b) {
    const hak_profile_sample_t *x = *(hak_profile_sample_t *const *)a,
                               *y = *(hak_profile_sample_t *const *)b;
    int order = x->site != y->site ? (x->site > y->site) - (x->site < y->site)
                                   : (x->thread_id > y->thread_id) - (x->thread_id < y->thread_id);
    return order != 0 ? order : (x > y) - (x < y);
}

void obs_copy_sort(obs_copy_t *copy) {
    if (copy->sample_count != 0) {
        obs_sort(copy->sample, copy->sample_count, sizeof *copy->sample, sample_compare);
    }
}

/* --- the store -------------------------------------------------------------------------------- */

static bool head_read(obs_image_t *image, obs_profile_t *store) {
    memset(store, 0, sizeof *store);
    return obs_fetch(image, profile, obs_root(image, profile), store);
}

static bool head_is_good(const work_t *work) {
    const obs_profile_t *store = &work->store;
    return store->bytes <= STORE_MOST && store->low <= store->high && store->high <= store->bytes &&
           obs_is_mapped(work->image->reader, store->base, store->bytes);
}

/* Whether its head was the same before and after. */
static bool store_read_once(work_t *work) {
    obs_image_t *image = work->image;
    obs_profile_t after;
    work->site_bytes = work->place_count = work->sample_count = 0;
    work->doubtful_sites = work->doubtful_samples = 0;
    if (!head_read(image, &work->store) || (work->store.base != 0 && !head_is_good(work))) {
        work->store = (obs_profile_t){0};
        work->doubtful_sites = 1;
        return false;
    }
    if (work->store.base == 0) {
        return true;
    }
    sites_read(work);
    samples_read(work);
    if (!image->reader->is_core) {
        obs_forget(image->reader);
    }
    return head_read(image, &after) && memcmp(&after, &work->store, sizeof after) == 0;
}

/* Sums that are not those of the samples. */
static void sums_check(work_t *work, const obs_copy_t *copy) {
    hak_profile_site_t *site = NULL;
    while ((site = obs_copy_next(copy, site)) != NULL) {
        size_t count;
        (void)obs_copy_samples(copy, site, &count);
        work->doubtful_sites += site->in_use.samples != count;
    }
    uint64_t most = hak_most(copy->sample_count, copy->store.live);
    work->doubtful_samples += most != hak_least(copy->sample_count, copy->store.live);
}

static void copy_fill(work_t *work, obs_copy_t *copy) {
    const obs_profile_t *from = &work->store;
    copy->store = (hak_profile_store_t){.base = work->site,
                                        .bytes = from->bytes,
                                        .low = from->low,
                                        .high = from->high,
                                        .taken = from->taken,
                                        .dropped = from->dropped,
                                        .sites = from->sites,
                                        .sites_dropped = from->sites_dropped,
                                        .live = from->live,
                                        .live_bytes = as_double(from->live_bytes),
                                        .variance = as_double(from->variance),
                                        .peak_bytes = as_double(from->peak_bytes),
                                        .peak_number = from->peak_number,
                                        .peak_time_ns = from->peak_time_ns,
                                        .started_ns = from->started_ns,
                                        .rate = from->rate,
                                        .is_whole = from->is_whole != 0};
    copy->site_bytes = work->site_bytes;
    copy->sample = obs_take((work->sample_count + 1) * sizeof *copy->sample);
    for (size_t i = 0; copy->sample != NULL && i < work->sample_count; i++) {
        copy->sample[copy->sample_count++] = &work->sample[i];
    }
    obs_copy_sort(copy);
}

/* A core file has no clock: it is as old as the latest that it tells. */
static void copy_set_times(const work_t *work, obs_copy_t *copy) {
    struct timespec now, wall;
    copy->now_ns = work->store.peak_time_ns;
    copy->wall_ns = work->image->reader->written_ns;
    for (size_t i = 0; i < work->sample_count; i++) {
        copy->now_ns = hak_most(copy->now_ns, work->sample[i].time_ns);
    }
    if (!work->image->reader->is_core && clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
        clock_gettime(CLOCK_REALTIME, &wall) == 0) {
        copy->now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        copy->wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
    }
}

/* NULL: nothing contradicts itself. */
static const char *copy_doubt(const work_t *work) {
    static char text[200];
    const obs_doubt_t *doubt = &work->image->doubt;
    uint32_t others = doubt->ranges + doubt->slabs + doubt->lists;
    snprintf(
        text, sizeof text,
        "uncertain: %u sites, %u samples and %u other parts of the heap changed while they were "
        "read, or contradict themselves",
        work->doubtful_sites, work->doubtful_samples, others);
    return work->doubtful_sites + work->doubtful_samples + others != 0 ? text : NULL;
}

void obs_copy_make(obs_copy_t *copy) {
    work_t *work = &work_now;
    bool is_same = false;
    *work = (work_t){.image = obs_current};
    *copy = (obs_copy_t){
        .rate = obs_root_number(obs_current, HAK_DOOR_ROOT_profile_rate, sizeof(size_t)),
        .pid = obs_current->reader->pid,
        .program = obs_program(),
        .version = obs_current->library};
    for (unsigned i = 0; i < TRIES && !is_same; i++) {
        is_same = store_read_once(work);
    }
    bool is_there = work->store.base != 0 && grow((void **)&work->site, &work->site_room, 1, 1);
    if (is_there) {
        copy_fill(work, copy);
        sums_check(work, copy);
    }
    copy_set_times(work, copy);
    obs_list_modules(obs_current->reader, copy);
    copy->doubt = copy_doubt(work);
    copy_note = copy->doubt != NULL ? copy->doubt
                : is_there          ? NULL
                                    : "it has sampled nothing so far (profile_rate)";
}

void obs_copy_drop(obs_copy_t *copy) {
    obs_drop(copy->sample);
    obs_drop(copy->module);
    obs_drop(copy->text);
    obs_drop(work_now.site);
    obs_drop(work_now.place);
    obs_drop(work_now.sample);
    work_now = (work_t){0};
    *copy = (obs_copy_t){0};
}

/* --- the rest of copy.h ----------------------------------------------------------------------- */

hak_profile_site_t *obs_copy_next(const obs_copy_t *copy, const hak_profile_site_t *site) {
    char *base = copy->store.base;
    size_t next = site == NULL
                      ? 0
                      : (size_t)((const char *)site - base) + hak_profile_site_bytes(site->depth);
    return base != NULL && next < copy->site_bytes ? hak_profile_site_at(base, (uint32_t)next)
                                                   : NULL;
}

size_t obs_copy_samples(const obs_copy_t *copy, const hak_profile_site_t *site, size_t *count) {
    uint32_t offset = (uint32_t)((const char *)site - copy->store.base);
    size_t low = 0, high = copy->sample_count, end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (copy->sample[middle]->site < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (end = low; end < copy->sample_count && copy->sample[end]->site == offset; end++) {
    }
    *count = end - low;
    return low;
}

const hak_profile_sum_t *obs_copy_peak(const obs_copy_t *copy, const hak_profile_site_t *site) {
    return site->peak_number == copy->store.peak_number ? &site->peak : &site->in_use;
}

/* --- documents -------------------------------------------------------------------------------- */

static const char *write_copy(const hak_sink_t *sink, uint64_t live_bytes,
                              obs_write_profile_t *write) {
    obs_copy_t copy;
    obs_copy_make(&copy);
    copy.live_bytes = live_bytes;
    write(sink, &copy);
    obs_copy_drop(&copy);
    return copy_note;
}

/* Blocks that the sampled guard watches take an OS page, but count as what was asked for here. */
const char *obs_write_profile_json(obs_image_t *image, const hak_sink_t *sink) {
    static obs_snapshot_t snapshot;
    obs_current = image;
    obs_collect(&snapshot);
    obs_drop_threads();
    uint64_t live = snapshot.live_bytes + snapshot.large_bytes + snapshot.huge_bytes;
    return write_copy(sink, live, obs_write_json_copy);
}

const char *obs_write_profile(obs_image_t *image, const hak_sink_t *sink,
                              obs_write_profile_t *write) {
    obs_current = image;
    return write_copy(sink, 0, write);
}
