/* SPDX-License-Identifier: MIT
 *
 * A load that always holds the same, in a control group whose limit is 1.2 times that: how often is
 * more resident than the limit? Real memory; the double of the operating system says what the files
 * of the group say. */
#include "base/atomics.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "reclaim/reclaim.h"
#include "tight_load.h"

static size_t current_bytes, limit_bytes; /* [atomic] */
static size_t tight_samples; /* [atomic] the process knew the limit, and that it is tight */

/* A GiB is allocated in a second, by a clock that obeys. */
static void tell(size_t resident) {
    hak_os_fault_advance_clock(1000000000 / 1024);
    bool is_known = hak_load_relaxed(&hak_knobs.limit_bytes) == limit_bytes;
    hak_add_relaxed(&tight_samples, is_known && hak_load_relaxed(&hak_knobs.is_tight));
    hak_store_relaxed(&current_bytes, resident);
}

static size_t serve(const char *path, char *buffer, size_t capacity) {
    const char *file = strrchr(path, '/') + 1;
    if (strcmp(file, "cgroup") == 0) {
        return (size_t)snprintf(buffer, capacity, "0::/group\n");
    }
    if (strncmp(path, "/sys/fs/cgroup/group/memory.", 28) != 0) {
        return 0;
    }
    if (strcmp(file, "memory.max") == 0) {
        return (size_t)snprintf(buffer, capacity, "max\n");
    }
    const size_t *number = strcmp(file, "memory.high") == 0      ? &limit_bytes
                           : strcmp(file, "memory.current") == 0 ? &current_bytes
                                                                 : NULL;
    return number == NULL ? 0
                          : (size_t)snprintf(buffer, capacity, "%zu\n", hak_load_relaxed(number));
}

static tight_load_t load = {
    .live_bytes = 192 << 20,
    .threads = 2,
    .phases = TIGHT_PHASES,
    .turns = 3,
    .told = tell,
};

static tight_load_t run(bool is_aware) {
    tight_load_t one = load;
    hak_store_relaxed(&hak_knobs.cgroup, is_aware);
    tight_load_run(&one);
    family.trim(0);
    expect_say("%s: %zu of %zu samples above, peak %zu MiB, limit %zu MiB\n",
               is_aware ? "aware" : "not aware", one.above, one.samples, one.peak_bytes >> 20,
               one.limit_bytes >> 20);
    expect_say("by phase: %zu %zu %zu %zu %zu %zu\n", one.phase_above[0], one.phase_above[1],
               one.phase_above[2], one.phase_above[3], one.phase_above[4], one.phase_above[5]);
    return one;
}

static void tight_group_is_seldom_passed(void) {
    tight_load_begin(&load);
    load.limit_bytes = (load.live_bytes + expect_rss_bytes()) / 100 * 120;
    limit_bytes = load.limit_bytes;
    hak_os_fault_stop_clock();
    hak_os_fault_files(serve);
    hak_os_fault_groups_anew();
    hak_limit = (hak_limit_t){0}; /* as if the process began in this group */
    tight_load_t aware = run(true);
    expect_say("%zu samples tight\n", tight_samples);
    EXPECT(hak_knobs.limit_bytes == limit_bytes);
    EXPECT(tight_samples >= aware.samples / 4); /* two thirds; at the end it may be roomy */
    hak_store_relaxed(&hak_knobs.learn, 0);     /* the learner returns memory sooner, too */
    hak_store_relaxed(&hak_knobs.limit_soft_bytes, SIZE_MAX);
    hak_store_relaxed(&hak_knobs.is_tight, false);
    hak_store_relaxed(&hak_knobs.limit_bytes, 0);
    tight_load_t other = run(false);
    EXPECT(aware.samples == other.samples);
    EXPECT(aware.above <= aware.samples / 4);
    EXPECT(other.above >= 3 * aware.above);
    EXPECT(aware.peak_bytes < other.peak_bytes);
}

int main(void) {
    family_load();
    expect_watchdog();
    if (expect_is_emulated()) {
        expect_skip("resident memory of an emulator");
    }
    RUN(tight_group_is_seldom_passed);
    return expect_status();
}
