/* SPDX-License-Identifier: MIT
 *
 * Files are read beside other threads without a number of the program's table of descriptors, which
 * may be full, and may be closed and filled at any time; nothing of how that is done is left. */
#include "os/os.h"
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READS = 3000 };

static const char path[] = "/proc/self/cmdline";

static atomic_bool is_over;
static atomic_uint readers_done;
static int first_free; /* number of the descriptor that would be opened next */

static int find_first_free(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

static void *wait_for_the_end(void *unused) {
    while (!atomic_load(&is_over)) {
        usleep(1000);
    }
    return unused;
}

static void *read_often(void *failed) {
    char text[64];
    for (unsigned i = 0; i < READS; i++) {
        *(unsigned *)failed += hak_os_read_file(path, text, sizeof text) == 0;
    }
    atomic_fetch_add(&readers_done, 1);
    return NULL;
}

static void count_line(char *line, void *lines) {
    (void)line;
    ++*(unsigned *)lines;
}

static void run_beside_a_thread(void (*test)(void)) {
    pthread_t thread;
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
    test();
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

static void read_with_no_number_left(void) {
    char text[256];
    unsigned lines = 0;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)find_first_free(), .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(open("/dev/null", O_RDONLY), -1);
    size_t length = hak_os_read_file(path, text, sizeof text);
    bool is_read = hak_os_read_lines("/proc/self/status", text, sizeof text, count_line, &lines);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(length > 0);
    assert_true(is_read && lines > 10);
}

static void file_beside_threads_is_read_without_a_descriptor_of_the_program(void **state) {
    (void)state;
    run_beside_a_thread(read_with_no_number_left);
}

/* Each open one that the program did not make could be closed by it, or be in its way. */
static void file_beside_threads_takes_no_number_of_the_program(void **state) {
    (void)state;
    pthread_t reader[2];
    unsigned failed[2] = {0}, seen = 0;
    first_free = find_first_free();
    atomic_store(&readers_done, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&reader[i], NULL, read_often, &failed[i]), 0);
    }
    while (atomic_load(&readers_done) < 2) {
        seen += fcntl(first_free, F_GETFD) >= 0;
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(reader[i], NULL);
        assert_int_equal(failed[i], 0);
    }
    assert_int_equal(seen, 0);
}

static void read_and_look_for_traces(void) {
    char text[64];
    sigset_t before, after;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    errno = 1234;
    assert_true(hak_os_read_file(path, text, sizeof text) > 0);
    assert_int_equal(errno, 1234);
    assert_int_equal(hak_os_read_file("/nowhere/at/all", text, sizeof text), 0);
    assert_int_equal(errno, 1234);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    assert_memory_equal(&before, &after, sizeof(uint64_t));    /* the kernel has 64 */
    assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* there is no child */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(sigpending(&after), 0);
    assert_false(sigismember(&after, SIGCHLD));
}

static void file_beside_threads_is_read_without_a_trace(void **state) {
    (void)state;
    run_beside_a_thread(read_and_look_for_traces);
}

static long thread_of(void) {
    return syscall(SYS_gettid);
}

static void note_thread(void *thread) {
    long outer = thread_of(), inner = 0;
    char text[64];
    if (hak_os_read_file(path, text, sizeof text) > 0) {
        inner = thread_of();
    }
    *(long *)thread = outer == inner ? outer : -1;
}

static void run_and_compare_threads(void) {
    long thread = 0;
    assert_true(hak_os_run_apart(note_thread, &thread));
    assert_true(thread > 0 && thread != thread_of());
}

/* One thread serves all reads of one call; a process with one thread needs none. */
static void run_apart_takes_one_thread_or_none(void **state) {
    (void)state;
    long thread = 0;
    assert_true(hak_os_run_apart(note_thread, &thread));
    assert_int_equal(thread, thread_of());
    run_beside_a_thread(run_and_compare_threads);
}

int main(void) {
    char text[64];
    if (unit_is_emulated() || hak_os_read_file(path, text, sizeof text) == 0) {
        printf("skip: no files of the kernel here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_apart_takes_one_thread_or_none), /* first: there is one thread */
        cmocka_unit_test(file_beside_threads_is_read_without_a_descriptor_of_the_program),
        cmocka_unit_test(file_beside_threads_takes_no_number_of_the_program),
        cmocka_unit_test(file_beside_threads_is_read_without_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
