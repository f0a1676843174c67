/* SPDX-License-Identifier: MIT
 *
 * Copies of the store for documents: whole, and made in short holds of its lock, while other
 * threads sample. */
#include "profile/copy.h"

#include "unit/unit.h"

#include <pthread.h>

enum {
    COPY_RATE = 1 << 20,
    COPY_STORE_BYTES = 4 << 20,
    COPY_SAMPLES = 20000,
    SITES = 500,
    HELD_MOST = 16
};

static bool copy_add(uintptr_t place) {
    const hak_profile_event_t event = {
        .block = (const void *)(place << 4),
        .bytes = 1000,
        .requested_bytes = 999,
        .rate = COPY_RATE,
        .thread_id = 1,
        .depth = 2,
        .stack = {0x1000 + place % SITES, 0x2000},
    };
    return hak_profile_store_add(&event);
}

static void copy_end(uintptr_t place) {
    hak_profile_store_end(hak_profile_store_take((const void *)(place << 4)));
}

static void copy_begin(void) {
    assert_true(hak_profile_store_open(COPY_STORE_BYTES, COPY_RATE, true));
    hak_profile_store_reset();
    hak_profile_held_most = 0;
    for (uintptr_t place = 1; place <= COPY_SAMPLES; place++) {
        assert_true(copy_add(place));
    }
}

/* The sums of each site are those of its samples, and all of them together what the store had. */
static void expect_whole(const hak_profile_copy_t *copy) {
    uint64_t samples = 0, sites = 0;
    assert_non_null(copy->store.base);
    for (hak_profile_site_t *site = NULL; (site = hak_profile_copy_next(copy, site)) != NULL;) {
        size_t count;
        size_t first = hak_profile_copy_samples(copy, site, &count);
        assert_int_equal(site->in_use.samples, count);
        assert_int_equal(site->in_use.raw_bytes, 1000 * count);
        for (size_t i = 0; i < count; i++) {
            uintptr_t place = copy->sample[first + i]->address >> 4;
            assert_int_equal(site->stack[0], 0x1000 + place % SITES);
        }
        samples += count;
        sites++;
    }
    assert_int_equal(samples, copy->store.live);
    assert_int_equal(samples, copy->sample_count);
    assert_int_equal(sites, copy->store.sites);
}

UNIT_TEST(copy_holds_the_lock_for_a_few_parts_at_once) {
    hak_profile_copy_t copy;
    copy_begin();
    hak_profile_copy_make(&copy);
    expect_whole(&copy);
    assert_int_equal(copy.sample_count, COPY_SAMPLES);
    assert_in_range(hak_profile_held_most, 1, HELD_MOST);
    assert_null(hak_profile_store.changed);
    hak_profile_copy_drop(&copy);
}

static void *sample_all_the_time(void *stop) {
    for (uintptr_t i = 0; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); i++) {
        copy_end(i % COPY_SAMPLES + 1);
        copy_add(i % COPY_SAMPLES + 1);
        copy_end(COPY_SAMPLES + 1 + i % 100);
        copy_add(COPY_SAMPLES + 1 + i * 7 % 100);
    }
    return NULL;
}

UNIT_TEST(copies_while_threads_sample_are_whole) {
    enum { COPIES = 20, THREADS = 2 };
    pthread_t thread[THREADS];
    bool stop = false;
    copy_begin();
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, sample_all_the_time, &stop), 0);
    }
    for (unsigned i = 0; i < unit_rounds(COPIES); i++) {
        hak_profile_copy_t copy;
        hak_profile_copy_make(&copy);
        expect_whole(&copy);
        hak_profile_copy_drop(&copy);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

/* What changed after it was copied is copied again. */
UNIT_TEST(parts_are_marked_while_a_copy_is_made) {
    static uint64_t bits[COPY_STORE_BYTES / HAK_PROFILE_PART_BYTES / 64];
    copy_begin();
    hak_profile_store.changed = bits;
    copy_end(1);
    assert_in_range(hak_profile_store.changed_count, 1, 4);
    uint32_t count = hak_profile_store.changed_count;
    assert_true(copy_add(1)); /* in the same place */
    assert_int_equal(hak_profile_store.changed_count, count);
    hak_profile_store.changed = NULL;
}
