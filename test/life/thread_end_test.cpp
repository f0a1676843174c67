// SPDX-License-Identifier: MIT
//
// The end of a thread: do pthread key destructors (all four rounds), C++ thread_local destructors
// and whatever runs after the allocator's own clean-up still allocate and free, without growth?
#include <pthread.h>

#include <string>
#include <vector>

#include "api/expect.h"

namespace {

enum { KEY_COUNT = 40, THREAD_COUNT = 400, ROUND_COUNT = 4 };

pthread_key_t keys[KEY_COUNT];
pthread_key_t last_key;
int last_rounds;
void *handed_over[64];

void work() {
    void *blocks[50];
    for (size_t i = 0; i < 50; ++i) {
        blocks[i] = malloc(i * 97 + 1);
        EXPECT(blocks[i] != nullptr);
        memset(blocks[i], static_cast<int>(i), i * 97 + 1);
    }
    for (size_t i = 0; i < 50; ++i) {
        EXPECT_EQ(static_cast<unsigned char *>(blocks[i])[i * 97], i);
        free(blocks[i]);
    }
}

// Frees its block and makes a new one until the last round, as libraries with lazy state do.
struct state {
    pthread_key_t key;
    int round;
    std::string text;
};

void destroy_state(void *argument) {
    state *old_state = static_cast<state *>(argument);
    work();
    if (old_state->round < ROUND_COUNT - 1) {
        state *next = new state{old_state->key, old_state->round + 1, old_state->text + "more"};
        EXPECT_EQ(pthread_setspecific(next->key, next), 0);
    }
    delete old_state;
}

// Puts itself back for ever: still called in the last round, after every other destructor.
void destroy_last(void *argument) {
    work();
    ++last_rounds;
    free(handed_over[0]);
    handed_over[0] = malloc(5000);
    pthread_setspecific(last_key, argument);
}

struct local_state {
    std::vector<std::string> words;
    ~local_state() {
        EXPECT_EQ(words.size(), 100);
        work();
    }
};

thread_local local_state own;

void *live(void *argument) {
    own.words.assign(100, "a string long enough to be on the heap, not inside");
    for (size_t i = 0; i < KEY_COUNT; ++i) {
        state *mine = new state{keys[i], 0, std::string(100, 'k')};
        EXPECT_EQ(pthread_setspecific(keys[i], mine), 0);
    }
    EXPECT_EQ(pthread_setspecific(last_key, handed_over), 0);
    work();
    return argument;
}

void run_threads(size_t count) {
    for (size_t i = 0; i < count; ++i) {
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, nullptr, live, nullptr), 0);
        EXPECT_EQ(pthread_join(thread, nullptr), 0);
    }
}

void thread_end_destructors_allocate_in_all_rounds() {
    run_threads(THREAD_COUNT / 10);
    EXPECT_EQ(last_rounds, THREAD_COUNT / 10 * ROUND_COUNT);
    size_t before = expect_rss_bytes();
    run_threads(THREAD_COUNT);
    expect_rss_at_most(before, 8 << 20);
}

void *exit_at_once(void *argument) {
    own.words.assign(100, "a string long enough to be on the heap, not inside");
    work();
    pthread_exit(argument);
}

void *wait_for_cancel(void *) {
    own.words.assign(100, "a string long enough to be on the heap, not inside");
    work();
    for (;;) {
        usleep(1000);
    }
}

void thread_end_by_exit_detach_and_cancel_works() {
    for (size_t i = 0; i < 100; ++i) {
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, nullptr, exit_at_once, nullptr), 0);
        if (i % 2 == 0) {
            EXPECT_EQ(pthread_detach(thread), 0);
        } else {
            EXPECT_EQ(pthread_join(thread, nullptr), 0);
        }
        EXPECT_EQ(pthread_create(&thread, nullptr, wait_for_cancel, nullptr), 0);
        usleep(1000);
        EXPECT_EQ(pthread_cancel(thread), 0);
        EXPECT_EQ(pthread_join(thread, nullptr), 0);
    }
}

} // namespace

int main() {
    for (size_t i = 0; i < KEY_COUNT; ++i) {
        EXPECT_EQ(pthread_key_create(&keys[i], destroy_state), 0);
    }
    EXPECT_EQ(pthread_key_create(&last_key, destroy_last), 0);
    expect_watchdog();
    RUN(thread_end_destructors_allocate_in_all_rounds);
    RUN(thread_end_by_exit_detach_and_cancel_works);
    return expect_status();
}
