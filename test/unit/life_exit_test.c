/* SPDX-License-Identifier: MIT
 *
 * The end of the process, which looks for errors in what is free: signal handlers may allocate
 * meanwhile. Each end is that of a child. */
#include "base/bits.h"
#include "front/fast.h"
#include "os/lock.h"
#include "os/os.h"
#include "unit/unit.h"

#include <sys/mman.h>

enum { END_BLOCKS = 100000, END_BYTES = 64, END_FEW = 8, END_LOCKED_OUT = 3 };

static void *end_block[END_BLOCKS];

/* The status with which a child ends that does this, and then exits. */
static int end_of(void (*prepare)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prepare();
        exit(0);
    }
    return unit_wait(child);
}

/* The first slab last: it is none that is allocated from. */
static void *end_free_all(void *unused) {
    for (unsigned i = END_BLOCKS; i-- > 0;) {
        hak_free(end_block[i]);
    }
    return unused;
}

static pthread_barrier_t end_is_held;

/* Until the process ends. Somebody who waits for the lock would do so inside of a section. */
static void *end_hold(void *rank) {
    hak_lock_rank_t held = (hak_lock_rank_t)(uintptr_t)rank;
    hak_lock_acquire(held);
    pthread_barrier_wait(&end_is_held);
    while (hak_load_relaxed(&hak_locks[held].state) != 2) {
        sched_yield();
    }
    _exit(END_LOCKED_OUT);
}

/* Another thread freed all blocks of many slabs, which a merge would retire. */
static void end_leave_messages(void) {
    UNIT_TAKE_ALL(end_block, END_BLOCKS, hak_malloc(END_BYTES));
    hak_owner_t *home = hak_tcache_self(hak_pagemap_base())->home;
    unit_pthread_create_and_join(end_free_all, NULL);
    if (!hak_remote_is_pending(home)) {
        _exit(1);
    }
}

static void end_hold_spans(void) {
    end_leave_messages();
    pthread_barrier_init(&end_is_held, NULL, 2);
    (void)unit_pthread_create(end_hold, (void *)HAK_LOCK_SPAN);
    pthread_barrier_wait(&end_is_held);
}

/* A handler that allocates would wait for its own thread, if that held such a lock. */
UNIT_TEST(exit_takes_no_lock_that_a_signal_handler_needs) {
    if (unit_is_emulated()) {
        skip();
    }
    assert_int_equal(end_of(end_hold_spans), 0);
}

static char *end_hidden; /* the OS page of a free block */
static unsigned *end_faults;

/* A signal that comes while the block is read. */
static void end_allocate(int signal) {
    (void)signal;
    mprotect(end_hidden, hak_os_page_bytes(), PROT_READ | PROT_WRITE);
    for (unsigned i = 0; i < END_FEW; i++) {
        memset(hak_malloc(END_BYTES), 1, END_BYTES);
    }
    hak_free(hak_malloc(END_BLOCKS));
    ++*end_faults;
}

static void end_hide(void) {
    struct sigaction action = {.sa_handler = end_allocate};
    for (unsigned i = 0; i < END_FEW; i++) {
        end_block[i] = hak_malloc(END_BYTES);
    }
    for (unsigned i = 0; i < END_FEW; i++) {
        hak_free(end_block[i]);
    }
    sigaction(SIGSEGV, &action, NULL);
    end_hidden = (char *)hak_align_down((uintptr_t)end_block[END_FEW - 1], hak_os_page_bytes());
    mprotect(end_hidden, hak_os_page_bytes(), PROT_NONE);
}

/* It gets none of the blocks in the lists that are read, else these would look overwritten. */
UNIT_TEST(exit_reads_lists_that_a_signal_handler_leaves_alone) {
    if (unit_is_emulated()) {
        skip();
    }
    end_faults =
        mmap(NULL, sizeof *end_faults, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(end_of(end_hide), 0);
    assert_int_equal(*end_faults, 1);
}
