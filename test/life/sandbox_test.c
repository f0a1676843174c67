/* SPDX-License-Identifier: MIT
 *
 * A program that locks itself in before its first allocation, under cgroup:0: memory and threads
 * are allowed, files are not. Any other system call is named and fails the test. With guard_rate:1,
 * too: these are all the calls that watched blocks make.
 */
#include "life/sandbox.h"

enum { THREADS = 3, KEPT = 3000, STEPS = 60000 };

/* Of memory and of threads. */
static const unsigned allowed[] = {
    SYS_mmap,       SYS_munmap, SYS_mremap,          SYS_mprotect,     SYS_madvise,
    SYS_brk,        SYS_futex,  SYS_rt_sigprocmask,  SYS_rt_sigaction, /* of the C library's first
                                                                          pthread_create, like the
                                                                          next */
    SYS_clone,      SYS_clone3, SYS_set_robust_list, SYS_rseq,         SYS_exit,
    SYS_exit_group, SYS_write,  SYS_gettid,
#if !defined(__GLIBC__)
    SYS_membarrier, /* of musl's pthread_create */
#endif
};

static block_t *kept[THREADS + 1][KEPT];

static void *use(void *argument) {
    block_t **blocks = kept[(uintptr_t)argument];
    uint64_t state = (uintptr_t)argument + 1;
    blocks_churn(blocks, KEPT, STEPS, &state);
    blocks_unmake(blocks, KEPT, &state);
    return NULL;
}

static void sandbox_without_files_allows_what_one_thread_does(void) {
    use(NULL);
    family.trim(0);
}

static void sandbox_without_files_allows_blocks_that_grow(void) {
    unsigned char *block = NULL;
    for (size_t bytes = 1000; bytes < 100u << 20; bytes += bytes / 2) {
        block = family.realloc(block, bytes);
        EXPECT(block != NULL);
        block[bytes - 1] = 1;
    }
    family.free(block);
}

static void sandbox_without_files_allows_threads(void) {
    pthread_t threads[THREADS];
    threads_start(threads, THREADS, use, 1);
    threads_join(threads, THREADS);
    family.trim(0);
}

int main(void) {
    family_load();
    expect_watchdog();
    enum { COUNT = sizeof allowed / sizeof *allowed };
    if (!sandbox_enter(allowed, COUNT, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP, 0)) {
        expect_skip("this kernel has no seccomp filters");
    }
    RUN(sandbox_without_files_allows_what_one_thread_does);
    RUN(sandbox_without_files_allows_blocks_that_grow);
    RUN(sandbox_without_files_allows_threads);
    _exit(expect_status());
}
