/* SPDX-License-Identifier: MIT
 *
 * The load of tight_load.c under any allocator: docs/experiments/0029-cgroup-memory.md says how to
 * run it. Arguments: MiB live, threads, phases, turns, limit in percent of live,
 * MiB a second, and a file that is
 * to say what is resident, in place of memory.current; beside it memory.high is written. */
#include "tight_load.h"

#include <libgen.h>
#include <malloc.h>

static int current_file = -1;

static void tell(size_t resident) {
    char text[32];
    int length = snprintf(text, sizeof text, "%020zu\n", resident);
    if (current_file >= 0 && pwrite(current_file, text, (size_t)length, 0) != length) {
        expect_say("cannot write memory.current\n");
    }
}

static void limit_write(const char *current, size_t limit) {
    char name[512];
    snprintf(name, sizeof name, "%s", current);
    int folder = open(dirname(name), O_RDONLY | O_DIRECTORY);
    int file = openat(folder, "memory.high", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT(file >= 0);
    dprintf(file, "%zu\n", limit);
    close(file);
    close(folder);
    current_file = open(current, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    EXPECT(current_file >= 0);
    tell(expect_rss_bytes());
}

int main(int argc, char **argv) {
    family_load();
    tight_load_t load = {
        .live_bytes = expect_arg(argc, argv, 1, 256) << 20,
        .threads = (unsigned)expect_arg(argc, argv, 2, 2),
        .phases = (unsigned)expect_arg(argc, argv, 3, 2 * TIGHT_PHASES),
        .turns = (unsigned)expect_arg(argc, argv, 4, 4),
        .told = tell,
    };
    size_t percent = expect_arg(argc, argv, 5, 120);
    load.rate_bytes = expect_arg(argc, argv, 6, 1024) << 20;
    tight_load_begin(&load);
    size_t live = load.live_bytes + expect_rss_bytes();
    load.limit_bytes = live / 100 * percent;
    if (argc > 7) {
        limit_write(argv[7], load.limit_bytes);
    }
    tight_load_run(&load);
    printf("%zu of %zu samples above, %zu faults above, peak %.3f of live, %.2f s; by phase:",
           load.above, load.samples, load.faults_above, (double)load.peak_bytes / (double)live,
           load.seconds);
    for (unsigned phase = 0; phase < TIGHT_PHASES; ++phase) {
        printf(" %zu", load.phase_above[phase]);
    }
    printf("\n");
    if (getenv("TIGHT_STATS") != NULL) {
        malloc_stats();
    }
    return 0;
}
