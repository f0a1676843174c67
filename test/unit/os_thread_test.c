/* SPDX-License-Identifier: MIT
 *
 * What the system tells about threads, and sleep and wake-up on a word. */
#include "unit/os.h"

#include <sys/prctl.h>

static void *ask_command(void *command) {
    prctl(PR_SET_NAME, "another");
    hak_os_command(command);
    return NULL;
}

static size_t no_comm(const char *path, char *buffer, size_t capacity) {
    (void)buffer, (void)capacity;
    assert_string_equal(path, "/proc/self/comm");
    return 0;
}

UNIT_TEST(command_is_the_first_threads_name) {
    char command[HAK_OS_COMMAND_BYTES];
    prctl(PR_SET_NAME, "fifteen letters");
    hak_os_command(command);
    assert_string_equal(command, "fifteen letters");
    for (unsigned is_told = 0; is_told < 2; is_told++) {
        hak_os_fault_files(is_told ? NULL : no_comm);
        unit_pthread_create_and_join(ask_command, command);
        assert_string_equal(command, is_told ? "fifteen letters" : "");
    }
}

static void *wake(void *word) {
    hak_store_relaxed((uint32_t *)word, 1);
    hak_os_wake_one(word);
    return NULL;
}

UNIT_TEST(wait_ends_by_another_value_a_wake_up_or_in_time) {
    static uint32_t word;
    pthread_t thread;
    hak_os_wait(&word, 1); /* not the value: no sleep */
    uint64_t before = hak_os_now_ns();
    hak_os_wait_at_most(&word, 0, 20u * 1000 * 1000);
    assert_true(hak_os_now_ns() - before >= 10u * 1000 * 1000); /* the clock's steps are coarse */
    assert_int_equal(pthread_create(&thread, NULL, wake, &word), 0);
    while (hak_load_relaxed(&word) == 0) {
        hak_os_wait(&word, 0);
    }
    pthread_join(thread, NULL);
}
