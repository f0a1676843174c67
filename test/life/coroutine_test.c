/* SPDX-License-Identifier: MIT
 *
 * A coroutine allocates by code without unwind tables, whose frame pointer is any number, as that
 * of compilers at run time is: one into the inaccessible pages behind the coroutine's stack, or
 * into a hole behind these. The walk of the stack may read neither, whatever a filter answers to
 * the question where memory is.
 */
#include <ucontext.h>

#include "life/sandbox.h"

enum { STACK_BYTES = 64 << 10, CLOSED_BYTES = 64 << 10, HOLE_BYTES = 64 << 10, STEPS = 3000 };

/* void *allocate_by_frame(size_t bytes, void *malloc, void *frame) */
static const unsigned char allocate_code[] = {
#if defined(__x86_64__)
    0x55,             /* push %rbp */
    0x48, 0x89, 0xd5, /* mov %rdx, %rbp */
    0xff, 0xd6,       /* call *%rsi */
    0x90, 0x90,       /* nop; nop */
    0x5d,             /* pop %rbp */
    0xc3,             /* ret */
#elif defined(__aarch64__)
    0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
    0xfd, 0x03, 0x02, 0xaa, /* mov x29, x2 */
    0x20, 0x00, 0x3f, 0xd6, /* blr x1 */
    0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
    0xc0, 0x03, 0x5f, 0xd6, /* ret */
#endif
};

static void *(*allocate_by_frame)(size_t, void *(*)(size_t), void *);
static char *stack;
static ucontext_t starter, coroutine;

static void run(void) {
    for (unsigned i = 0; i < STEPS; i++) {
        size_t offset = STACK_BYTES + (i % 2 == 0 ? 0 : CLOSED_BYTES) + i % 64 * 16;
        void *block = allocate_by_frame(100, family.malloc, stack + offset);
        EXPECT(block != NULL);
        family.free(block);
    }
    swapcontext(&coroutine, &starter);
}

static bool make_code(void) {
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(code != MAP_FAILED);
    memcpy(code, allocate_code, sizeof allocate_code);
    __builtin___clear_cache(code, (char *)code + sizeof allocate_code);
    *(void **)&allocate_by_frame = code;
    return mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0;
}

static void run_coroutine(void) {
    stack = mmap(NULL, STACK_BYTES + CLOSED_BYTES + HOLE_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED);
    EXPECT_EQ(mprotect(stack + STACK_BYTES, CLOSED_BYTES, PROT_NONE), 0);
    EXPECT_EQ(munmap(stack + STACK_BYTES + CLOSED_BYTES, HOLE_BYTES), 0);
    EXPECT_EQ(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = &starter;
    makecontext(&coroutine, run, 0);
    EXPECT_EQ(swapcontext(&starter, &coroutine), 0);
}

/* The status of a child to whom mremap answers so. */
static int child_status(unsigned answer) {
    static const unsigned call = SYS_mremap;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (!sandbox_enter(&call, 1, answer, SECCOMP_RET_ALLOW, 0)) {
            _exit(EXPECT_SKIP_STATUS);
        }
        run_coroutine();
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void walk_from_a_coroutine_reads_no_hole(void) {
    run_coroutine();
}

static void walk_under_a_filter_reads_no_hole(void) {
    static const int errors[] = {EPERM, ENOSYS, EINVAL, ENOMEM, EFAULT, EACCES};
    if (WEXITSTATUS(child_status(SECCOMP_RET_ALLOW)) == EXPECT_SKIP_STATUS) {
        expect_skip("this kernel has no seccomp filters");
    }
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        EXPECT_EQ(child_status(SECCOMP_RET_ERRNO | (unsigned)errors[i]), 0);
    }
}

int main(void) {
    family_load();
    expect_watchdog();
    if (!make_code()) {
        expect_skip("no memory may become code here");
    }
    RUN(walk_from_a_coroutine_reads_no_hole);
    RUN(walk_under_a_filter_reads_no_hole);
    return expect_status();
}
