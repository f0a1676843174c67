/* SPDX-License-Identifier: MIT
 *
 * Memory limit of control groups: what the files say, at first and as they stay open, what the
 * program closes, and that no file is needed. */
#include "unit/os.h"

/* What /proc/self/cgroup says, and the files there are, as |path=content; no others exist. */
static const char OF_GROUP[] = "4:freezer:/memory,memory:memory\n0::/a/b\n";
static const char *groups, *served;

#define GROUP "|a/b/"
#define ABOVE "|a/"
#define ROOT "|"

static size_t serve(const char *path, char *buffer, size_t capacity) {
    const char *text = groups;
    if (strcmp(path, "/proc/self/cgroup") != 0) {
        char key[64];
        snprintf(key, sizeof key, "|%s=", path + strlen("/sys/fs/cgroup/"));
        text = strstr(served, key);
        text = text == NULL ? "" : text + strlen(key);
    }
    size_t length = strcspn(text, "|");
    memcpy(buffer, text, length < capacity ? length : capacity);
    return length;
}

static bool memory_of(const char *own, const char *files, hak_os_memory_t *memory) {
    hak_os_memory_t again;
    groups = own;
    served = files;
    hak_os_fault_files(serve);
    hak_os_fault_groups_anew();
    bool is_limited = hak_os_memory_limit(memory);
    assert_int_equal(hak_os_memory_limit(&again), is_limited); /* of what stayed open */
    assert_true(!is_limited || (memory->limit_bytes == again.limit_bytes &&
                                memory->used_bytes == again.used_bytes));
    return is_limited;
}

static void expect_limit(const char *own, const char *files, uint64_t limit, uint64_t used) {
    hak_os_memory_t memory;
    UNIT_EXPECT(memory_of(own, files, &memory), "%s", files);
    UNIT_EXPECT(memory.limit_bytes == limit && memory.used_bytes == used, "%s", files);
}

/* Of two limits the lesser one, of levels the one with least room; of more levels than are followed
 * the lowest. */
UNIT_TEST(memory_limit_is_that_of_the_least_room) {
    expect_limit(OF_GROUP,
                 GROUP "memory.high=1000\n" GROUP "memory.max=2000\n" GROUP "memory.current=100\n",
                 1000, 100);
    expect_limit(OF_GROUP,
                 GROUP "memory.high=max\n" GROUP "memory.max=2000\n" GROUP "memory.current=0\n",
                 2000, 0);
    expect_limit(OF_GROUP,
                 GROUP "memory.max=5000\n" GROUP "memory.current=100\n" ABOVE
                       "memory.high=90000\n" ABOVE "memory.max=max\n" ABOVE
                       "memory.current=88000\n" ROOT "memory.max=70000\n" ROOT
                       "memory.current=10\n",
                 90000, 88000);
    expect_limit("0::/a/b/c\n",
                 GROUP "c/memory.max=5000\n" GROUP "c/memory.current=100\n" GROUP
                       "memory.max=4000\n" GROUP "memory.current=100\n" ABOVE
                       "memory.max=3000\n" ABOVE "memory.current=100\n" ROOT
                       "memory.max=2000\n" ROOT "memory.current=100\n",
                 3000, 100);
}

#define STAT GROUP "memory.stat=anon 50\nfile 40\ninactive_anon 7\ninactive_file 30\nactive_file 25"

/* The kernel drops them, those used lately, too; but how many there are is asked only when room is
 * little. */
UNIT_TEST(memory_of_files_is_room) {
    expect_limit(OF_GROUP, GROUP "memory.max=100\n" GROUP "memory.current=90\n" STAT, 100, 35);
    expect_limit(OF_GROUP, GROUP "memory.max=1000\n" GROUP "memory.current=90\n" STAT, 1000, 90);
    expect_limit(OF_GROUP,
                 GROUP "memory.max=100\n" GROUP "memory.current=20\n" GROUP "memory.high=10\n" STAT,
                 10, 0);
}

UNIT_TEST(memory_of_files_that_say_nothing_is_unlimited) {
    static const char *const none[] = {"",
                                       GROUP "memory.max=max\n" GROUP "memory.current=5\n",
                                       GROUP "memory.max=100\n",
                                       GROUP "memory.max=100\n" GROUP "memory.current=\n",
                                       GROUP "memory.max=-1\n" GROUP "memory.current=5\n",
                                       GROUP "memory.max=100x\n" GROUP "memory.current=5\n",
                                       GROUP "memory.max=18446744073709551616\n" GROUP
                                             "memory.current=5\n"};
    hak_os_memory_t memory;
    for (size_t i = 0; i < UNIT_COUNT(none); i++) {
        UNIT_EXPECT(!memory_of(OF_GROUP, none[i], &memory), "%zu", i);
    }
    assert_false(memory_of("", "", &memory));
    assert_false(memory_of("0::x/y\n", GROUP "memory.max=1" ROOT "memory.max=1", &memory));
}

#define VERSION_1 "|memory/x/y/"
#define ABOVE_1 "|memory/x/"

/* Where the kernel has it, and no file of version 2. Without a limit it says 2^63 less a page. */
UNIT_TEST(memory_limit_of_version_1_is_that_of_the_least_room) {
    static const char self[] = "4:cpu:/a\n3:memory,hugetlb:/x/y\n0::/a/b\n";
    expect_limit(self,
                 VERSION_1 "memory.limit_in_bytes=9223372036854771712\n" ABOVE_1
                           "memory.limit_in_bytes=1000\n" ABOVE_1
                           "memory.usage_in_bytes=900\n" GROUP "memory.max=50\n" GROUP
                           "memory.current=40\n",
                 1000, 900);
    expect_limit(self, "|memory/memory.limit_in_bytes=70\n|memory/memory.usage_in_bytes=7\n", 70,
                 7);
    expect_limit("3:memory:/x/y\n",
                 VERSION_1 "memory.limit_in_bytes=100\n" VERSION_1
                           "memory.usage_in_bytes=90\n" VERSION_1
                           "memory.stat=cache 9\ninactive_file 3\nactive_file 2\ntotal_cache "
                           "9\ntotal_inactive_file 30\ntotal_active_file 20\n",
                 100, 40);
}

/* The kernel has each controller in one place; nothing is opened to see that. */
UNIT_TEST(controllers_of_version_1_are_not_looked_for_in_version_2) {
    static const char *const selves[] = {"4:memory:/x\n0::/a/b\n", "4:cpuset,cpu:/x\n0::/a/b\n",
                                         "4:cpu,memory:/x\n0::/a/b\n", "4:memory_x:/\n0::/a/b\n"};
    static const bool has_memory[] = {false, true, false, true},
                      has_cpu[] = {true, false, false, true};
    for (size_t i = 0; i < UNIT_COUNT(selves); i++) {
        hak_os_memory_t memory;
        hak_os_fault_clear();
        bool is_limited = memory_of(selves[i],
                                    GROUP "memory.max=2000\n" GROUP "memory.high=max\n" GROUP
                                          "memory.current=100\n" GROUP "cpu.max=100000 100000\n",
                                    &memory);
        UNIT_EXPECT(is_limited == has_memory[i], "%zu", i);
        UNIT_EXPECT((hak_os_cpu_quota() == 1) == has_cpu[i], "%zu", i);
        /* but the limit of version 1, in the group and in the root */
        assert_true(i != 2 || hak_os_fault_calls(HAK_OS_CALL_READ) == 3);
    }
}

/* As if the program had put a file of its own under the number of one of ours, or closed it. */
UNIT_TEST(memory_limit_with_a_lost_file_is_not_what_the_others_say) {
    static const char all[] =
        GROUP "memory.high=100\n" GROUP "memory.max=2000\n" GROUP "memory.current=95\n" GROUP
              "memory.stat=anon 1\ninactive_file 40\n";
    char left[sizeof all];
    hak_os_memory_t memory;
    for (const char *lost = all; lost != NULL; lost = strchr(lost + 1, '|')) {
        expect_limit(OF_GROUP, all, 100, 55);
        memcpy(left, all, sizeof all);
        left[lost - all + 1] = '-'; /* another name */
        groups = "";                /* not to be opened anew */
        served = left;
        UNIT_EXPECT(!hak_os_memory_limit(&memory), "%s", lost);
        served = all;
        UNIT_EXPECT(hak_os_memory_limit(&memory) && memory.used_bytes == 55, "%s", lost);
    }
    hak_os_fault_files(NULL);
}

/* A full group stays full when its memory takes the place of files. */
UNIT_TEST(memory_of_files_is_asked_for_at_each_look_near_the_limit) {
    hak_os_memory_t memory;
    expect_limit(OF_GROUP,
                 GROUP "memory.max=100\n" GROUP "memory.current=99\n" GROUP
                       "memory.stat=anon 9\ninactive_file 90\n",
                 100, 9);
    served = GROUP "memory.max=100\n" GROUP "memory.current=99\n" GROUP
                   "memory.stat=anon 89\ninactive_file 10\n";
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
    assert_false(memory_of(deep, ROOT "memory.max=9" ROOT "memory.current=1", &memory));
}

/* The files are open: whether one says something else is seen without opening any. */
UNIT_TEST(memory_files_once_open_are_read_as_they_are_now) {
    static const char before[] = GROUP "memory.max=1000\n" GROUP "memory.current=100\n";
    hak_os_memory_t memory;
    expect_limit(OF_GROUP, before, 1000, 100);
    groups = "";
    served = GROUP "memory.max=900\n" GROUP "memory.current=200\n";
    assert_true(hak_os_memory_limit(&memory));
    assert_true(memory.limit_bytes == 900 && memory.used_bytes == 200);
    served = GROUP "memory.max=max\n" GROUP "memory.current=200\n";
    assert_false(hak_os_memory_limit(&memory));
    served = before;
    assert_true(hak_os_memory_limit(&memory));
    hak_os_fault_files(serve); /* the program closed all; the group is no longer to be found */
    assert_false(hak_os_memory_limit(&memory));
    groups = OF_GROUP; /* nor are they opened again: the program may have forbidden itself that */
    assert_false(hak_os_memory_limit(&memory));
    hak_os_fault_files(NULL);
}
