/* SPDX-License-Identifier: MIT
 *
 * Files that are kept open (KEPT-1): opened while there is one thread, read in any as long as the
 * number is ours; what the program closes, or has there by then, is neither read nor closed. */
#include "double/os_fault.h"
#include "os/os.h"
#include "os/os_kept.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5000, READS = 4, LEAST = 200 };

static char ours_path[] = "/tmp/hak_kept_ours_XXXXXX", other_path[] = "/tmp/hak_kept_prog_XXXXXX";
static hak_os_kept_t kept;
static atomic_bool is_over;

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int begin(void **state) {
    uint64_t signals;
    (void)state;
    put(ours_path, "ours");
    put(other_path, "other");
    bool is_alone = hak_os_alone_begin(&signals);
    bool is_open = is_alone && hak_os_kept_open(&kept, ours_path);
    hak_os_alone_end(signals);
    atomic_store(&is_over, false);
    return is_open ? 0 : 1;
}

static int end(void **state) {
    (void)state;
    close(kept.number);
    return 0;
}

static bool reads(const char *text) {
    char buffer[16] = "";
    size_t length = hak_os_kept_read(&kept, buffer, sizeof buffer);
    return length == strlen(text) && memcmp(buffer, text, length) == 0;
}

static void kept_file_is_read_as_it_is_and_leaves_low_numbers(void **state) {
    (void)state;
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(low >= 0 && low < LEAST);
    close(low);
    assert_true(kept.number >= LEAST);
    assert_int_equal(fcntl(kept.number, F_GETFD), FD_CLOEXEC);
    assert_true(reads("ours"));
    put(ours_path, "ours anew");
    assert_true(reads("ours anew"));
}

static void small_table_of_descriptors_is_the_program_s_alone(void **state) {
    (void)state;
    struct rlimit before, small;
    hak_os_kept_t more;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    small = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    bool is_open = hak_os_kept_open(&more, ours_path);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(is_open);
}

static void number_the_program_closed_or_was_given_is_left_alone(void **state) {
    (void)state;
    int other = open(other_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(close(kept.number), 0);
    assert_true(reads(""));
    assert_false(hak_os_kept_is_open(&kept));
    assert_int_equal(dup2(other, kept.number), kept.number);
    assert_true(reads(""));
    assert_int_equal(lseek(other, 0, SEEK_CUR), 0);
    assert_int_equal(close(kept.number), 0); /* it was still open */
    close(other);
}

static atomic_bool is_reading; /* a round is under way */

static void *read_each_round(void *wrong) {
    char text[16];
    while (!atomic_load(&is_over)) {
        for (unsigned i = 0; i < READS && atomic_load(&is_reading); i++) {
            size_t length = hak_os_kept_read(&kept, text, sizeof text);
            *(unsigned *)wrong += length != 0 && (length != 4 || memcmp(text, "ours", 4) != 0);
        }
        atomic_store(&is_reading, false);
    }
    return NULL;
}

/* As a program that closes all descriptors does, and opens its own; in each round the file is ours
 * at first, and never again. */
static void program_that_takes_the_number_loses_no_file(void **state) {
    (void)state;
    pthread_t reader;
    unsigned wrong = 0, lost = 0;
    int ours = dup(kept.number), other = open(other_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pthread_create(&reader, NULL, read_each_round, &wrong), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        lost += dup2(ours, kept.number) != kept.number;
        atomic_store(&is_reading, true);
        lost += close(kept.number) != 0;
        lost += dup2(other, kept.number) != kept.number;
        lost += lseek(kept.number, 0, SEEK_CUR) != 0;
        lost += close(kept.number) != 0;
        while (atomic_load(&is_reading)) {
            sched_yield();
        }
    }
    atomic_store(&is_over, true);
    pthread_join(reader, NULL);
    close(ours);
    close(other);
    assert_int_equal(wrong, 0);
    assert_int_equal(lost, 0);
}

/* --- other threads ---------------------------------------------------------------------------- */

static void *wait_until_over(void *unused) {
    while (!atomic_load(&is_over)) {
        usleep(1000);
    }
    return unused;
}

static void report_call(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    _exit(info->si_syscall & 0x7f);
}

/* What opens, moves or closes files, or makes threads, is named by the status. */
static bool forbid_files(void) {
    static const unsigned calls[] = {SYS_openat,
                                     SYS_close,
                                     SYS_clone,
                                     435 /* clone3 */,
                                     SYS_fcntl,
                                     SYS_unshare,
                                     436 /* close_range */,
                                     SYS_mmap};
    struct sigaction action = {.sa_sigaction = report_call, .sa_flags = SA_SIGINFO};
    struct sock_filter code[2 * UNIT_COUNT(calls) + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < UNIT_COUNT(calls); i++) {
        code[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        code[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    code[2 * UNIT_COUNT(calls) + 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = UNIT_COUNT(code), .filter = code};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int look_beside_a_thread(void) {
    pthread_t thread;
    hak_os_memory_t memory;
    if (pthread_create(&thread, NULL, wait_until_over, NULL) != 0 || !forbid_files()) {
        return 0;
    }
    bool is_read = reads("ours");
    (void)hak_os_memory_limit(&memory); /* none was found: it would open files */
    (void)hak_os_cpu_quota();
    return is_read ? 0 : 127;
}

static void looks_beside_threads_open_close_and_make_nothing(void **state) {
    (void)state;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(look_beside_a_thread());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    UNIT_EXPECT(status == 0, "status %x", (unsigned)status);
}

/* --- the files of control groups -------------------------------------------------------------- */

typedef struct served_file {
    const char *path, *text;
} served_file_t;

static const served_file_t *served; /* up to one without a path; all others do not exist */

static size_t serve(const char *path, char *buffer, size_t capacity) {
    for (const served_file_t *file = served; file->path != NULL; file++) {
        if (strcmp(file->path, path) == 0) {
            size_t length = strlen(file->text);
            memcpy(buffer, file->text, length < capacity ? length : capacity);
            return length;
        }
    }
    return 0;
}

#define ROOT "/sys/fs/cgroup/"
#define ABOVE ROOT "a/"
#define GROUP ABOVE "b/"
#define SELF                                                                                       \
    { "/proc/self/cgroup", "0::/a/b\n" }

/* The files are open: whether one says something else is seen without opening any. */
static void memory_files_once_open_are_read_as_they_are_now(void **state) {
    (void)state;
    static const served_file_t before[] = {
        SELF, {GROUP "memory.max", "1000\n"}, {GROUP "memory.current", "100\n"}, {0}};
    static const served_file_t after[] = {
        {GROUP "memory.max", "900\n"}, {GROUP "memory.current", "200\n"}, {0}};
    static const served_file_t unlimited[] = {
        {GROUP "memory.max", "max\n"}, {GROUP "memory.current", "200\n"}, {0}};
    hak_os_memory_t memory;
    served = before;
    hak_os_fault_files(serve);
    assert_true(hak_os_memory_limit(&memory));
    served = after;
    assert_true(hak_os_memory_limit(&memory));
    assert_true(memory.limit_bytes == 900 && memory.used_bytes == 200);
    served = unlimited;
    assert_false(hak_os_memory_limit(&memory));
    served = after;
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(serve); /* the program closed all; the group is no longer to be found */
    assert_false(hak_os_memory_limit(&memory));
    served = before;
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(NULL);
}

static void memory_of_more_levels_than_are_followed_is_that_of_the_lowest(void **state) {
    (void)state;
    static const served_file_t files[] = {
        {"/proc/self/cgroup", "0::/a/b/c\n"}, {GROUP "c/memory.max", "5000\n"},
        {GROUP "c/memory.current", "100\n"},  {GROUP "memory.max", "4000\n"},
        {GROUP "memory.current", "100\n"},    {ABOVE "memory.max", "3000\n"},
        {ABOVE "memory.current", "100\n"},    {ROOT "memory.max", "2000\n"},
        {ROOT "memory.current", "100\n"},     {0}};
    hak_os_memory_t memory;
    served = files;
    hak_os_fault_files(serve);
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(NULL);
    assert_int_equal(memory.limit_bytes, 3000);
}

#define KEPT_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
    if (unit_is_emulated()) {
        printf("skip: the emulator has descriptors and system calls of its own\n");
        return 77;
    }
    int ours = mkstemp(ours_path), other = mkstemp(other_path);
    hak_os_init();
    close(ours);
    close(other);
    /* The last one makes threads. */
    const struct CMUnitTest tests[] = {
        KEPT_TEST(kept_file_is_read_as_it_is_and_leaves_low_numbers),
        KEPT_TEST(small_table_of_descriptors_is_the_program_s_alone),
        KEPT_TEST(looks_beside_threads_open_close_and_make_nothing),
        cmocka_unit_test_setup(number_the_program_closed_or_was_given_is_left_alone, begin),
        cmocka_unit_test(memory_files_once_open_are_read_as_they_are_now),
        cmocka_unit_test(memory_of_more_levels_than_are_followed_is_that_of_the_lowest),
        KEPT_TEST(program_that_takes_the_number_loses_no_file),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(ours_path);
    unlink(other_path);
    return failed == 0 ? 0 : 1;
}
