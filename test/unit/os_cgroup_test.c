/* SPDX-License-Identifier: MIT
 *
 * CPU quota of control groups: what the files say, and that no file is needed. */
#include "unit/open_files.h"
#include "unit/os.h"

enum { PATH_BYTES = 512 };

UNIT_TEST(quotas_round_up_and_all_else_is_none) {
    static const struct {
        const char *text;
        unsigned cpus;
    } cases[] = {{"100000 100000\n", 1},
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
                 {"", HAK_OS_NO_QUOTA}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        unsigned cpus = hak_os_quota_parse(cases[i].text, strlen(cases[i].text));
        UNIT_EXPECT(cpus == cases[i].cpus, "'%s': %u", cases[i].text, cpus);
    }
    assert_int_equal(hak_os_quota_parse("100000 1000000", 13),
                     1); /* what lies behind is not read */
}

UNIT_TEST(path_is_that_of_the_line_of_version_2) {
    static const struct {
        const char *text, *path; /* NULL: none */
    } cases[] = {{"0::/user.slice/a b\n", "/user.slice/a b"},
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
                 {"", NULL}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        char path[PATH_BYTES] = "untouched";
        bool is_found = hak_os_cgroup_path(cases[i].text, path);
        UNIT_EXPECT(is_found == (cases[i].path != NULL), "%s", cases[i].text);
        UNIT_EXPECT(!is_found || strcmp(path, cases[i].path) == 0, "%s: %s", cases[i].text, path);
    }
}

UNIT_TEST(path_longer_than_the_buffer_is_none) {
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

static unsigned look_for_quota(void) {
    hak_os_memory_t memory;
    hak_os_fault_groups_anew();
    (void)hak_os_memory_limit(&memory);
    return hak_os_cpu_quota();
}

UNIT_TEST(groups_of_this_process_are_read_without_a_trace) {
    unsigned before = open_files();
    hak_os_fault_clear();
    errno = 77;
    unsigned cpus = look_for_quota();
    hak_os_memory_t memory;
    bool is_limited = hak_os_memory_limit(&memory);
    assert_int_equal(errno, 77);
    assert_true(cpus >= 1);
    assert_in_range(open_files(), before, before + (is_limited ? 12 : 0));
    uint64_t reads = hak_os_fault_calls(HAK_OS_CALL_READ);
    for (uint64_t first = 0; first < reads; first++) {
        hak_os_fault_plan(HAK_OS_CALL_READ, first, UINT64_MAX);
        assert_true(!hak_os_memory_limit(&memory) || is_limited);
        assert_true(look_for_quota() >= cpus); /* less is known */
    }
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, UINT64_MAX);
    assert_int_equal(look_for_quota(), HAK_OS_NO_QUOTA);
    hak_os_fault_clear();
}
