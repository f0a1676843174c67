/* SPDX-License-Identifier: MIT
 *
 * Every kind of operating system call, and all of them together, fails at every position of a
 * scenario: once, for a while, and from there on for good. Each case is a process of its own,
 * forked before the first use of hakmem. After the faults the core must pass its audit, serve the
 * scenario without a refusal, and have given back what it held.
 *
 * Arguments: the scenario; how many positions of a call at most (default 40), spread evenly. Builds
 * other than release, and profiles, take every third of more than 13, each from another one on; all
 * with HAKMEM_FULL=1. */
#include "fault/scenario.h"

#include "api/where.h"
#include "double/audit.h"
#include "double/os_fault.h"
#include "hakmem/hakmem.h"
#include "os/optional.h"
#include "stat/stat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t positions_most = 40;
static uint64_t positions_first, positions_step = 1;

enum { HANG_SECONDS = 60, KEPT_BYTES = 2 << 20 };

enum { CALL_ALL = HAK_OS_CALL_COUNT };

static const char *const call_names[HAK_OS_CALL_COUNT + 1] = {
    "map",  "commit",  "unmap",  "purge", "remap", "advise",
    "read", "conceal", "signal", "peek",  "all"};

typedef struct fault_case {
    unsigned call;         /* or CALL_ALL */
    uint64_t first, count; /* CALL_ALL: of the call that is made most, of others in proportion */
} fault_case_t;

/* Shared with the children: calls of each kind in an undisturbed run. */
static uint64_t *calls;

void fault_fail(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    _exit(1);
}

static void expect_audit(void) {
    hak_audit_t result;
    if (!hak_audit_walk(&result)) {
        fprintf(stderr, "audit: %s broken at %p\n", result.broken, result.where);
        fault_fail(__FILE__, __LINE__, "the audit passes");
    }
}

static uint64_t calls_most(void) {
    uint64_t most = 0;
    for (unsigned call = 0; call < HAK_OS_CALL_COUNT; call++) {
        most = calls[call] > most ? calls[call] : most;
    }
    return most;
}

static void plan(const fault_case_t *fault) {
    for (unsigned call = 0; call < HAK_OS_CALL_COUNT; call++) {
        if (fault->call == call) {
            hak_os_fault_plan((hak_os_call_t)call, fault->first, fault->count);
        } else if (fault->call == CALL_ALL) {
            uint64_t first = fault->first * calls[call] / (calls_most() + 1);
            hak_os_fault_plan((hak_os_call_t)call, first, fault->count);
        }
    }
}

static size_t resident_bytes(void) {
    char text[128] = {0};
    size_t length = hak_os_read_file("/proc/self/statm", text, sizeof text - 1);
    const char *at = strchr(text, ' ');
    FAULT_EXPECT(length != 0 && at != NULL);
    return strtoull(at, NULL, 10) * hak_os_page_bytes();
}

/* What calls that all failed could not give back is lost, so nothing is asked then. */
static void expect_memory_back(const fault_case_t *fault, size_t before) {
    hak_malloc_trim(0);
    size_t now = resident_bytes();
    if (now > before + KEPT_BYTES && (fault == NULL || fault->call != CALL_ALL)) {
        fprintf(stderr, "%zu KiB are resident, %zu before\n", now >> 10, before >> 10);
        fault_fail(__FILE__, __LINE__, "memory comes back");
    }
}

/* Every block is back, whatever failed: on a list of its slab, or in a bin. */
static void expect_no_block_lost(void) {
    hak_snapshot_t snapshot;
    hak_audit_t audit;
    uint64_t out = 0;
    hak_malloc_trim(0); /* the second time: the first sent blocks to parked owners */
    hak_stat_collect(&snapshot);
    hak_audit_walk(&audit);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        out += snapshot.sc[sc].blocks - snapshot.sc[sc].free;
    }
    if (out != audit.cached_blocks || snapshot.large_count + snapshot.huge_count != 0) {
        fprintf(stderr, "%llu blocks are out, %zu of them cached; %zu large, %zu huge\n",
                (unsigned long long)out, audit.cached_blocks, snapshot.large_count,
                snapshot.huge_count);
        fault_fail(__FILE__, __LINE__, "no block is lost");
    }
}

static void run_case(const fault_scenario_t *scenario, const fault_case_t *fault) {
    where_watch(HANG_SECONDS);
    if (scenario->prepare != NULL) {
        scenario->prepare();
    }
    size_t before = resident_bytes();
    hak_os_fault_clear();
    if (fault != NULL) {
        plan(fault);
    }
    unsigned refusals = scenario->run();
    for (unsigned call = 0; call < HAK_OS_CALL_COUNT && fault == NULL; call++) {
        calls[call] = hak_os_fault_calls((hak_os_call_t)call);
    }
    hak_os_fault_clear();
    FAULT_EXPECT(fault != NULL || refusals == 0);
    expect_audit();
    FAULT_EXPECT(scenario->run() == 0); /* the process goes on */
    expect_audit();
    expect_memory_back(fault, before);
    expect_no_block_lost();
    _exit(0);
}

/* The case in a process of its own; false and a line if it did not end well. */
static bool is_survived(const fault_scenario_t *scenario, const fault_case_t *fault) {
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run_case(scenario, fault);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) {
        return true;
    }
    printf("FAILED %s", scenario->name);
    if (fault != NULL) {
        printf(": %s fails %llu times from call %llu on", call_names[fault->call],
               (unsigned long long)fault->count, (unsigned long long)fault->first);
    }
    if (status >= 0 && WIFSIGNALED(status)) {
        printf(": %s", strsignal(WTERMSIG(status)));
    }
    printf("\n");
    return false;
}

/* All positions, or as many as fit the time, spread evenly, the first and the last among them. */
static unsigned run_positions(const fault_scenario_t *scenario, unsigned call) {
    static const uint64_t counts[] = {1, 5, 1u << 30};
    unsigned failures = 0;
    uint64_t total = call == CALL_ALL ? calls_most() : calls[call];
    uint64_t most = total + 1; /* a refusal may lead to calls nobody made before */
    uint64_t cases = most < positions_most ? most : positions_most;
    bool are_few = cases <= positions_most / positions_step; /* all are taken */
    uint64_t step = are_few ? 1 : positions_step;
    uint64_t begin = are_few ? 0 : positions_first;
    for (uint64_t i = begin; i < cases; i += step) {
        for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++) {
            uint64_t first = cases < 2 ? 0 : i * (most - 1) / (cases - 1);
            fault_case_t fault = {.call = call, .first = first, .count = counts[k]};
            failures += !is_survived(scenario, &fault);
        }
    }
    printf("%s: %s: %llu calls, %llu positions\n", scenario->name, call_names[call],
           (unsigned long long)total, (unsigned long long)((cases - begin + step - 1) / step));
    return failures;
}

static unsigned run_scenario(const fault_scenario_t *scenario) {
    unsigned failures = 0;
    if (!is_survived(scenario, NULL)) {
        return 1;
    }
    for (unsigned call = 0; call <= CALL_ALL; call++) {
        failures += run_positions(scenario, call);
    }
    return failures;
}

/* Which positions this build under this profile takes. */
static void choose_positions(void) {
    static const char *const names[] = {"throughput",  "low-memory", "debug",
                                        "debug-audit", "hardened",   "ubsan"};
    const char *name = getenv("HAKMEM_PROFILE");
    name = name != NULL ? name : getenv("HAKMEM_FLAVOUR");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (name != NULL && strcmp(name, names[i]) == 0 && getenv("HAKMEM_FULL") == NULL) {
            positions_step = 3;
            positions_first = i % positions_step;
        }
    }
}

int main(int argc, char **argv) {
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || argc > 3 || calls == MAP_FAILED) {
        fprintf(stderr, "usage: %s SCENARIO [POSITIONS]\n", argv[0]);
        return 2;
    }
    if (argc == 3) {
        positions_most = strtoull(argv[2], NULL, 10);
    } else {
        choose_positions();
    }
    for (size_t i = 0; i < fault_scenario_count; i++) {
        if (strcmp(fault_scenarios[i].name, argv[1]) == 0) {
            return run_scenario(&fault_scenarios[i]) == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "unknown scenario '%s'\n", argv[1]);
    return 2;
}
