/* SPDX-License-Identifier: MIT
 *
 * User errors of a thread with what another one allocated: the slow path, which looks. */
#include "crimes.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static void *free_it_later(void *address) {
    free(hide(malloc(1)));
    free(address);
    return NULL;
}

/* A thread that has its own cache already. */
static void free_in_old_thread(void *address) {
    in_thread(free_it_later, address);
}

CRIME(free_inside_small_remote) {
    free_in_thread((char *)hide(malloc(100)) + 16);
}

CRIME(free_inside_medium_remote) {
    free_in_thread((char *)hide(malloc(20000)) + 4096);
}

/* A block that was never handed out, in a slab that exists. */
CRIME(free_of_uncarved_remote) {
    free_in_thread((char *)hide(malloc(1024)) + 40 * 1024);
}

CRIME(free_inside_small_old_remote) {
    free_in_old_thread((char *)hide(malloc(100)) + 16);
}

CRIME(free_inside_medium_old_remote) {
    free_in_old_thread((char *)hide(malloc(20000)) + 4096);
}

/* 20 480 bytes: slabs of several units, of which the second is not the one the slab's record is of.
 */
CRIME(free_inside_second_unit_old_remote) {
    char *block = hide(malloc(20000));
    for (int i = 0; i < 3; i++) {
        block = hide(malloc(20000));
    }
    free_in_old_thread(block + 4096);
}

CRIME(free_of_uncarved_old_remote) {
    free_in_old_thread((char *)hide(malloc(1024)) + 40 * 1024);
}

CRIME(free_of_tail_waste_old_remote) {
    free_in_old_thread((char *)((uintptr_t)hide(malloc(48)) & ~(uintptr_t)0xffff) + 65520);
}

enum { RECYCLED = 8, RECYCLED_BYTES = 1016, RECYCLED_FIRST = 44, RECYCLED_ALL = 72 };

static char *recycled[RECYCLED_ALL];
static pthread_barrier_t recycled_turn;

static void *free_all_and_some_again(void *unused) {
    (void)unused;
    for (int i = 0; i < RECYCLED_ALL; i++) {
        free(recycled[i]);
    }
    malloc_trim(0);
    pthread_barrier_wait(&recycled_turn); /* their places are those of a young slab now */
    pthread_barrier_wait(&recycled_turn);
    for (int i = RECYCLED_FIRST; i < RECYCLED_FIRST + RECYCLED; i++) {
        free(hide(recycled[i]));
    }
    for (int i = 0; i < RECYCLED; i++) {
        hide(malloc(RECYCLED_BYTES));
    }
    return NULL;
}

/* Blocks that are not there yet must not serve the thread that freed them twice. */
CRIME(free_again_of_uncarved_remote) {
    pthread_t thread;
    for (int i = 0; i < RECYCLED_ALL; i++) {
        recycled[i] = hide(malloc(RECYCLED_BYTES));
    }
    pthread_barrier_init(&recycled_turn, NULL, 2);
    pthread_create(&thread, NULL, free_all_and_some_again, NULL);
    pthread_barrier_wait(&recycled_turn);
    hide(malloc(RECYCLED_BYTES));
    pthread_barrier_wait(&recycled_turn);
    pthread_join(thread, NULL);
}

static void *free_one_twice(void *unused) {
    void *block[10];
    for (unsigned i = 0; i < 10; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < 10; i++) {
        free(block[i]);
    }
    free(block[5]);
    return unused;
}

/* Its last frees: noticed when it ends, as its bins are flushed. */
CRIME(double_free_before_the_end_of_a_thread) {
    in_thread(free_one_twice, NULL);
}

enum { MERGED_BLOCKS = 600, MERGED_BYTES = 16000 };

static void free_several(void *argument) {
    void **block = argument;
    free(hide(malloc(1))); /* it has a cache of its own */
    for (; *block != NULL; block++) {
        free(hide(*block));
        *block = NULL;
    }
}

/* Each of two threads that go on has flushed the block to its owner, one of them as a remote free;
 * nobody has merged the two when the process ends. */
CRIME(double_free_merged_at_exit) {
    static void *block[MERGED_BLOCKS + 1];
    for (int i = 0; i < MERGED_BLOCKS; i++) {
        block[i] = malloc(MERGED_BYTES);
    }
    block[MERGED_BLOCKS / 2] = NULL;
    void *twice = block[0];
    free(hide(twice));
    start_other();
    by_other(free_several, block);
    free_several(block + MERGED_BLOCKS / 2 + 1);
}
