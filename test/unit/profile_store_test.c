/* SPDX-License-Identifier: MIT
 *
 * Sites and samples: sums, peaks, lifetimes, bounded memory. */
#include "front/hooks.h"
#include "os/optional.h"
#include "unit/profile.h"

enum { RATE = 1 << 20, STORE_BYTES = 256 << 10 };

/* A sample of a block that nobody reads. */
static hak_profile_event_t event_of(uintptr_t place, uintptr_t site, size_t bytes) {
    hak_profile_event_t event = {.block = (const void *)(place << 4),
                                 .bytes = bytes,
                                 .requested_bytes = bytes - 1,
                                 .rate = RATE,
                                 .thread_id = 1,
                                 .depth = 3,
                                 .stack = {site, 0x2000, 0x3000}};
    return event;
}

static bool add(uintptr_t place, uintptr_t site, size_t bytes) {
    const hak_profile_event_t event = event_of(place, site, bytes);
    return hak_profile_store_add(&event);
}

static void end(uintptr_t place) {
    uint64_t token = hak_profile_store_take((const void *)(place << 4));
    assert_true(token != 0);
    hak_profile_store_end(token);
}

static hak_profile_site_t *site_of(uintptr_t address) {
    hak_profile_store_t *store = &hak_profile_store;
    for (uint32_t at = hak_profile_store_first(store); at < store->low;) {
        hak_profile_site_t *site = hak_profile_site_at(store->base, at);
        if (site->stack[0] == address) {
            return site;
        }
        at += hak_profile_site_bytes(site->depth);
    }
    return NULL;
}

UNIT_AROUND(store_begin) {
    bool is_open = hak_profile_store_open(STORE_BYTES, RATE, true);
    hak_profile_store_reset();
    return !is_open;
}

#define STORE_TEST(name) UNIT_TEST_WITH(name, store_begin, NULL)

static double weight_of(size_t bytes) {
    return 1 / hak_chance_of((double)bytes / RATE);
}

static bool store_is_near(double found, double expected) {
    return found > expected * (1 - 1e-9) - 1e-9 && found < expected * (1 + 1e-9) + 1e-9;
}

/* PROFILE-3 */
STORE_TEST(sums_are_those_of_the_samples_in_use) {
    assert_true(add(1, 0x1000, 64) && add(2, 0x1000, 64) && add(3, 0x1000, 1024) &&
                add(4, 0x1111, 64));
    hak_profile_site_t *site = site_of(0x1000);
    assert_non_null(site);
    double small = weight_of(64), large = weight_of(1024);
    assert_int_equal(site->in_use.samples, 3);
    assert_int_equal(site->in_use.raw_bytes, 64 + 64 + 1024);
    assert_true(store_is_near(site->in_use.objects, 2 * small + large));
    assert_true(store_is_near(site->in_use.bytes, 2 * small * 64 + large * 1024));
    assert_true(store_is_near(site->requested_bytes, 2 * small * 63 + large * 1023));
    assert_true(store_is_near(site->variance, 2 * small * (small - 1) * 64 * 64 +
                                                  large * (large - 1) * 1024 * 1024));
    assert_true(store_is_near(hak_profile_store.live_bytes, 3 * small * 64 + large * 1024));
    assert_int_equal(hak_profile_store.live, 4);
    end(1);
    end(3);
    assert_int_equal(site->in_use.samples, 1);
    assert_true(store_is_near(site->in_use.bytes, small * 64));
    assert_int_equal(site->all.samples, 3);
    assert_true(store_is_near(site->all.bytes, 2 * small * 64 + large * 1024));
    end(2);
    end(4);
    assert_true(site->in_use.bytes == 0 && site->variance == 0 && site->requested_bytes == 0);
    assert_true(hak_profile_store.live_bytes == 0 && hak_profile_store.live == 0);
    assert_int_equal(hak_profile_store.taken, 4);
    assert_int_equal(hak_profile_store.sites, 2);
}

/* Stacks that differ in one address, in their length or in their label only. */
STORE_TEST(different_stacks_are_different_sites) {
    hak_profile_event_t event = event_of(1, 0x1000, 64);
    assert_true(hak_profile_store_add(&event));
    event = event_of(2, 0x1000, 64);
    event.stack[2]++;
    assert_true(hak_profile_store_add(&event));
    event = event_of(3, 0x1000, 64);
    event.depth = 2;
    assert_true(hak_profile_store_add(&event));
    event = event_of(4, 0x1000, 64);
    event.label = "here";
    assert_true(hak_profile_store_add(&event));
    event = event_of(5, 0x1000, 64);
    event.depth = 0;
    assert_true(hak_profile_store_add(&event));
    assert_int_equal(hak_profile_store.sites, 5);
    event = event_of(6, 0x1000, 64);
    event.label = "here";
    assert_true(hak_profile_store_add(&event));
    assert_int_equal(hak_profile_store.sites, 5);
}

/* Each site keeps its sums of the moment when all together held most. */
STORE_TEST(peak_is_of_one_moment) {
    double unit = weight_of(4096) * 4096;
    (void)(add(1, 0x1000, 4096) && add(2, 0x1000, 4096) && add(3, 0x1111, 4096)); /* 3: a peak */
    end(1);
    end(2);
    (void)(add(4, 0x1111, 4096) && add(5, 0x1222, 4096)); /* 3 again: no higher */
    const hak_profile_store_t *store = &hak_profile_store;
    hak_profile_site_t *first = site_of(0x1000), *second = site_of(0x1111),
                       *third = site_of(0x1222);
    assert_true(store_is_near(store->peak_bytes, 3 * unit));
    assert_true(first->peak_number == store->peak_number &&
                store_is_near(first->peak.bytes, 2 * unit));
    assert_true(second->peak_number == store->peak_number &&
                store_is_near(second->peak.bytes, unit));
    assert_true(third->peak_number == store->peak_number && third->peak.bytes == 0);
    assert_true(add(6, 0x1222, 4096)); /* 4 */
    assert_true(store_is_near(store->peak_bytes, 4 * unit));
    assert_true(third->peak_number != store->peak_number); /* so its present sums are those */
    end(6);
    assert_true(third->peak_number == store->peak_number &&
                store_is_near(third->peak.bytes, 2 * unit));
}

STORE_TEST(lifetimes_are_counted_when_blocks_end) {
    uint64_t total = 0;
    for (uintptr_t i = 1; i <= 100; i++) {
        assert_true(add(i, 0x1000, 64));
        end(i);
    }
    const hak_profile_site_t *site = site_of(0x1000);
    for (unsigned i = 0; i < HAK_PROFILE_LIFETIMES; i++) {
        total += site->lifetime[i];
    }
    assert_int_equal(total, 100);
}

/* A record that is taken and kept is found again; one that a reset swept away is not. */
STORE_TEST(taken_records_survive_a_keep_but_no_reset) {
    hak_profile_event_t event = event_of(1, 0x1000, 1 << 20);
    event.companion = (const void *)HAK_PROFILE_LARGE;
    assert_true(hak_profile_store_add(&event));
    assert_int_equal(large_records(), 1);
    uint64_t token = hak_profile_store_take(event.block);
    assert_true(token != 0 && large_records() == 0);
    assert_true(hak_profile_store_take(event.block) == 0);
    hak_profile_store_keep(token);
    assert_int_equal(large_records(), 1);
    token = hak_profile_store_take(event.block);
    hak_profile_store_reset();
    hak_profile_store_keep(token);
    hak_profile_store_end(token);
    assert_true(hak_profile_store_take(event.block) == 0);
    assert_int_equal(hak_profile_store.live, 0);
    assert_int_equal(large_records(), 0);
}

/* PROFILE-4: sites and samples fill the store; the rest is counted, and nothing else changes. */
STORE_TEST(what_does_not_fit_is_dropped_and_counted) {
    unsigned kept = 0, dropped = 0;
    for (uintptr_t i = 1; i <= 5000; i++) {
        bool is_kept = add(i, 0x100000 + (i % 3 == 0 ? i : 0), 64);
        kept += is_kept;
        dropped += !is_kept;
    }
    const hak_profile_store_t *store = &hak_profile_store;
    assert_true(kept > 100 && dropped > 100);
    assert_int_equal(store->taken, kept);
    assert_int_equal(store->live, kept);
    assert_int_equal(store->dropped, dropped);
    assert_true(store->low <= store->high && store->high <= store->bytes);
    for (uintptr_t i = 1; i <= 5000; i++) { /* those that have no record end without one */
        hak_profile_store_end(hak_profile_store_take((const void *)(i << 4)));
    }
    assert_int_equal(store->live, 0);
    assert_true(add(1, 0x100000, 64)); /* their room is used again */
    uint64_t sites_dropped = store->sites_dropped;
    assert_false(add(2, 0x99, 64)); /* a site has none */
    assert_int_equal(store->sites_dropped, sites_dropped + 1);
}

static void rss_line(char *line, void *kib) {
    *(uint64_t *)kib += strncmp(line, "Rss:", 4) == 0 ? strtoull(line + 4, NULL, 10) : 0;
}

static uint64_t all_resident(void) {
    char buffer[4096];
    uint64_t kib = 0;
    assert_true(hak_os_read_lines("/proc/self/smaps", buffer, sizeof buffer, rss_line, &kib));
    return kib << 10;
}

/* As in the child of a fork under a filter: 8 MiB for each child would be too much. */
STORE_TEST(reset_that_the_kernel_refuses_touches_only_what_was_in_use) {
    assert_true(hak_os_purge(hak_profile_store.base, hak_profile_store.bytes));
    hak_profile_store_reset();
    assert_true(add(1, 0x1000, 64));
    uint64_t before = all_resident();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    hak_profile_store_reset();
    hak_os_fault_clear();
    assert_true(all_resident() < before + STORE_BYTES / 4);
    assert_null(site_of(0x1000));
    assert_true(hak_profile_store_take((const void *)16) == 0);
    assert_true(add(1, 0x1000, 64));
    assert_int_equal(hak_profile_store.live, 1);
}

UNIT_TEST(without_memory_there_is_no_store) {
    hak_profile_store_t saved = hak_profile_store;
    hak_profile_store_abandon();
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, UINT64_MAX);
    assert_false(hak_profile_store_open(STORE_BYTES, RATE, false));
    hak_os_fault_clear();
    assert_false(add(1, 0x1000, 64));
    assert_true(hak_profile_store_take((const void *)16) == 0);
    hak_profile_store_reset();
    hak_profile_store = saved;
}

/* Samples go on where it was moved to, and the copy of its head is as it is. */
STORE_TEST(store_that_moved_goes_on_and_keeps_a_copy_of_its_head) {
    static hak_profile_store_t head;
    size_t bytes = hak_profile_keep(NULL, NULL);
    char *to = hak_os_map(bytes, hak_os_page_bytes());
    assert_true(bytes == STORE_BYTES && to != NULL && add(1, 0x1000, 64) && add(2, 0x1000, 64));
    assert_int_equal(hak_profile_keep(to, &head), bytes);
    assert_true(hak_profile_store.base == to && site_of(0x1000)->in_use.samples == 2);
    end(1);
    assert_true(add(3, 0x2000, 64));
    assert_memory_equal(&head, &hak_profile_store, sizeof head);
    assert_true(head.live == 2 && head.sites == 2);
    hak_profile_store_reset(); /* memory of a file is not zero after a purge */
    assert_true(head.live == 0 && site_of(0x1000) == NULL);
    assert_memory_equal(&head, &hak_profile_store, sizeof head);
    hak_profile_store.head = NULL;
}

/* A signal handler forked while its thread was inside: the kernel maps no file there
 * (MADV_DONTFORK), and refuses new memory. */
STORE_TEST(child_that_is_inside_finds_an_empty_store_without_new_memory) {
    static hak_profile_store_t head;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        size_t bytes = hak_profile_keep(NULL, NULL);
        char *to = hak_os_map(bytes, hak_os_page_bytes());
        bool is_kept = add(1, 0x1000, 64) && hak_profile_keep(to, &head) == bytes;
        hak_lock_acquire(HAK_LOCK_PROFILE);
        hak_os_unmap(to, bytes);
        hak_os_fault_plan(HAK_OS_CALL_MAP, 0, UINT64_MAX);
        hak_lock_fork_begin(false);
        hak_profile_after_fork(false);
        hak_lock_fork_end(true);
        bool is_empty = hak_profile_store.base == to && hak_profile_store.head == NULL;
        for (size_t i = 0; is_empty && i < bytes; i++) {
            is_empty = to[i] == 0;
        }
        to[0] = 1;
        hak_lock_release(HAK_LOCK_PROFILE);
        _exit(is_kept && is_empty ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Where a file has it, it is the parent's; the child has one of its own at its next event. */
STORE_TEST(child_of_a_fork_leaves_the_file_to_its_parent) {
    static hak_profile_store_t head;
    hak_profile_store_t saved = hak_profile_store;
    hak_profile_store.head = &head;
    hak_profile_after_fork(true);
    assert_true(hak_profile_store.base == NULL && hak_profile_store.head == NULL && head.live == 0);
    assert_false(add(1, 0x1000, 64));
    assert_true(hak_profile_keep(NULL, NULL) == 0);
    hak_profile_store = saved;
}
