/* SPDX-License-Identifier: MIT
 *
 * Every kind of operating system call fails at every position of a scenario: once, for a while, and
 * from there on for good. Each case is a process of its own, forked before the first use of hakmem.
 * After the faults the core must pass its audit and serve the scenario without a refusal.
 *
 * Argument: the scenario. */
#include "fault/scenario.h"

#include "double/audit.h"
#include "double/os_fault.h"
#include "hakmem/hakmem.h"
#include "os/os.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POSITIONS_MOST = 40, HANG_SECONDS = 60 };

static const char *const call_names[HAK_OS_CALL_COUNT] = {"map",   "commit", "unmap", "purge",
                                                          "remap", "advise", "read"};

typedef struct fault_case {
    hak_os_call_t call;
    uint64_t first, count;
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

static void run_case(const fault_scenario_t *scenario, const fault_case_t *fault) {
    alarm(HANG_SECONDS);
    if (scenario->prepare != NULL) {
        scenario->prepare();
    }
    hak_os_fault_clear();
    if (fault != NULL) {
        hak_os_fault_plan(fault->call, fault->first, fault->count);
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
        printf(": %s", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
    }
    printf("\n");
    return false;
}

/* All positions, or as many as fit the time, spread evenly, the first and the last among them. */
static unsigned run_positions(const fault_scenario_t *scenario, hak_os_call_t call) {
    static const uint64_t counts[] = {1, 5, 1u << 30};
    unsigned failures = 0;
    uint64_t most = calls[call] + 1; /* a refusal may lead to calls nobody made before */
    uint64_t cases = most < POSITIONS_MOST ? most : POSITIONS_MOST;
    for (uint64_t i = 0; i < cases; i++) {
        for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++) {
            uint64_t first = cases < 2 ? 0 : i * (most - 1) / (cases - 1);
            fault_case_t fault = {.call = call, .first = first, .count = counts[k]};
            failures += !is_survived(scenario, &fault);
        }
    }
    printf("%s: %s: %llu calls, %llu positions\n", scenario->name, call_names[call],
           (unsigned long long)calls[call], (unsigned long long)cases);
    return failures;
}

static unsigned run_scenario(const fault_scenario_t *scenario) {
    unsigned failures = 0;
    if (!is_survived(scenario, NULL)) {
        return 1;
    }
    for (unsigned call = 0; call < HAK_OS_CALL_COUNT; call++) {
        failures += run_positions(scenario, (hak_os_call_t)call);
    }
    return failures;
}

int main(int argc, char **argv) {
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 2 || calls == MAP_FAILED) {
        fprintf(stderr, "usage: %s SCENARIO\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < fault_scenario_count; i++) {
        if (strcmp(fault_scenarios[i].name, argv[1]) == 0) {
            return run_scenario(&fault_scenarios[i]) == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "unknown scenario '%s'\n", argv[1]);
    return 2;
}
