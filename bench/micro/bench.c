/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct {
    int argc;
    char **argv;
    const char *name, *extra;
    uint64_t operations, wall, cpu, live_peak, live_end, rss_live;
    struct rusage usage; /* during the measured section */
    bool measured;
} frame;

_Noreturn void bench_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", frame.name != NULL ? frame.name : "bench");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

_Noreturn void bench_out_of_memory(size_t size) {
    bench_fail("no memory for %zu bytes", size);
}

/* --- arguments ---------------------------------------------------------------------------------
 */

void bench_init(int argc, char **argv, const char *usage) {
    const char *slash = strrchr(argv[0], '/');
    frame.argc = argc;
    frame.argv = argv;
    frame.name = slash != NULL ? slash + 1 : argv[0];
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("usage: %s %s\n", frame.name, usage);
        exit(0);
    }
}

_Noreturn static void bad_argument(const char *name, const char *text, const char *expected) {
    fprintf(stderr, "%s: %s is '%s'; it must be %s\n", frame.name, name, text, expected);
    exit(2);
}

uint64_t bench_arg(int index, uint64_t fallback, uint64_t min, uint64_t max, const char *name) {
    if (index >= frame.argc) {
        return fallback;
    }
    const char *text = frame.argv[index];
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %llu to %llu", (unsigned long long)min,
             (unsigned long long)max);
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    static const char units[] = "kmg";
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    unsigned shift = 0;
    if (unit != NULL) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' ||
        value > UINT64_MAX >> shift || (value << shift) < min || (value << shift) > max) {
        bad_argument(name, text, expected);
    }
    return value << shift;
}

int bench_choice(int index, const char *const *choices, const char *name) {
    const char *text = index < frame.argc ? frame.argv[index] : choices[0];
    char expected[200] = "one of:";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) {
            return i;
        }
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, " %s", choices[i]);
    }
    bad_argument(name, text, expected);
}

/* --- measuring ---------------------------------------------------------------------------------
 */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_now(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t timeval_ns(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* CPU time and events of this process and of the children it has waited for. */
static uint64_t cpu_now(void) {
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + timeval_ns(children.ru_utime) +
           timeval_ns(children.ru_stime);
}

static struct rusage usage_now(void) {
    struct rusage usage, children;
    getrusage(RUSAGE_SELF, &usage);
    getrusage(RUSAGE_CHILDREN, &children);
    usage.ru_minflt += children.ru_minflt;
    usage.ru_majflt += children.ru_majflt;
    usage.ru_nvcsw += children.ru_nvcsw;
    usage.ru_nivcsw += children.ru_nivcsw;
    return usage;
}

void bench_start(void) {
    frame.usage = usage_now();
    frame.wall = clock_ns(CLOCK_MONOTONIC);
    frame.cpu = cpu_now();
}

void bench_stop(uint64_t operations) {
    uint64_t cpu = cpu_now();
    uint64_t wall = clock_ns(CLOCK_MONOTONIC);
    struct rusage now = usage_now();
    frame.cpu = cpu - frame.cpu;
    frame.wall = wall - frame.wall;
    frame.usage.ru_minflt = now.ru_minflt - frame.usage.ru_minflt;
    frame.usage.ru_majflt = now.ru_majflt - frame.usage.ru_majflt;
    frame.usage.ru_nvcsw = now.ru_nvcsw - frame.usage.ru_nvcsw;
    frame.usage.ru_nivcsw = now.ru_nivcsw - frame.usage.ru_nivcsw;
    frame.operations = operations;
    frame.measured = true;
}

void bench_live_peak(uint64_t bytes) {
    frame.live_peak = bytes;
}

void bench_extra(const char *json) {
    frame.extra = json;
}

/* A field of /proc/self/status in KiB, read without the allocator that is measured. */
static uint64_t status_kib(const char *field) {
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    const char *line = strstr(text, field);
    return line != NULL ? strtoull(line + strlen(field), NULL, 10) : 0;
}

uint64_t bench_rss_kib(void) {
    return status_kib("VmRSS:");
}

uint64_t bench_hwm_kib(void) {
    return status_kib("VmHWM:");
}

void bench_live_end(uint64_t bytes) {
    frame.live_end = bytes;
    frame.rss_live = bench_rss_kib();
}

/* The file that malloc comes from: the proof that the preloaded library is the one that was
 * measured. */
static const char *malloc_file(void) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    return address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname
                                                                                    : "";
}

/* Tells that nothing is measured for a second: by an empty file, made without the allocator. */
static void show_resting(void) {
    const char *path = getenv("HAK_BENCH_RESTING");
    if (path == NULL || path[0] == '\0') {
        return;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        bench_fail("cannot make %s: %s", path, strerror(errno));
    }
    close(file);
}

int bench_finish(uint64_t check) {
    if (!frame.measured) {
        bench_fail("nothing was measured");
    }
    unsigned long long end = bench_rss_kib(), hwm = bench_hwm_kib(), after = 0;
    const char *settle = getenv("HAK_BENCH_SETTLE");
    bool settled = settle != NULL && strcmp(settle, "1") == 0;
    if (settled) {
        show_resting();
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        /* Whatever an allocator does late hangs on its next calls, so it gets one pair. */
        void *volatile block = malloc(64);
        free(block);
        after = bench_rss_kib();
    }
    printf("{\"bench\":\"%s\",\"ideal\":%d,\"malloc\":\"%s\",\"ops\":%llu,\"wall_ns\":%llu,\"cpu_"
           "ns\":%llu,"
           "\"check\":\"%llx\",\"live_peak\":%llu,\"hwm_kib\":%llu,\"rss_end_kib\":%llu,",
           frame.name, BENCH_IDEAL, malloc_file(), (unsigned long long)frame.operations,
           (unsigned long long)frame.wall, (unsigned long long)frame.cpu, (unsigned long long)check,
           (unsigned long long)frame.live_peak, hwm, end);
    if (settled) {
        printf("\"rss_after_kib\":%llu,", after);
    }
    if (frame.live_end != 0) {
        printf("\"live_end\":%llu,\"rss_live_kib\":%llu,", (unsigned long long)frame.live_end,
               (unsigned long long)frame.rss_live);
    }
    if (frame.extra != NULL) {
        printf("%s,", frame.extra);
    }
    printf("\"minflt\":%ld,\"majflt\":%ld,\"nvcsw\":%ld,\"nivcsw\":%ld}\n", frame.usage.ru_minflt,
           frame.usage.ru_majflt, frame.usage.ru_nvcsw, frame.usage.ru_nivcsw);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- threads -----------------------------------------------------------------------------------
 */

typedef struct meeting {
    pthread_barrier_t barrier;
    atomic_uint arrived; /* at the start and the stop of the measured section */
} meeting_t;

/* On cache lines of its own: what a thread writes here must not slow its neighbour down. */
typedef struct start {
    _Alignas(64) bench_thread_t thread;
    void (*body)(bench_thread_t *);
    pthread_t id;
} start_t;

void bench_meet(bench_thread_t *thread) {
    meeting_t *meeting = thread->meeting;
    pthread_barrier_wait(&meeting->barrier);
}

/* Who comes last reads the clocks, and only then lets the others go: no time passes in between for
 * waking up a certain thread, and nobody's tear-down is measured. */
static bool is_last(bench_thread_t *thread) {
    meeting_t *meeting = thread->meeting;
    return (atomic_fetch_add(&meeting->arrived, 1) + 1) % thread->count == 0;
}

void bench_start_together(bench_thread_t *thread) {
    if (is_last(thread)) {
        bench_start();
    }
    bench_meet(thread);
}

void bench_stop_together(bench_thread_t *thread, uint64_t operations) {
    if (is_last(thread)) {
        bench_stop(operations);
    }
    bench_meet(thread);
}

static void *run_thread(void *argument) {
    start_t *start = argument;
    bench_meet(&start->thread);
    start->body(&start->thread);
    return NULL;
}

uint64_t bench_run_threads(unsigned count, void (*body)(bench_thread_t *), void *context) {
    size_t size = count * sizeof(start_t);
    start_t *starts = bench_need(aligned_alloc(_Alignof(start_t), size), size);
    meeting_t meeting = {.arrived = 0};
    if (pthread_barrier_init(&meeting.barrier, NULL, count) != 0) {
        bench_fail("no barrier for %u threads", count);
    }
    for (unsigned i = 0; i < count; i++) {
        starts[i] = (start_t){.thread = {i, count, context, 0, &meeting}, .body = body};
        int error = pthread_create(&starts[i].id, NULL, run_thread, &starts[i]);
        if (error != 0) {
            bench_fail("cannot start thread %u: %s", i, strerror(error));
        }
    }
    uint64_t check = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(starts[i].id, NULL);
        check += starts[i].thread.check;
    }
    pthread_barrier_destroy(&meeting.barrier);
    free(starts);
    return check;
}

/* --- the ideal arm -----------------------------------------------------------------------------
 */

#if BENCH_IDEAL

_Thread_local bench_link_t *bench_ideal_bins[BENCH_IDEAL_BINS];
static _Thread_local char *carve_at, *carve_end;

__attribute__((noinline, cold)) void *bench_ideal_carve(size_t size) {
    enum { PIECE = 1 << 20 };
    size = (size + BENCH_IDEAL_STEP - 1) / BENCH_IDEAL_STEP * BENCH_IDEAL_STEP;
    size = size != 0 ? size : BENCH_IDEAL_STEP;
    if (carve_at == NULL || (size_t)(carve_end - carve_at) < size) {
        carve_at = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (carve_at == MAP_FAILED) {
            bench_out_of_memory(size);
        }
        carve_end = carve_at + PIECE;
    }
    void *block = carve_at;
    carve_at += size;
    return block;
}

#endif
