/* SPDX-License-Identifier: MIT
 *
 * CPU quota and memory limit of control groups: what the files say, and that no file is needed. */
#include "double/os_fault.h"
#include "os/os.h"
#include "unit/unit.h"

#include <dirent.h>
#include <errno.h>

enum { PATH_BYTES = 512 };

static void quotas_round_up_and_all_else_is_none(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned cpus;
    } cases[] = {
        {"100000 100000\n", 1},
        {"100001 100000\n", 2},
        {"1000 100000\n", 1},
        {"150000 100000", 2},
        {"400000 50000 \n", 8},
        {"18446744073709551615 4294967296", HAK_OS_NO_QUOTA},
        {"18446744073709551615 1000000000000000000", 19},
        {"max 100000\n", HAK_OS_NO_QUOTA},
        {"-1 100000\n", HAK_OS_NO_QUOTA},
        {"0 100000\n", HAK_OS_NO_QUOTA},
        {"100000 0\n", HAK_OS_NO_QUOTA},
        {"100000\n", HAK_OS_NO_QUOTA},
        {"100000 \n", HAK_OS_NO_QUOTA},
        {"100000k 100000\n", HAK_OS_NO_QUOTA},
        {"100000 100000x\n", HAK_OS_NO_QUOTA},
        {"18446744073709551616 100000\n", HAK_OS_NO_QUOTA},
        {"99999999999999999999999999999999999999 1", HAK_OS_NO_QUOTA},
        {"garbage", HAK_OS_NO_QUOTA},
        {" \n \n", HAK_OS_NO_QUOTA},
        {"", HAK_OS_NO_QUOTA},
    };
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        unsigned cpus = hak_os_quota_parse(cases[i].text, strlen(cases[i].text));
        UNIT_EXPECT(cpus == cases[i].cpus, "'%s': %u", cases[i].text, cpus);
    }
    assert_int_equal(hak_os_quota_parse("100000 1000000", 13),
                     1); /* what lies behind is not read */
}

static void path_is_that_of_the_line_of_version_2(void **state) {
    (void)state;
    static const struct {
        const char *text, *path; /* NULL: none */
    } cases[] = {
        {"0::/user.slice/a b\n", "/user.slice/a b"},
        {"0::/\n", ""},
        {"0::\n", ""},
        {"0::/last", "/last"},
        {"0::/a:b\n", "/a:b"},
        {"9:name=systemd:/x\n4:cpu,cpuacct:/docker/1\n0::/y\n", "/y"},
        {"3:cpuset:/x\n2:cpu,cpuacct:/y\n", NULL},
        {"10::/x\n", NULL},
        {"0::/../../elsewhere\n", ""},
        {"0::relative\n", NULL},
        {"0:\n::\nno colon\n\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        char path[PATH_BYTES] = "untouched";
        bool is_found = hak_os_cgroup_path(cases[i].text, path);
        UNIT_EXPECT(is_found == (cases[i].path != NULL), "%s", cases[i].text);
        UNIT_EXPECT(!is_found || strcmp(path, cases[i].path) == 0, "%s: %s", cases[i].text, path);
    }
}

static void path_longer_than_the_buffer_is_none(void **state) {
    (void)state;
    char text[2 * PATH_BYTES], path[PATH_BYTES];
    memset(text, 'x', sizeof text);
    memcpy(text, "0::/", 4);
    text[3 + PATH_BYTES - 1] = '\0';
    assert_true(hak_os_cgroup_path(text, path));
    assert_int_equal(strlen(path), PATH_BYTES - 1);
    text[3 + PATH_BYTES - 1] = 'x';
    text[3 + PATH_BYTES] = '\0';
    assert_false(hak_os_cgroup_path(text, path));
}

static unsigned open_files(void) {
    unsigned count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (all != NULL && readdir(all) != NULL) {
        count++;
    }
    closedir(all);
    return count;
}

static void quota_of_this_process_is_read_without_a_trace(void **state) {
    (void)state;
    unsigned before = open_files();
    hak_os_fault_clear();
    unsigned cpus = hak_os_cpu_quota();
    assert_true(cpus >= 1);
    assert_int_equal(open_files(), before);
    uint64_t reads = hak_os_fault_calls(HAK_OS_CALL_READ);
    for (uint64_t first = 0; first < reads; first++) {
        hak_os_fault_plan(HAK_OS_CALL_READ, first, UINT64_MAX);
        assert_true(hak_os_cpu_quota() >= cpus); /* less is known */
    }
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, UINT64_MAX);
    assert_int_equal(hak_os_cpu_quota(), HAK_OS_NO_QUOTA);
    hak_os_fault_clear();
}

/* --- memory ----------------------------------------------------------------------------------- */

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

static bool memory_of(const served_file_t *files, hak_os_memory_t *memory) {
    served = files;
    hak_os_fault_files(serve);
    bool is_limited = hak_os_memory_limit(memory);
    hak_os_fault_files(NULL);
    return is_limited;
}

#define GROUP "/sys/fs/cgroup/a/b/"
#define ABOVE "/sys/fs/cgroup/a/"
#define ROOT "/sys/fs/cgroup/"
#define SELF                                                                                       \
    { "/proc/self/cgroup", "4:memory:/x\n0::/a/b\n" }

static void memory_limit_is_the_lesser_of_two(void **state) {
    (void)state;
    static const served_file_t high[] = {SELF,
                                         {GROUP "memory.high", "1000\n"},
                                         {GROUP "memory.max", "2000\n"},
                                         {GROUP "memory.current", "100\n"},
                                         {0}};
    static const served_file_t max[] = {SELF,
                                        {GROUP "memory.high", "max\n"},
                                        {GROUP "memory.max", "2000\n"},
                                        {GROUP "memory.current", "0\n"},
                                        {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(high, &memory));
    assert_true(memory.limit_bytes == 1000 && memory.used_bytes == 100);
    assert_true(memory_of(max, &memory));
    assert_true(memory.limit_bytes == 2000 && memory.used_bytes == 0);
}

static void memory_of_the_level_with_least_room_counts(void **state) {
    (void)state;
    static const served_file_t files[] = {SELF,
                                          {GROUP "memory.max", "5000\n"},
                                          {GROUP "memory.current", "100\n"},
                                          {ABOVE "memory.high", "90000\n"},
                                          {ABOVE "memory.max", "max\n"},
                                          {ABOVE "memory.current", "88000\n"},
                                          {ROOT "memory.max", "70000\n"},
                                          {ROOT "memory.current", "10\n"},
                                          {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(files, &memory));
    assert_true(memory.limit_bytes == 90000 && memory.used_bytes == 88000);
}

/* The kernel drops them, those used lately, too; but how many there are is asked only when room is
 * little. */
static void memory_of_files_is_room(void **state) {
    (void)state;
    static const char stat[] =
        "anon 50\nfile 40\ninactive_anon 7\ninactive_file 30\nactive_file 25";
    static const served_file_t near[] = {SELF,
                                         {GROUP "memory.max", "100\n"},
                                         {GROUP "memory.current", "90\n"},
                                         {GROUP "memory.stat", stat},
                                         {0}};
    static const served_file_t far[] = {SELF,
                                        {GROUP "memory.max", "1000\n"},
                                        {GROUP "memory.current", "90\n"},
                                        {GROUP "memory.stat", stat},
                                        {0}};
    static const served_file_t more[] = {SELF,
                                         {GROUP "memory.max", "100\n"},
                                         {GROUP "memory.current", "20\n"},
                                         {GROUP "memory.high", "10\n"},
                                         {GROUP "memory.stat", stat},
                                         {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(near, &memory));
    assert_int_equal(memory.used_bytes, 35);
    assert_true(memory_of(far, &memory));
    assert_int_equal(memory.used_bytes, 90);
    assert_true(memory_of(more, &memory));
    assert_int_equal(memory.used_bytes, 0);
}

static void memory_of_files_that_say_nothing_is_unlimited(void **state) {
    (void)state;
    static const served_file_t none[][5] = {
        {{0}},
        {SELF, {0}},
        {SELF, {GROUP "memory.max", "max\n"}, {GROUP "memory.current", "5\n"}, {0}},
        {SELF, {GROUP "memory.max", "100\n"}, {0}},
        {SELF, {GROUP "memory.max", "100\n"}, {GROUP "memory.current", "\n"}, {0}},
        {SELF, {GROUP "memory.max", "-1\n"}, {GROUP "memory.current", "5\n"}, {0}},
        {SELF, {GROUP "memory.max", "100x\n"}, {GROUP "memory.current", "5\n"}, {0}},
        {SELF, {GROUP "memory.max", "18446744073709551616\n"}, {GROUP "memory.current", "5\n"}},
        {{"/proc/self/cgroup", "0::x/y\n"}, {GROUP "memory.max", "1"}, {ROOT "memory.max", "1"}},
    };
    for (size_t i = 0; i < UNIT_COUNT(none); i++) {
        hak_os_memory_t memory;
        UNIT_EXPECT(!memory_of(none[i], &memory), "%zu", i);
    }
}

static size_t serve_endless(const char *path, char *buffer, size_t capacity) {
    memset(buffer, strcmp(path, "/proc/self/cgroup") == 0 ? 'a' : '9', capacity);
    memcpy(buffer, "0::/a\n", 6);
    return SIZE_MAX - 1;
}

static void memory_files_without_end_and_paths_without_end_are_survived(void **state) {
    (void)state;
    hak_os_memory_t memory;
    hak_os_fault_files(serve_endless);
    assert_false(hak_os_memory_limit(&memory));
    assert_int_equal(hak_os_cpu_quota(), HAK_OS_NO_QUOTA);
    static char deep[600] = "0::"; /* more levels than are looked at: the uppermost are not */
    for (size_t at = 3; at + 2 < 400; at += 2) {
        memcpy(deep + at, "/d", 3);
    }
    const served_file_t files[] = {
        {"/proc/self/cgroup", deep}, {ROOT "memory.max", "9"}, {ROOT "memory.current", "1"}, {0}};
    assert_false(memory_of(files, &memory));
}

static void memory_of_this_process_is_read_without_a_trace(void **state) {
    (void)state;
    hak_os_memory_t memory;
    unsigned before = open_files();
    hak_os_fault_clear();
    errno = 77;
    bool is_limited = hak_os_memory_limit(&memory);
    assert_int_equal(errno, 77);
    assert_in_range(open_files(), before, before + (is_limited ? 12 : 0));
    uint64_t reads = hak_os_fault_calls(HAK_OS_CALL_READ);
    for (uint64_t first = 0; first < reads; first++) {
        hak_os_fault_plan(HAK_OS_CALL_READ, first, UINT64_MAX);
        assert_true(!hak_os_memory_limit(&memory) || is_limited);
    }
    hak_os_fault_clear();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(quotas_round_up_and_all_else_is_none),
    cmocka_unit_test(path_is_that_of_the_line_of_version_2),
    cmocka_unit_test(path_longer_than_the_buffer_is_none),
    cmocka_unit_test(quota_of_this_process_is_read_without_a_trace),
    cmocka_unit_test(memory_limit_is_the_lesser_of_two),
    cmocka_unit_test(memory_of_the_level_with_least_room_counts),
    cmocka_unit_test(memory_of_files_is_room),
    cmocka_unit_test(memory_of_files_that_say_nothing_is_unlimited),
    cmocka_unit_test(memory_files_without_end_and_paths_without_end_are_survived),
    cmocka_unit_test(memory_of_this_process_is_read_without_a_trace),
};

UNIT_MAIN(tests)
