/* SPDX-License-Identifier: MIT
 *
 * Sleep and wake-up on a word. */
#include "unit/os.h"

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
    hak_os_sleep(20u * 1000 * 1000);
    assert_true(hak_os_now_ns() - before >= 10u * 1000 * 1000); /* the clock's steps are coarse */
    assert_int_equal(pthread_create(&thread, NULL, wake, &word), 0);
    while (hak_load_relaxed(&word) == 0) {
        hak_os_wait(&word, 0);
    }
    pthread_join(thread, NULL);
}
