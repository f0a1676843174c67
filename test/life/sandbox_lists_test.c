/* SPDX-License-Identifier: MIT
 *
 * A process with a used heap makes children that confine themselves as known programs do: a system
 * call that is in no list ends the child. Then children to whom the kernel refuses one call of
 * memory with an error: they go on.
 * usage: sandbox_lists_test [CHILDREN [LIST]]
 */
#include <errno.h>
#include <sys/wait.h>

#include "life/library_calls.h"
#include "life/sandbox.h"

enum { KEPT = 3000, STEPS = 20000, BIG = 12, CHILDREN = 6, THREADS = 3 };

#define STREAMS SYS_read, SYS_write, SYS_close
#define SIGNALS SYS_rt_sigreturn, SYS_rt_sigprocmask
#define NAMES SYS_getpid, SYS_gettid
#define THREADS_MADE SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_membarrier
#ifndef SYS_fork /* by which musl makes processes where there is one */
#define SYS_fork SYS_clone
#endif
#define FORK SYS_fork, SYS_clone, SYS_set_robust_list, SYS_wait4
#define POLL SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait
#define SOCKETS SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_recvmsg, SYS_shutdown

/* Of a process that does nothing but allocate, and whose control group has no limit. */
static const unsigned rule[] = {CALLS_MEMORY, CALLS_CLOCK, SYS_exit_group};
/* All that the page of sandboxes names, and what a fork calls without us. */
static const unsigned page[] = {CALLS_MEMORY, CALLS_THREAD, CALLS_END, CALLS_FORK,    CALLS_LIMIT,
                                CALLS_CLOCK,  CALLS_LOCKED, FORK,      SYS_exit_group};
/* PostgreSQL's process that redoes the log for a server of pages, and what its list lacks for this
 * library: madvise, mremap, mprotect, futex, clock_gettime. */
static const unsigned redo[] = {CALLS_MEMORY, CALLS_CLOCK, SYS_exit_group, SYS_rt_sigreturn,
                                SYS_pselect6, SYS_read,    SYS_write,      SYS_getpid};
/* That process as its authors confine it: small blocks, as many as before, may do without more. */
static const unsigned redo_bare[] = {SYS_brk,        SYS_mmap,         SYS_munmap,   CALLS_CLOCK,
                                     SYS_exit_group, SYS_rt_sigreturn, SYS_pselect6, SYS_read,
                                     SYS_write,      SYS_getpid};
/* The child of OpenSSH's server before a user is known. */
static const unsigned preauth[] = {CALLS_MEMORY, CALLS_CLOCK,   STREAMS,       SIGNALS,
                                   NAMES,        SYS_getrandom, SYS_exit,      SYS_exit_group,
                                   SYS_getuid,   SYS_geteuid,   SYS_nanosleep, SYS_ppoll,
                                   SYS_pselect6, SYS_shutdown,  SYS_writev};
/* A renderer of Chromium. */
static const unsigned renderer[] = {
    CALLS_MEMORY,    CALLS_CLOCK, STREAMS,       SIGNALS,          NAMES,
    THREADS_MADE,    POLL,        SOCKETS,       SYS_rt_sigaction, SYS_exit_group,
    SYS_getrandom,   SYS_dup,     SYS_fcntl,     SYS_fstat,        SYS_fsync,
    SYS_ftruncate,   SYS_lseek,   SYS_nanosleep, SYS_pipe2,        SYS_pread64,
    SYS_pwrite64,    SYS_readv,   SYS_writev,    SYS_sched_yield,  SYS_sched_getaffinity,
    SYS_sigaltstack, SYS_sysinfo, SYS_uname,     SYS_getrusage};
static const unsigned service[] = {
#include "life/system_service.def"
};

typedef struct list {
    const char *name;
    const unsigned *calls;
    unsigned count;
    bool has_threads, has_forks;
} list_t;

#define LIST(name, has_threads, has_forks)                                                         \
    { #name, name, sizeof name / sizeof *name, has_threads, has_forks }

static const list_t lists[] = {
    LIST(rule, false, false),      LIST(page, false, true),     LIST(redo, false, false),
    LIST(preauth, false, false),   LIST(renderer, true, false), LIST(service, true, true),
    LIST(redo_bare, false, false),
};
enum { LISTS = sizeof lists / sizeof *lists };

/* Only where it is asked for, with options that keep memory. */
static bool is_bare(const list_t *list) {
    return list->calls == redo_bare;
}

/* The whole family, tolerant of NULL. */
static void *remake(void *block, size_t bytes, uint64_t draw) {
    void *fresh = NULL;
    switch (draw % 8) {
    case 0:
        fresh = family.calloc(1, bytes);
        break;
    case 1:
        fresh = family.realloc(block, bytes);
        return fresh != NULL ? fresh : block;
    case 2:
        fresh = family.memalign((size_t)16 << (draw >> 8) % 10, bytes);
        break;
    case 3:
        (void)family.posix_memalign(&fresh, 64, bytes);
        break;
    case 4:
        fresh = family.aligned_alloc(32, bytes);
        break;
    default:
        fresh = family.malloc(bytes);
    }
    family.free(block);
    return fresh;
}

static void touch(unsigned char *block, size_t bytes) {
    for (size_t at = 0; block != NULL && at < bytes; at += 4096) {
        block[at] = 1;
    }
    if (block != NULL) {
        EXPECT(family.usable_size(block) >= bytes);
    }
}

static bool has_small_only;

static void *use(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    void **kept = family.calloc(KEPT, sizeof *kept);
    for (unsigned i = 0; kept != NULL && i < STEPS; i++) {
        uint64_t draw = expect_random(&state);
        bool is_small = has_small_only || draw % 8 != 0;
        size_t bytes = 1 + (draw >> 32) % (is_small ? 600 : draw % 64 != 0 ? 20000 : 200000);
        void **at = &kept[(draw >> 16) % KEPT];
        *at = remake(*at, bytes, draw >> 8);
        touch(*at, *at != NULL && family.usable_size(*at) >= bytes ? bytes : 0);
    }
    for (unsigned i = 0; kept != NULL && i < KEPT; i++) {
        family.free(kept[i]);
    }
    family.free(kept);
    return NULL;
}

/* Large blocks, growth and what goes back. */
static void use_large(uint64_t state) {
    for (unsigned i = 0; i < BIG; i++) {
        size_t bytes = 100000 + expect_random(&state) % (4u << 20);
        unsigned char *block = i % 2 != 0 ? family.malloc(bytes) : family.calloc(1, bytes);
        touch(block, bytes / 2);
        unsigned char *grown = family.realloc(block, 2 * bytes);
        family.free(grown != NULL ? grown : block);
    }
    unsigned char *block = NULL;
    for (size_t bytes = 1000; bytes < 20u << 20; bytes += bytes / 2) {
        unsigned char *grown = family.realloc(block, bytes);
        block = grown != NULL ? grown : block;
        touch(grown, bytes);
    }
    family.free(block);
    family.trim(0);
}

static void work(unsigned seed, const list_t *list) {
    has_small_only = is_bare(list);
    use((void *)(uintptr_t)seed);
    if (has_small_only) {
        return;
    }
    use_large(seed + 1);
    if (list->has_threads) {
        pthread_t threads[THREADS];
        threads_start(threads, THREADS, use, seed);
        threads_join(threads, THREADS);
    }
    if (list->has_forks) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            use((void *)(uintptr_t)seed);
            _exit(0);
        }
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

/* The status of a child that confines itself: to the list, or, with an error, of one call. */
static int confined(unsigned seed, const list_t *list, unsigned listed, unsigned other) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (seed % 2 == 0) { /* the first block of the child, or the next */
            family.free(family.malloc(99));
        }
        if (!sandbox_enter(list->calls, list->count, listed, other, 0)) {
            _exit(77);
        }
        work(seed, list);
        _exit(expect_status());
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

static unsigned children = CHILDREN;
static const char *chosen; /* NULL: all lists */

static void confined_children_make_no_call_that_is_in_no_list(void) {
    for (unsigned i = 0; i < LISTS; i++) {
        bool is_chosen = chosen == NULL ? !is_bare(&lists[i]) : strcmp(chosen, lists[i].name) == 0;
        for (unsigned seed = 0; seed < children && is_chosen; seed++) {
            expect_watchdog(); /* for each child */
            int status = confined(seed, &lists[i], SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
            if (status != 0) {
                expect_say("list %s, child %u\n", lists[i].name, seed);
                (void)confined(seed, &lists[i], SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP); /* names it */
            }
            EXPECT_EQ(status, 0);
        }
    }
}

/* Threads would wait by futex. */
static void calls_that_are_refused_with_any_error_end_no_child(void) {
    static const unsigned calls[] = {CALLS_MEMORY};
    static const int errors[] = {EPERM, ENOSYS, ENOMEM, EINVAL, EACCES, EAGAIN, EFAULT};
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (unsigned k = 0; k < sizeof errors / sizeof *errors; k++) {
            list_t one = {"one", &calls[i], 1, false, false};
            int status =
                confined(k, &one, SECCOMP_RET_ERRNO | (unsigned)errors[k], SECCOMP_RET_ALLOW);
            if (status != 0) {
                expect_say("call %u, error %d\n", calls[i], errors[k]);
            }
            EXPECT_EQ(status, 0);
        }
    }
}

int main(int argc, char **argv) {
    children = (unsigned)expect_arg(argc, argv, 1, CHILDREN);
    chosen = argc > 2 ? argv[2] : NULL;
    family_load();
    expect_watchdog();
    use(NULL);
    list_t nothing = {"nothing", NULL, 0, false, false};
    if (confined(1, &nothing, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW) != 0) {
        expect_skip("this kernel has no seccomp filters");
    }
    RUN(confined_children_make_no_call_that_is_in_no_list);
    if (chosen == NULL) {
        RUN(calls_that_are_refused_with_any_error_end_no_child);
    }
    return expect_status();
}
