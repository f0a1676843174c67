/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os.h: descriptors that are not the program's. A file that is opened among
 * those can be closed by the program, which may close all, and open another under the same number
 * before we read and close that. While there is one thread nobody can come in between, if signals
 * wait. Else a thread of the kernel, unknown to the C library, has a table of its own for as long
 * as it takes; the caller waits for it, and lends it its thread-local storage. It is made like any
 * thread, as programs that forbid themselves system calls mostly allow that; it can neither be
 * waited for nor make a signal. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "os/lock.h"
#include "os/os.h"
#include "os/os_socket.h"
#include "os/syscall.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    APART_STACK_BYTES = 64 << 10,
    APART_ENOSYS = -38,
    APART_CLOSE_RANGE = 436,  /* older headers lack the call, which has this number everywhere, */
    APART_CLOSE_UNSHARE = 2,  /* and CLOSE_RANGE_UNSHARE */
    APART_SIGNAL_FILTER = 31, /* SIGSYS: a program may do for itself what it forbids */
    /* As the C library makes threads: a filter may ask for exactly that. */
    APART_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                  CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
};

typedef struct apart_work {
    void (*run)(void *context);
    void *context;
    bool is_done;
} apart_work_t;

/* Without a copy of the table; kernels before 5.9 can only copy it. */
static bool apart_own_table(void) {
    long result = hak_syscall(APART_CLOSE_RANGE, 0, ~0u, APART_CLOSE_UNSHARE, 0, 0, 0);
    return result == 0 ||
           (result == APART_ENOSYS && hak_syscall(SYS_unshare, CLONE_FILES, 0, 0, 0, 0, 0) == 0);
}

static void apart_main(void *context) {
    apart_work_t *work = context;
    if (apart_own_table()) {
        work->run(work->context);
        work->is_done = true;
    }
}

static void apart_call(apart_work_t *work) {
    void *stack = (void *)hak_syscall(SYS_mmap, 0, APART_STACK_BYTES, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if ((uintptr_t)stack > (uintptr_t)-4096) {
        return;
    }
    uintptr_t *top = (uintptr_t *)((char *)stack + APART_STACK_BYTES) - 2;
    top[0] = (uintptr_t)apart_main;
    top[1] = (uintptr_t)work;
    int id = 0, now;
    if (hak_syscall_clone(SYS_clone, APART_FLAGS, top, &id, hak_syscall_storage()) > 0) {
        while ((now = hak_load_acquire(&id)) != 0) { /* the kernel clears it */
            hak_syscall(SYS_futex, (long)&id, FUTEX_WAIT, now, 0, 0, 0);
        }
    }
    hak_syscall(SYS_munmap, (long)stack, APART_STACK_BYTES, 0, 0, 0, 0);
}

bool hak_os_run_apart(void (*run)(void *context), void *context) {
    apart_work_t work = {.run = run, .context = context};
    if (hak_lock_is_apart) {
        run(context);
        return true;
    }
    uint64_t all = ~(1ull << (APART_SIGNAL_FILTER - 1)), before = 0;
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    hak_lock_is_apart = true;
    if (hak_lock_is_single()) {
        run(context);
        work.is_done = true;
    } else {
        apart_call(&work);
    }
    hak_lock_is_apart = false;
    hak_os_restore_signals(before);
    return work.is_done;
}

bool hak_os_own_descriptors(void) {
    bool is_done = hak_syscall(APART_CLOSE_RANGE, 0, ~0u, APART_CLOSE_UNSHARE, 0, 0, 0) == 0;
    hak_lock_is_apart = hak_lock_is_apart || is_done;
    return is_done;
}
