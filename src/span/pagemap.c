/* SPDX-License-Identifier: MIT
 *
 * Growth of the page map, and the return of its unused memory. Leaves are made under
 * HAK_LOCK_PAGEMAP and published by release; they stay, only their OS pages go. */
#include "span/pagemap.h"

#include "os/lock.h"
#include "os/os.h"
#include "span/span.h"

HAK_LARGE_STATE(1) HAK_LINE_ALIGNED hak_pagemap_t hak_pagemap;

static bool pagemap_grow(uint16_t index) {
    bool done = true;
    hak_lock_acquire(HAK_LOCK_PAGEMAP);
    if (hak_load_relaxed(&hak_pagemap.root[index]) == 0) {
        hak_pagemap_leaf_t *leaf = hak_meta_alloc(sizeof *leaf);
        done = leaf != NULL;
        if (done) {
            uintptr_t distance = ((uintptr_t)leaf - hak_pagemap_base()) / sizeof(uint32_t);
            hak_store_release(&hak_pagemap.root[index], distance); /* pairs PAGEMAP-1 */
        }
    }
    hak_lock_release(HAK_LOCK_PAGEMAP);
    return done;
}

HAK_LOCKED_STATE uint32_t hak_pagemap_is_touched; /* [atomic] */

HAK_COLD bool hak_pagemap_prepare(const void *base, size_t bytes) {
    uintptr_t first = (uintptr_t)base >> HAK_PAGEMAP_LEAF_LOG2;
    uintptr_t last = ((uintptr_t)base + bytes - 1) >> HAK_PAGEMAP_LEAF_LOG2;
    /* The first access to the root in a process is a write: one page fault, not two. No later
     * write: every free reads the line. */
    if (hak_load_relaxed(&hak_pagemap_is_touched) == 0) {
        hak_store_relaxed(&hak_pagemap_is_touched, 1);
        hak_add_relaxed(&hak_pagemap.root[(uint16_t)first], 0);
    }
    for (uintptr_t index = first; index <= last; index++) {
        /* pairs PAGEMAP-1 */
        if (hak_load_acquire(&hak_pagemap.root[(uint16_t)index]) == 0 &&
            !pagemap_grow((uint16_t)index)) {
            return false;
        }
    }
    return true;
}

/* MAP-7: bit i of word j % NOTES for part i of the leaf of root j. */
enum { LEAF_PARTS = 64, LEAF_PART_BYTES = sizeof(hak_pagemap_leaf_t) / LEAF_PARTS, NOTES = 16 };
_Static_assert(sizeof(hak_pagemap_leaf_t) % LEAF_PARTS == 0, "parts cover a leaf");
HAK_LOCKED_STATE uint64_t hak_pagemap_written[NOTES]; /* [atomic] */

static uint64_t parts_of(size_t offset, size_t bytes) {
    size_t first = offset / LEAF_PART_BYTES, last = (offset + bytes - 1) / LEAF_PART_BYTES;
    return hak_mask((unsigned)(last - first + 1)) << first;
}

/* Before the write itself: bytes of the leaf of this address. */
static void pagemap_note(const void *address, size_t offset, size_t bytes) {
    size_t root = (uintptr_t)address >> HAK_PAGEMAP_LEAF_LOG2;
    uint64_t *written = &hak_pagemap_written[root % NOTES], parts = parts_of(offset, bytes);
    if ((hak_load_relaxed(written) & parts) != parts) {
        hak_or_relaxed(written, parts);
    }
}

void hak_pagemap_set_units(const void *base, size_t count, uint32_t entry) {
    uintptr_t origin = hak_pagemap_base();
    uint32_t *place = hak_pagemap_entry(origin, hak_pagemap_index(origin, base));
    for (size_t i = 0; i < count; i++) {
        hak_store_relaxed(&place[i], entry);
    }
}

void hak_pagemap_set(const void *base, size_t count, uint32_t entry) {
    size_t inside = (uint16_t)((uintptr_t)base >> HAK_UNIT_LOG2);
    size_t here = hak_least(count, HAK_PAGEMAP_LEAF_UNITS - inside);
    pagemap_note(base, inside * sizeof entry, here * sizeof entry);
    hak_pagemap_set_units(base, here, entry);
    if (HAK_UNLIKELY(here != count)) { /* the next leaf */
        hak_pagemap_set((const char *)base + here * HAK_UNIT_BYTES, count - here, entry);
    }
}

void hak_pagemap_set_superslab(const void *base, hak_superslab_t *superslab) {
    unsigned index =
        (unsigned)((uintptr_t)base >> HAK_SUPERSLAB_LOG2) & (HAK_PAGEMAP_LEAF_SUPERSLABS - 1);
    hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(hak_pagemap_base(), base);
    size_t units = HAK_SUPERSLAB_UNITS * sizeof leaf->entry[0];
    pagemap_note(base, index * units, units);
    pagemap_note(base, offsetof(hak_pagemap_leaf_t, superslab) + index * sizeof superslab,
                 sizeof superslab);
    hak_store_release(&leaf->superslab[index], superslab); /* pairs PAGEMAP-2 */
}

/* --- trim ------------------------------------------------------------------------------------- */

static bool is_zero(const uint64_t *word, const uint64_t *end) {
    while (word < end && hak_load_relaxed(word) == 0) {
        word++;
    }
    return word == end;
}

/* Whether the OS page holds nothing, and no thread can write to it before the locks are free: units
 * of superslabs are written to without them (MAP-6). */
static bool page_is_unused(const hak_pagemap_leaf_t *leaf, const char *page, size_t bytes) {
    size_t first = (size_t)(page - (const char *)leaf) / sizeof leaf->entry[0];
    size_t last = first + bytes / sizeof leaf->entry[0] - 1;
    for (size_t i = first / HAK_SUPERSLAB_UNITS;
         i <= last / HAK_SUPERSLAB_UNITS && i < HAK_PAGEMAP_LEAF_SUPERSLABS; i++) {
        if (hak_load_relaxed(&leaf->superslab[i]) != NULL) {
            return false;
        }
    }
    return is_zero((const uint64_t *)page, (const uint64_t *)(page + bytes));
}

/* Purges the OS pages that hold nothing, of those with these parts, and returns the parts of the
 * others. The rest of the leaf may be what another trim looks at. */
static uint64_t leaf_purge(hak_pagemap_leaf_t *leaf, uint64_t written) {
    size_t bytes = hak_os_page_bytes();
    char *page = (char *)hak_align_up((uintptr_t)leaf, bytes);
    const char *end = (const char *)hak_align_down((uintptr_t)(leaf + 1), bytes);
    uint64_t left = 0, here = 0;
    for (; page < end; page += bytes) {
        char *from = page;
        while (page < end &&
               (here = written & parts_of((size_t)(page - (char *)leaf), bytes)) != 0 &&
               page_is_unused(leaf, page, bytes)) {
            page += bytes;
        }
        if (page != from && !hak_os_purge(from, (size_t)(page - from))) {
            left |= written & parts_of((size_t)(from - (char *)leaf), (size_t)(page - from));
        }
        left |= page < end ? here : 0;
    }
    return left;
}

static uint64_t root_purge(uintptr_t distance, uint64_t written) {
    hak_lock_acquire(HAK_LOCK_GUARD);
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_lock_acquire(HAK_LOCK_SPAN);
    void *leaf = hak_pagemap_entry(hak_pagemap_base(), distance);
    uint64_t left = leaf_purge(leaf, written);
    hak_lock_release(HAK_LOCK_SPAN);
    hak_lock_release(HAK_LOCK_HUGE);
    hak_lock_release(HAK_LOCK_GUARD);
    return left;
}

void hak_pagemap_trim(void) {
    for (size_t i = 0; i < NOTES; i++) {
        uint64_t written = hak_swap_relaxed(&hak_pagemap_written[i], 0), left = 0;
        for (size_t root = i; written != 0 && root < HAK_PAGEMAP_ROOTS; root += NOTES) {
            uintptr_t distance = hak_load_acquire(&hak_pagemap.root[root]); /* pairs PAGEMAP-1 */
            left |= distance != 0 ? root_purge(distance, written) : 0;
        }
        hak_or_relaxed(&hak_pagemap_written[i], left);
    }
}
