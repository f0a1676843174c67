/* SPDX-License-Identifier: MIT
 *
 * fork in a program one of whose libraries (atfork_library.c) takes a mutex in its prepare handler,
 * while another thread allocates under that mutex: does fork come back, and does the child work?
 */
#include "thread/block.h"

extern pthread_mutex_t atfork_mutex;

enum { FORKS = 300, BLOCKS_A_TURN = 50, LEAST_BYTES = 70000 };

static atomic_bool is_over;

static void *allocate_under_the_mutex(void *argument) {
    (void)argument;
    uint64_t state = 7;
    while (!atomic_load(&is_over)) {
        pthread_mutex_lock(&atfork_mutex);
        for (size_t i = 0; i < BLOCKS_A_TURN; ++i) {
            family.free(family.malloc(LEAST_BYTES + expect_random(&state) % 65536));
        }
        pthread_mutex_unlock(&atfork_mutex);
    }
    return NULL;
}

static void fork_with_an_earlier_prepare_handler_comes_back(void) {
    pthread_t thread = thread_start(allocate_under_the_mutex, NULL);
    for (size_t i = 0; i < FORKS; ++i) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            void *block = family.malloc(LEAST_BYTES);
            family.free(block);
            _exit(block == NULL);
        }
        EXPECT_CHILD(child, 0);
    }
    atomic_store(&is_over, true);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(fork_with_an_earlier_prepare_handler_comes_back);
    return expect_status();
}
