/* SPDX-License-Identifier: MIT
 *
 * Memory limit of control groups: what the files say, at first and as they stay open, what the
 * program closes, and that no file is needed. */
#include "double/os_fault.h"
#include "os/optional.h"
#include "unit/open_files.h"

#include <errno.h>

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
    hak_os_memory_t again;
    served = files;
    hak_os_fault_files(serve);
    hak_os_fault_groups_anew();
    bool is_limited = hak_os_memory_limit(memory);
    assert_int_equal(hak_os_memory_limit(&again), is_limited); /* of what stayed open */
    assert_true(!is_limited || (memory->limit_bytes == again.limit_bytes &&
                                memory->used_bytes == again.used_bytes));
    return is_limited;
}

#define GROUP "/sys/fs/cgroup/a/b/"
#define ABOVE "/sys/fs/cgroup/a/"
#define ROOT "/sys/fs/cgroup/"
#define SELF                                                                                       \
    { "/proc/self/cgroup", "4:freezer:/memory,memory:memory\n0::/a/b\n" }

UNIT_TEST(memory_limit_is_the_lesser_of_two) {
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

UNIT_TEST(memory_of_the_level_with_least_room_counts) {
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
UNIT_TEST(memory_of_files_is_room) {
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

UNIT_TEST(memory_of_files_that_say_nothing_is_unlimited) {
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

/* The kernel has each controller in one place; nothing is opened to see that. */
UNIT_TEST(controllers_of_version_1_are_not_looked_for_in_version_2) {
    static const char *const selves[] = {"4:memory:/x\n0::/a/b\n", "4:cpuset,cpu:/x\n0::/a/b\n",
                                         "4:cpu,memory:/x\n0::/a/b\n", "4:memory_x:/\n0::/a/b\n"};
    static const bool has_memory[] = {false, true, false, true},
                      has_cpu[] = {true, false, false, true};
    for (size_t i = 0; i < UNIT_COUNT(selves); i++) {
        const served_file_t files[] = {
            {"/proc/self/cgroup", selves[i]},     {GROUP "memory.max", "2000\n"},
            {GROUP "memory.high", "max\n"},       {GROUP "memory.current", "100\n"},
            {GROUP "cpu.max", "100000 100000\n"}, {0}};
        hak_os_memory_t memory;
        hak_os_fault_clear();
        UNIT_EXPECT(memory_of(files, &memory) == has_memory[i], "%zu", i);
        UNIT_EXPECT((hak_os_cpu_quota() == 1) == has_cpu[i], "%zu", i);
        assert_true(i != 2 || hak_os_fault_calls(HAK_OS_CALL_READ) == 1);
    }
}

/* As if the program had put a file of its own under the number of one of ours, or closed it. */
UNIT_TEST(memory_limit_with_a_lost_file_is_not_what_the_others_say) {
    static const served_file_t all[] = {SELF,
                                        {GROUP "memory.high", "100\n"},
                                        {GROUP "memory.max", "2000\n"},
                                        {GROUP "memory.current", "95\n"},
                                        {GROUP "memory.stat", "anon 1\ninactive_file 40\n"},
                                        {0}};
    served_file_t left[UNIT_COUNT(all)];
    hak_os_memory_t memory;
    for (size_t lost = 1; lost + 1 < UNIT_COUNT(all); lost++) {
        assert_true(memory_of(all, &memory));
        assert_true(memory.limit_bytes == 100 && memory.used_bytes == 55);
        memcpy(left, all, sizeof all);
        left[0].text = ""; /* not to be opened anew */
        left[lost].text = "";
        served = left;
        UNIT_EXPECT(!hak_os_memory_limit(&memory), "%zu", lost);
        served = all;
        UNIT_EXPECT(hak_os_memory_limit(&memory) && memory.used_bytes == 55, "%zu", lost);
    }
    hak_os_fault_files(NULL);
}

/* A full group stays full when its memory takes the place of files. */
UNIT_TEST(memory_of_files_is_asked_for_at_each_look_near_the_limit) {
    static served_file_t files[] = {SELF,
                                    {GROUP "memory.max", "100\n"},
                                    {GROUP "memory.current", "99\n"},
                                    {GROUP "memory.stat", "anon 9\ninactive_file 90\n"},
                                    {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(files, &memory));
    assert_int_equal(memory.used_bytes, 9);
    files[3].text = "anon 89\ninactive_file 10\n";
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(NULL);
    assert_int_equal(memory.used_bytes, 89);
}

static size_t serve_endless(const char *path, char *buffer, size_t capacity) {
    memset(buffer, strcmp(path, "/proc/self/cgroup") == 0 ? 'a' : '9', capacity);
    memcpy(buffer, "0::/a\n", 6);
    return SIZE_MAX - 1;
}

UNIT_TEST(memory_files_without_end_and_paths_without_end_are_survived) {
    hak_os_memory_t memory;
    hak_os_fault_files(serve_endless);
    hak_os_fault_groups_anew();
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

UNIT_TEST(memory_of_this_process_is_read_without_a_trace) {
    hak_os_memory_t memory;
    hak_os_fault_files(NULL);
    unsigned before = open_files();
    hak_os_fault_clear();
    errno = 77;
    hak_os_fault_groups_anew();
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

/* The files are open: whether one says something else is seen without opening any. */
UNIT_TEST(memory_files_once_open_are_read_as_they_are_now) {
    static const served_file_t before[] = {
        SELF, {GROUP "memory.max", "1000\n"}, {GROUP "memory.current", "100\n"}, {0}};
    static const served_file_t after[] = {
        {GROUP "memory.max", "900\n"}, {GROUP "memory.current", "200\n"}, {0}};
    static const served_file_t unlimited[] = {
        {GROUP "memory.max", "max\n"}, {GROUP "memory.current", "200\n"}, {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(before, &memory));
    served = after;
    assert_true(hak_os_memory_limit(&memory));
    assert_true(memory.limit_bytes == 900 && memory.used_bytes == 200);
    served = unlimited;
    assert_false(hak_os_memory_limit(&memory));
    served = after;
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(serve); /* the program closed all; the group is no longer to be found */
    assert_false(hak_os_memory_limit(&memory));
    served = before; /* nor are they opened again: the program may have forbidden itself that */
    assert_false(hak_os_memory_limit(&memory));
    hak_os_fault_files(NULL);
}

UNIT_TEST(memory_of_more_levels_than_are_followed_is_that_of_the_lowest) {
    static const served_file_t files[] = {
        {"/proc/self/cgroup", "0::/a/b/c\n"}, {GROUP "c/memory.max", "5000\n"},
        {GROUP "c/memory.current", "100\n"},  {GROUP "memory.max", "4000\n"},
        {GROUP "memory.current", "100\n"},    {ABOVE "memory.max", "3000\n"},
        {ABOVE "memory.current", "100\n"},    {ROOT "memory.max", "2000\n"},
        {ROOT "memory.current", "100\n"},     {0}};
    hak_os_memory_t memory;
    assert_true(memory_of(files, &memory));
    assert_int_equal(memory.limit_bytes, 3000);
}
