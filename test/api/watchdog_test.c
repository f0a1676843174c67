/* SPDX-License-Identifier: MIT
 *
 * What the watchdog of the tests tells of a test that hangs: where each of its threads is. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "api/expect.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_mutex(void *unused) {
    pthread_mutex_lock(&mutex);
    return unused;
}

static void *sleep_long(void *unused) {
    sleep(1000);
    return unused;
}

static void *work_for_ever(void *unused) {
    for (volatile unsigned i = 0;; ++i) {
    }
    return unused;
}

static void hang(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    EXPECT_EQ(pthread_create(&thread, NULL, wait_for_mutex, NULL), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, sleep_long, NULL), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, work_for_ever, NULL), 0);
    where_watch(1);
    pthread_join(thread, NULL);
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; ++at) {
        ++count;
    }
    return count;
}

static void watchdog_hanging_test_tells_where_each_thread_is(void) {
    static char text[1 << 20];
    char lock[64];
    int status = expect_child_says(hang, text, sizeof text);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    EXPECT(strstr(text, "watchdog: the test hangs\n") != NULL);
    if (strstr(text, "(not told)") != NULL) {
        expect_skip("/proc does not tell system calls here");
    }
    snprintf(lock, sizeof lock, ": %d 0x%llx ", SYS_futex, (unsigned long long)(uintptr_t)&mutex);
    EXPECT_EQ(count_of(text, "where: thread "), 4);
    EXPECT_EQ(count_of(text, lock), 1); /* the lock that is waited for */
    EXPECT(count_of(text, ": running") >= 1);
    EXPECT(count_of(text, "nanosleep") >= 1);
    if (strstr(text, "no gdb here") == NULL && strstr(text, "ptrace:") == NULL) {
        EXPECT(strstr(text, "work_for_ever") != NULL);
        EXPECT(strstr(text, "wait_for_mutex") != NULL);
    }
}

int main(void) {
    RUN(watchdog_hanging_test_tells_where_each_thread_is);
    return expect_status();
}
