/* SPDX-License-Identifier: MIT
 *
 * Files that are kept open (KEPT-1): opened while there is one thread, read in any as long as the
 * number is ours; what the program closes, or has there by then, is neither read nor closed. */
#include "os/kept.h"
#include "unit/os.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { KEPT_ROUNDS = 5000, READS = 4, LEAST = 200 };

static char ours_path[] = "/tmp/hak_kept_ours_XXXXXX", other_path[] = "/tmp/hak_kept_prog_XXXXXX";
static hak_os_kept_t kept;
static atomic_bool is_over;

static bool is_wanted(const char *text, size_t length) {
    return length != 0 && text[0] == 'o';
}

static bool keep(hak_os_kept_t *file) {
    char text[16];
    (void)hak_os_kept_open(file, ours_path, is_wanted, text, sizeof text);
    return file->number != -1;
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int kept_begin(void **state) {
    uint64_t signals;
    (void)state;
    put(ours_path, "ours");
    put(other_path, "other");
    bool is_alone = hak_os_alone_begin(&signals);
    bool is_open = is_alone && keep(&kept);
    if (is_alone) {
        hak_os_restore_signals(signals);
    }
    atomic_store(&is_over, false);
    return is_open ? 0 : 1;
}

UNIT_AROUND(end) {
    close(kept.number);
    return 0;
}

#define KEPT_TEST(name) UNIT_TEST_WITH(name, kept_begin, end)

static bool reads(const char *text) {
    char buffer[16] = "";
    size_t length = hak_os_kept_read(&kept, buffer, sizeof buffer);
    return length == strlen(text) && memcmp(buffer, text, length) == 0;
}

KEPT_TEST(kept_file_is_read_as_it_is_and_leaves_low_numbers) {
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(low >= 0 && low < LEAST);
    close(low);
    assert_true(kept.number >= LEAST);
    assert_int_equal(fcntl(kept.number, F_GETFD), FD_CLOEXEC);
    assert_true(reads("ours"));
    put(ours_path, "ours anew");
    assert_true(reads("ours anew"));
}

KEPT_TEST(small_table_of_descriptors_is_the_program_s_alone) {
    struct rlimit before, small;
    hak_os_kept_t more;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    small = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    bool is_open = keep(&more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(is_open);
}

static bool filter_calls(struct sock_filter *code, size_t count) {
    struct sock_fprog program = {.len = (unsigned short)count, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* So the kernel answers of a group that was removed, the descriptor of which is still open. */
static int lose_by_removal(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 19),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    if (!filter_calls(code, UNIT_COUNT(code))) {
        return 0;
    }
    return reads("") ? 0 : 1;
}

KEPT_TEST(file_of_a_removed_group_is_lost) {
    pid_t child = fork();
    if (child == 0) {
        _exit(lose_by_removal());
    }
    assert_int_equal(unit_wait(child), 0);
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
                                     SYS_mmap,
                                     SYS_rt_sigprocmask};
    struct sigaction action = {.sa_sigaction = report_call, .sa_flags = SA_SIGINFO};
    struct sock_filter code[2 * UNIT_COUNT(calls) + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < UNIT_COUNT(calls); i++) {
        code[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        code[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    code[2 * UNIT_COUNT(calls) + 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return sigaction(SIGSYS, &action, NULL) == 0 && filter_calls(code, UNIT_COUNT(code));
}

static int look_beside_a_thread(void) {
    pthread_t thread;
    hak_os_memory_t memory;
    if (pthread_create(&thread, NULL, wait_until_over, NULL) != 0 || !forbid_files()) {
        return 0;
    }
    bool is_read = reads("ours");
    hak_os_fault_groups_anew();
    (void)hak_os_memory_limit(&memory); /* it would open files */
    bool is_alone = hak_os_alone_begin(&(uint64_t){0});
    return is_read && !is_alone ? 0 : 127;
}

KEPT_TEST(looks_beside_threads_open_close_and_make_nothing) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(look_beside_a_thread());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    UNIT_EXPECT(status == 0, "status %x", (unsigned)status);
}

UNIT_TEST_WITH(number_the_program_closed_or_was_given_is_left_alone, kept_begin, NULL) {
    int other = open(other_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(close(kept.number), 0);
    assert_true(reads(""));
    assert_int_equal(dup2(other, kept.number), kept.number);
    assert_true(reads(""));
    assert_int_equal(lseek(other, 0, SEEK_CUR), 0);
    assert_int_equal(close(kept.number), 0); /* it was still open */
    close(other);
}

static void *note_tasks(void *is_one) {
    *(bool *)is_one = hak_os_has_one_task();
    return NULL;
}

/* What is asked where the C library does not tell. */
UNIT_TEST(kernel_tells_of_a_second_thread) {
    pthread_t thread;
    bool is_one = true;
    if (UNIT_IS_TSAN) {
        skip(); /* has a thread of its own in children */
    }
    assert_true(hak_os_has_one_task());
    pid_t child = fork();
    if (child == 0) {
        bool was_one = hak_os_has_one_task();
        _exit(!was_one || pthread_create(&thread, NULL, note_tasks, &is_one) != 0 ||
              pthread_join(thread, NULL) != 0 || is_one);
    }
    assert_int_equal(unit_wait(child), 0);
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
KEPT_TEST(program_that_takes_the_number_loses_no_file) {
    pthread_t reader;
    unsigned wrong = 0, lost = 0;
    int ours = dup(kept.number), other = open(other_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pthread_create(&reader, NULL, read_each_round, &wrong), 0);
    for (unsigned i = 0; i < KEPT_ROUNDS; i++) {
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

static void remove_files(void) {
    unlink(ours_path);
    unlink(other_path);
}

static int kept_start(int argc, char **argv) {
    (void)argc;
    (void)argv;
    if (unit_is_emulated()) {
        printf("skip: the emulator has descriptors and system calls of its own\n");
        return 77;
    }
    int ours = mkstemp(ours_path), other = mkstemp(other_path);
    hak_os_init();
    close(ours);
    close(other);
    atexit(remove_files);
    return UNIT_GO_ON;
}

UNIT_START(kept_start)
