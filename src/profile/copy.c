/* SPDX-License-Identifier: MIT */
#include "profile/copy.h"

#include "base/bits.h"
#include "base/version.h"
#include "os/lock.h"
#include "os/optional.h"
#include "profile/chance.h"
#include "profile/profile.h"
#include "slab/slab_inl.h"

#include <string.h>

enum {
    COPY_MODULES = 1024,         /* more are left out */
    COPY_TEXT_BYTES = 128 << 10, /* of their paths */
    COPY_LINE_BYTES = 4096,      /* of /proc/self/maps */
    COPY_STEP_PARTS = 16,        /* copied in one hold of the lock: some 10 us */
    COPY_PASSES = 4,             /* over all parts, while others change them; then in one hold */
    COPY_TRIES = 2,              /* a reset ends one */
    COPY_NAPS = 1000,            /* for another copy to end */
};
static const uint64_t COPY_NAP_NS = 1000000;

HAK_LARGE_STATE(4) uint64_t hak_profile_held_most;

/* --- the store -------------------------------------------------------------------------------- */

static size_t part_bits_bytes(size_t store_bytes) {
    return hak_align_up(store_bytes / HAK_PROFILE_PART_BYTES, 64) / 8;
}

/* The copy's mapping: the store, pointers to samples, modules, their paths; a bit per part. */
static size_t copy_bytes(size_t store_bytes, size_t sample_count) {
    return store_bytes + part_bits_bytes(store_bytes) +
           sample_count * sizeof(hak_profile_sample_t *) +
           COPY_MODULES * sizeof(hak_profile_module_t) + COPY_TEXT_BYTES;
}

static size_t store_bytes_now(void) {
    hak_lock_acquire(HAK_LOCK_PROFILE);
    size_t bytes = hak_profile_store.base != NULL ? hak_profile_store.bytes : 0;
    hak_lock_release(HAK_LOCK_PROFILE);
    return bytes;
}

/* Begins a copy: all parts are to be copied. The lock is held. false: another copy is not done. */
static bool copy_begin(uint64_t *bits, size_t bytes) {
    hak_profile_store_t *store = &hak_profile_store;
    if (store->base == NULL || store->bytes != bytes || store->changed != NULL) {
        return false;
    }
    memset(bits, 0, part_bits_bytes(bytes));
    store->changed = bits;
    store->changed_count = 0;
    hak_profile_store_change(hak_profile_store_first(store), store->low);
    hak_profile_store_change(store->high, bytes);
    return true;
}

/* A thread that began one may sit in a signal handler, or have left the copy by a jump: after a
 * second another takes its place. */
static bool copy_begin_patiently(uint64_t *bits, size_t bytes, hak_profile_store_t *as) {
    for (unsigned naps = 0;; naps++) {
        hak_lock_acquire(HAK_LOCK_PROFILE);
        hak_profile_store.changed = naps < COPY_NAPS ? hak_profile_store.changed : NULL;
        bool has_begun = copy_begin(bits, bytes), is_busy = hak_profile_store.changed != NULL;
        *as = hak_profile_store;
        hak_lock_release(HAK_LOCK_PROFILE);
        if (has_begun || !is_busy) {
            return has_begun;
        }
        hak_os_sleep(COPY_NAP_NS);
    }
}

/* Makes the OS pages resident, so that no page fault happens under the lock. */
static void pages_touch(char *from, const char *end) {
    for (volatile char *at = from; at < end; at += HAK_PROFILE_PART_BYTES) {
        *at = 0;
    }
}

/* Copies parts from *word on, as many as may be in one hold of the lock. */
static void copy_step(char *base, size_t *word, size_t most) {
    hak_profile_store_t *store = &hak_profile_store;
    size_t words = part_bits_bytes(store->bytes) / 8, done = 0;
    while (store->changed_count != 0 && done < most) {
        uint64_t *bits = &store->changed[*word];
        for (; *bits != 0 && done < most; *bits &= *bits - 1, done++) {
            size_t at = (*word * 64 + hak_ctz(*bits)) * HAK_PROFILE_PART_BYTES;
            memcpy(base + at, store->base + at, HAK_PROFILE_PART_BYTES);
            store->changed_count--;
        }
        *word = *bits != 0 ? *word : (*word + 1) % words;
    }
    if (HAK_FAULT && done > hak_profile_held_most) {
        hak_profile_held_most = done;
    }
}

/* Copies parts, a few in each hold of the lock, until none changed since it was copied. false: the
 * store is another by now. */
static bool copy_store(hak_profile_copy_t *copy, char *base, size_t bytes, uint64_t *bits) {
    const hak_profile_store_t *store = &hak_profile_store;
    size_t word = 0, steps = COPY_PASSES * bytes / HAK_PROFILE_PART_BYTES / COPY_STEP_PARTS + 1;
    hak_profile_store_t as;
    if (!copy_begin_patiently(bits, bytes, &as)) {
        return false;
    }
    pages_touch(base, base + as.low);
    pages_touch(base + as.high, base + bytes);
    hak_lock_acquire(HAK_LOCK_PROFILE);
    bool is_same;
    while ((is_same = store->changed == bits && store->generation == as.generation) &&
           store->changed_count != 0) {
        copy_step(base, &word, steps != 0 ? COPY_STEP_PARTS : SIZE_MAX);
        steps -= steps != 0;
        if (store->changed_count != 0) {
            hak_lock_pass(HAK_LOCK_PROFILE);
        }
    }
    if (is_same) {
        copy->store = *store;
        copy->store.base = base;
        copy->now_ns = hak_os_exact_ns();
        copy->wall_ns = hak_os_wall_ns();
    }
    hak_profile_store.changed = store->changed == bits ? NULL : store->changed;
    hak_lock_release(HAK_LOCK_PROFILE);
    return is_same;
}

static bool sample_is_before(const hak_profile_sample_t *a, const hak_profile_sample_t *b) {
    return a->site != b->site ? a->site < b->site : a->thread_id < b->thread_id;
}

/* Sifts the sample at `root` down a heap whose largest is first. */
static void heap_sift(hak_profile_sample_t **sample, size_t root, size_t count) {
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        child += child + 1 < count && sample_is_before(sample[child], sample[child + 1]);
        if (!sample_is_before(sample[root], sample[child])) {
            return;
        }
        hak_profile_sample_t *moving = sample[root];
        sample[root] = sample[child];
        sample[child] = moving;
        root = child;
    }
}

static void samples_sort(hak_profile_sample_t **sample, size_t count) {
    for (size_t root = count / 2; root-- > 0;) {
        heap_sift(sample, root, count);
    }
    for (size_t end = count; end-- > 1;) {
        hak_profile_sample_t *last = sample[end];
        sample[end] = sample[0];
        sample[0] = last;
        heap_sift(sample, 0, end);
    }
}

static void copy_list_samples(hak_profile_copy_t *copy) {
    const hak_profile_store_t *store = &copy->store;
    for (size_t at = store->high; at < store->bytes; at += sizeof(hak_profile_sample_t)) {
        hak_profile_sample_t *sample = hak_profile_sample_at(store->base, (uint32_t)at);
        if (sample->thread_id != 0) {
            copy->sample[copy->sample_count++] = sample;
        }
    }
    samples_sort(copy->sample, copy->sample_count);
}

/* --- modules ---------------------------------------------------------------------------------- */

/* The mapping of the same file's first byte comes before those of its code. */
typedef struct module_reader {
    hak_profile_copy_t *copy;
    size_t text_bytes;
    uintptr_t base;
    char path[256]; /* of the file that is mapped at `base` */
} module_reader_t;

static void module_add(module_reader_t *reader, const hak_os_mapping_t *mapping, bool is_same) {
    hak_profile_copy_t *copy = reader->copy;
    size_t length = strlen(mapping->path) + 1;
    if (copy->module_count == COPY_MODULES || COPY_TEXT_BYTES - reader->text_bytes < length) {
        return;
    }
    hak_profile_module_t *module = &copy->module[copy->module_count++];
    *module = (hak_profile_module_t){
        .start = mapping->start, .end = mapping->end, .offset = mapping->offset};
    module->path = (uint32_t)reader->text_bytes;
    memcpy(copy->text + reader->text_bytes, mapping->path, length);
    reader->text_bytes += length;
    if (is_same) {
        module->build_id_bytes = (uint32_t)hak_os_build_id(reader->base, module->build_id);
    }
}

static void module_visit(const hak_os_mapping_t *mapping, void *context) {
    module_reader_t *reader = context;
    if (mapping->path == NULL) {
        return;
    }
    if (mapping->offset == 0) {
        size_t length = strlen(mapping->path);
        reader->base = mapping->start;
        reader->path[0] = '\0';
        if (length < sizeof reader->path) {
            memcpy(reader->path, mapping->path, length + 1);
        }
    }
    if (mapping->is_code) {
        bool is_same = mapping->path[0] != '\0' && strcmp(mapping->path, reader->path) == 0;
        module_add(reader, mapping, is_same);
    }
}

static void copy_list_modules(hak_profile_copy_t *copy) {
    char line[COPY_LINE_BYTES];
    module_reader_t reader = {.copy = copy};
    (void)hak_os_mappings(false, line, sizeof line, module_visit, &reader);
}

/* --- copies ----------------------------------------------------------------------------------- */

void hak_profile_copy_make(hak_profile_copy_t *copy) {
    *copy = (hak_profile_copy_t){
        .now_ns = hak_os_exact_ns(), .wall_ns = hak_os_wall_ns(), .version = HAK_VERSION_TEXT};
    size_t bytes = store_bytes_now();
    size_t sample_most = bytes / sizeof(hak_profile_sample_t);
    size_t mapped_bytes = hak_align_up(copy_bytes(bytes, sample_most), HAK_UNIT_BYTES);
    char *base = hak_os_map(mapped_bytes, hak_os_page_bytes());
    if (base == NULL) {
        return;
    }
    copy->mapping = base;
    copy->mapped_bytes = mapped_bytes;
    copy->sample = (hak_profile_sample_t **)(base + bytes);
    copy->module = (hak_profile_module_t *)(copy->sample + sample_most);
    copy->text = (char *)(copy->module + COPY_MODULES);
    uint64_t *bits = (uint64_t *)(copy->text + COPY_TEXT_BYTES);
    bool is_copied = false;
    for (unsigned i = 0; bytes != 0 && !is_copied && i < COPY_TRIES; i++) {
        is_copied = copy_store(copy, base, bytes, bits);
    }
    if (is_copied) {
        copy_list_samples(copy);
    }
    copy_list_modules(copy);
}

void hak_profile_copy_drop(hak_profile_copy_t *copy) {
    if (copy->mapping != NULL) {
        hak_os_unmap(copy->mapping, copy->mapped_bytes);
    }
    *copy = (hak_profile_copy_t){0};
}

hak_profile_site_t *hak_profile_copy_next(const hak_profile_copy_t *copy,
                                          const hak_profile_site_t *site) {
    const hak_profile_store_t *store = &copy->store;
    if (store->base == NULL) {
        return NULL;
    }
    const char *next = site == NULL ? store->base + hak_profile_store_first(store)
                                    : (const char *)site + hak_profile_site_bytes(site->depth);
    return next < store->base + store->low ? (hak_profile_site_t *)(uintptr_t)next : NULL;
}

size_t hak_profile_copy_samples(const hak_profile_copy_t *copy, const hak_profile_site_t *site,
                                size_t *count) {
    uint32_t offset = (uint32_t)((const char *)site - copy->store.base);
    size_t low = 0, high = copy->sample_count, first;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (copy->sample[middle]->site < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    first = low;
    while (low < copy->sample_count && copy->sample[low]->site == offset) {
        low++;
    }
    *count = low - first;
    return first;
}

const hak_profile_sum_t *hak_profile_copy_peak(const hak_profile_copy_t *copy,
                                               const hak_profile_site_t *site) {
    return site->peak_number == copy->store.peak_number ? &site->peak : &site->in_use;
}

/* --- pinned memory ---------------------------------------------------------------------------- */

/* The slab of the neighbour, if it is still one of the class; its figures are hints. */
static HAK_UNORDERED bool slab_figures(uintptr_t address, size_t bytes, uint64_t *live,
                                       uint64_t *idle_bytes) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), (const void *)address);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    hak_superslab_t *superslab = hak_pagemap_superslab_at(index, (const void *)address);
    if (!hak_slab_is_entry(entry) || superslab == NULL ||
        hak_sc_info_of_entry(entry)->bytes != bytes) {
        return false;
    }
    const volatile hak_slab_t *slab = hak_slab_in(superslab, (const void *)address);
    uint64_t carved = slab->carved, free = slab->free_count;
    *live = hak_excess(carved, free);
    *idle_bytes = hak_excess(hak_least(free, carved) * bytes, slab->purged_bytes);
    return true;
}

/* The blocks in use of a slab share its free resident bytes. A slab that is gone would hold an OS
 * page for the block alone. */
double hak_profile_pinned(const hak_profile_sample_t *sample) {
    uint64_t live, idle_bytes, page = hak_os_page_bytes();
    if (sample->companion <= HAK_PROFILE_LARGE) {
        return 0;
    }
    if (!slab_figures(sample->companion, sample->bytes, &live, &idle_bytes)) {
        live = 0;
        idle_bytes = hak_excess(page, sample->bytes);
    }
    return sample->weight * (double)idle_bytes / (double)(live + 1);
}
