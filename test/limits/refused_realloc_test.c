/* SPDX-License-Identifier: MIT
 *
 * A realloc that the kernel refuses costs what a refused malloc costs: no mappings, no memory, and
 * nothing that is kept for later. Also where mlockall makes each new mapping resident.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api/family.h"
#include "api/figure.h"

enum { MIB = 1 << 20, KEPT = 24, STATM_DATA = 5 };

static size_t peak_bytes(void) {
    struct rusage usage;
    EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss * 1024;
}

/* The address space has room for it, the machine has not. */
static void refused_realloc_to_a_vast_size_leaves_no_mappings(void) {
    const size_t vast = (size_t)1 << 46, sizes[] = {256 << 10, 2 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *block = family.malloc(sizes[i]);
        EXPECT(block != NULL);
        size_t before = figure_map_count();
        errno = 0;
        void *moved = family.realloc(block, vast);
        if (moved != NULL) { /* this kernel grants whatever is asked for */
            family.free(moved);
            continue;
        }
        EXPECT_EQ(errno, ENOMEM);
        EXPECT(figure_map_count() <= before + 8);
        family.free(block);
    }
}

static void realloc_beyond_all_addresses_keeps_what_is_cached(void) {
    void *kept[KEPT], *block = family.malloc(2 * MIB);
    for (unsigned i = 0; i < KEPT; i++) {
        kept[i] = family.malloc(2 * MIB);
        EXPECT(kept[i] != NULL);
        memset(kept[i], 1, 2 * MIB);
    }
    for (unsigned i = 0; i < KEPT; i++) {
        family.free(kept[i]);
    }
    size_t before = expect_rss_bytes();
    EXPECT(family.realloc(block, (size_t)1 << 50) == NULL);
    EXPECT(expect_rss_bytes() >= before - MIB);
    family.free(block);
}

/* In a process of its own. */
static int grow_locked(void) {
    size_t bytes = (size_t)128 * MIB;
    char *block = family.malloc(bytes), *small = family.malloc(9 * MIB);
    void *walls[] = {family.malloc(3 * MIB), family.malloc(3 * MIB)};
    EXPECT(block != NULL && small != NULL && walls[0] != NULL && walls[1] != NULL);
    if (mlockall(MCL_FUTURE) != 0) {
        return 77;
    }
    struct rlimit limit, low;
    EXPECT_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
    low = limit;
    low.rlim_cur = expect_statm_bytes(STATM_DATA) + MIB;
    EXPECT_EQ(setrlimit(RLIMIT_DATA, &low), 0);
    EXPECT(family.realloc(small, (size_t)300 * MIB) == NULL);
    EXPECT_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
    block[0] = 1;
    block = family.realloc(block, 2 * bytes);
    EXPECT(block != NULL && block[0] == 1);
    EXPECT(peak_bytes() < bytes);
    return expect_status();
}

static void growth_after_a_refused_one_locks_no_memory_that_is_not_used(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(grow_locked());
    }
    int status;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77); /* no right to lock memory */
}

int main(void) {
    family_load();
    RUN(refused_realloc_to_a_vast_size_leaves_no_mappings);
    RUN(realloc_beyond_all_addresses_keeps_what_is_cached);
    RUN(growth_after_a_refused_one_locks_no_memory_that_is_not_used);
    return expect_status();
}
