/* SPDX-License-Identifier: MIT
 *
 * The judge: runs random programs, each in a process of its own, most with one error planted, and
 * demands the report that is promised, or that none comes.
 *
 *   planted FIRST COUNT [SECONDS]   programs of the seeds from FIRST on, until the time is over
 *   planted FIRST [STEPS steps]     one program, here; its calls are printed, its report is seen
 *
 * HAKMEM_FLAVOUR says which library is preloaded. */
#include "fuzz/planted.h"
#include "api/where.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STEPS = 1 << 16, REPORT_BYTES = 2048, TALLY_MOST = 64 };

typedef struct outcome {
    int status;
    planted_trace_t trace;
    char report[REPORT_BYTES]; /* standard error */
} outcome_t;

static planted_trace_t *shared;

static void program_child(uint64_t seed, unsigned steps, const int pipe_ends[2]) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    where_watch(WHERE_PATIENCE_SECONDS);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    planted_run(seed, steps, shared);
}

static void program_judge_run(uint64_t seed, unsigned steps, outcome_t *outcome) {
    int pipe_ends[2];
    size_t length = 0;
    memset(shared, 0, sizeof *shared);
    if (pipe(pipe_ends) != 0) {
        abort();
    }
    pid_t pid = fork();
    if (pid == 0) {
        program_child(seed, steps, pipe_ends);
    }
    close(pipe_ends[1]);
    for (ssize_t got = 1; got > 0 && length<REPORT_BYTES - 1; length += got> 0 ? (size_t)got : 0) {
        got = read(pipe_ends[0], outcome->report + length, REPORT_BYTES - 1 - length);
    }
    close(pipe_ends[0]);
    outcome->report[length] = '\0';
    if (pid < 0 || waitpid(pid, &outcome->status, 0) != pid) {
        abort();
    }
    outcome->trace = *shared;
}

/* --- what was promised ------------------------------------------------------------------------ */

static const planted_error_t *error_named(const char *name) {
    for (size_t i = 0; i < planted_error_count; i++) {
        if (name != NULL && strcmp(planted_errors[i].name, name) == 0) {
            return &planted_errors[i];
        }
    }
    return NULL;
}

/* Whether a report is one line with one of the texts, and mostly an address. */
static bool report_fits(const char *report, const char *texts) {
    static const char start[] = "hakmem: ";
    const char *end = strchr(report, '\n');
    if (strncmp(report, start, sizeof start - 1) != 0 || end == NULL || end[1] != '\0') {
        return false;
    }
    report += sizeof start - 1;
    for (const char *text = texts; text != NULL && *text != '\0';) {
        size_t length = strcspn(text, "|");
        const char *rest = report + length;
        bool has_address = strncmp(rest, ": 0x", 4) == 0;
        if (strncmp(report, text, length) == 0 &&
            (has_address || strncmp(rest, " (for stacks: ", 14) == 0)) {
            return true;
        }
        text += length + (text[length] == '|');
    }
    return false;
}

static bool is_hardened(void) {
    const char *flavour = getenv("HAKMEM_FLAVOUR");
    return flavour != NULL && strcmp(flavour, "hardened") == 0;
}

/* NULL: all is well. */
static const char *outcome_judge(const outcome_t *outcome) {
    const planted_error_t *error = error_named(outcome->trace.error);
    bool is_quiet = outcome->report[0] == '\0' && WIFEXITED(outcome->status) &&
                    WEXITSTATUS(outcome->status) == 0;
    bool is_abort = WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) == SIGABRT;
    bool is_fault = WIFSIGNALED(outcome->status) && WTERMSIG(outcome->status) == SIGSEGV;
    bool is_stray = error != NULL && error->may_stray && !is_hardened();
    if (outcome->trace.problem[0] != '\0') {
        return is_stray ? NULL : outcome->trace.problem;
    }
    if (error == NULL) {
        return is_quiet ? NULL : "nothing was wrong";
    }
    bool is_bare = is_fault && outcome->report[0] == '\0';
    if (is_bare && (outcome->trace.is_past ? is_stray : error->may_fault)) {
        return NULL;
    }
    planted_promise_t promise = is_hardened() ? error->promise_hardened : error->promise;
    if (is_quiet) {
        return promise == PLANTED_SOUND ? NULL : "it went unnoticed";
    }
    if (!is_abort || !report_fits(outcome->report, error->texts)) {
        return "it ended in another way than by a fitting report";
    }
    return promise == PLANTED_AT_ONCE && outcome->trace.is_past ? "it was noticed later" : NULL;
}

/* --- many ------------------------------------------------------------------------------------- */

/* The least steps with which the program still fails. */
static unsigned fewest_steps(uint64_t seed, unsigned steps) {
    outcome_t outcome;
    for (unsigned less = steps / 2 + 1; less != 0; less = less == 1 ? 0 : less / 2) {
        while (steps >= less) {
            program_judge_run(seed, steps - less, &outcome);
            if (outcome_judge(&outcome) == NULL) {
                break;
            }
            steps -= less;
        }
    }
    return steps;
}

static void failure_tell(uint64_t seed, const char *wrong, const outcome_t *outcome) {
    unsigned steps = fewest_steps(seed, outcome->trace.step + 1);
    printf("seed %" PRIu64 ", %s: %s (step %u, status 0x%x)\n%s  fails also with %u steps: planted "
           "%" PRIu64 " %u steps\n",
           seed, outcome->trace.error != NULL ? outcome->trace.error : "no error", wrong,
           outcome->trace.step, (unsigned)outcome->status, outcome->report, steps, seed, steps);
    fflush(stdout);
}

typedef struct tally {
    unsigned runs, reports;
} tally_t;

static void tally_print(const tally_t *tally) {
    printf("%7u programs without an error\n", tally[planted_error_count].runs);
    for (size_t i = 0; i < planted_error_count; i++) {
        printf("%7u %7u reported   %s\n", tally[i].runs, tally[i].reports, planted_errors[i].name);
    }
}

static int judge_many(uint64_t first, uint64_t count, unsigned seconds) {
    static tally_t tally[TALLY_MOST];
    static outcome_t outcome;
    unsigned failures = 0;
    time_t end = time(NULL) + (time_t)seconds;
    for (uint64_t seed = first; seed - first < count && failures < 10; seed++) {
        program_judge_run(seed, MOST_STEPS, &outcome);
        const char *wrong = outcome_judge(&outcome);
        const planted_error_t *error = error_named(outcome.trace.error);
        tally_t *row =
            &tally[error != NULL ? (size_t)(error - planted_errors) : planted_error_count];
        row->runs++;
        row->reports += outcome.report[0] != '\0' || WIFSIGNALED(outcome.status);
        if (wrong != NULL) {
            char copy[sizeof outcome.trace.problem];
            snprintf(copy, sizeof copy, "%s", wrong);
            failure_tell(seed, copy, &outcome);
            failures++;
        }
        if (seconds != 0 && time(NULL) >= end) {
            break;
        }
    }
    tally_print(tally);
    for (size_t i = 0; i <= planted_error_count && seconds == 0 && count >= 1000; i++) {
        unsigned usual = i < planted_error_count ? planted_errors[i].usual : 0;
        failures += tally[i].runs == 0; /* each kind had its turn */
        failures += (uint64_t)tally[i].reports * 100 < (uint64_t)tally[i].runs * usual;
    }
    return failures == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || shared == MAP_FAILED) {
        fprintf(stderr, "usage: planted FIRST COUNT [SECONDS] | planted SEED [STEPS steps]\n");
        return 2;
    }
    uint64_t first = strtoull(argv[1], NULL, 10);
    bool is_one = argc == 2 || (argc == 4 && strcmp(argv[3], "steps") == 0);
    if (is_one) {
        shared->is_spoken = true;
        planted_run(first, argc == 2 ? MOST_STEPS : (unsigned)strtoul(argv[2], NULL, 10), shared);
    }
    return judge_many(first, strtoull(argv[2], NULL, 10),
                      argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0);
}
