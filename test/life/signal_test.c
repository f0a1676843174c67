/* SPDX-License-Identifier: MIT
 *
 * A storm of timer signals whose handlers do not allocate: do blocks keep their contents, do calls
 * that end with EINTR do no harm, may a handler even leave malloc's caller by siglongjmp between
 * two calls? Argument: signals a phase (default 3 000).
 */
#include <setjmp.h>
#include <time.h>

#include "thread/block.h"

enum { STORM_MICROSECONDS = 150, SIGNALS_A_JUMP = 10 };

static size_t phase_signals;
static atomic_size_t signal_count;
static sigjmp_buf jump_target;
static volatile sig_atomic_t may_jump;

static void count_signal(int signal_number) {
    (void)signal_number;
    atomic_fetch_add_explicit(&signal_count, 1, memory_order_relaxed);
}

static void count_and_jump(int signal_number) {
    count_signal(signal_number);
    if (may_jump) {
        may_jump = 0;
        siglongjmp(jump_target, 1);
    }
}

static timer_t storm_timer;

/* A timer of its own beside alarm(), which the watchdog has. Period 0 ends the storm. */
static void storm(void (*handler)(int), long microseconds, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    struct timespec period = {0, microseconds * 1000};
    struct itimerspec setting = {.it_interval = period, .it_value = period};
    atomic_store(&signal_count, microseconds == 0 ? SIZE_MAX : 0);
    EXPECT_EQ(timer_settime(storm_timer, 0, &setting, NULL), 0);
}

static bool is_phase_over(void) {
    return atomic_load_explicit(&signal_count, memory_order_relaxed) >= phase_signals;
}

static void *allocate_for_a_phase(void *argument) {
    enum { KEPT_COUNT = 300 };
    uint64_t state = (uintptr_t)argument + 1;
    block_t *blocks[KEPT_COUNT] = {NULL};
    while (!is_phase_over()) {
        blocks_churn(blocks, KEPT_COUNT, 100, &state);
    }
    blocks_unmake(blocks, KEPT_COUNT, &state);
    return NULL;
}

static void signal_storm_over_allocating_threads_harms_nothing(void) {
    pthread_t threads[3];
    storm(count_signal, STORM_MICROSECONDS, 0);
    threads_start(threads, 3, allocate_for_a_phase, 0);
    allocate_for_a_phase((void *)(uintptr_t)9);
    threads_join(threads, 3);
    storm(SIG_IGN, 0, 0);
}

static void signal_during_memory_pressure_is_no_failure(void) {
    storm(count_signal, STORM_MICROSECONDS, 0); /* without SA_RESTART: kernel calls see EINTR */
    while (!is_phase_over()) {
        unsigned char *large = family.malloc(24 << 20);
        EXPECT(large != NULL);
        memset(large, 1, 1 << 20);
        large = family.realloc(large, 40 << 20);
        EXPECT(large != NULL);
        EXPECT_EQ(large[(1 << 20) - 1], 1);
        family.free(large);
        family.trim(0);
    }
    storm(SIG_IGN, 0, 0);
}

static void signal_handler_that_jumps_between_calls_harms_nothing(void) {
    block_t *volatile block = NULL;
    uint64_t state = 4;
    volatile size_t jump_count = 0;
    storm(count_and_jump, 1000, SA_NODEFER);
    while (jump_count < phase_signals / SIGNALS_A_JUMP) {
        block = block_make(&state);
        if (sigsetjmp(jump_target, 1) == 0) {
            may_jump = 1;
            for (size_t spin = 0; spin < 20000 && may_jump; ++spin) {
                block_check(block);
            }
            may_jump = 0;
        } else {
            ++jump_count;
        }
        block_unmake(block, &state);
    }
    storm(SIG_IGN, 0, 0);
}

int main(int argc, char **argv) {
    phase_signals = expect_arg(argc, argv, 1, 3000);
    family_load();
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    if (timer_create(CLOCK_MONOTONIC, &event, &storm_timer) != 0) {
        expect_skip("no timers here");
    }
    expect_watchdog();
    RUN(signal_storm_over_allocating_threads_harms_nothing);
    RUN(signal_during_memory_pressure_is_no_failure);
    RUN(signal_handler_that_jumps_between_calls_harms_nothing);
    return expect_status();
}
