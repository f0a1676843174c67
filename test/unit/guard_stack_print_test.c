/* SPDX-License-Identifier: MIT
 *
 * The files of code addresses: what is printed of them, and what an unreadable /proc/self/maps
 * leaves known. Damaged ones: os_file_test.c. */
#include "guard/guard.h"
#include "guard/stack_print.h"
#include "unit/fatal.h"
#include "unit/guard_maps.h"

static const char *printed(const uintptr_t *addresses, unsigned count) {
    unit_fatal_begin();
    hak_guard_stack_print(addresses, count);
    unit_fatal_end();
    return unit_fatal.line;
}

UNIT_TEST(frames_are_named_by_file_and_distance_from_its_start) {
    static const uintptr_t addresses[] = {0x5001234, 0x7002010, 0x9000010, 0x7003000};
    unit_maps = "5000000-5002000 r-xp 00000000 08:01 11   /bin/one\n"
                "7000000-7001000 r--p 00000000 08:01 12   /lib/two words.so\n"
                "7001000-7003000 r-xp 00001000 08:01 12   /lib/two words.so\n"
                "7003000-7004000 rw-p 00003000 08:01 12   /lib/two words.so\n"
                "9000000-9001000 r-xp 00000000 00:00 0 \n";
    hak_os_fault_files(unit_maps_serve);
    assert_string_equal(printed(addresses, 4), "hakmem:     #0 0x5001234 /bin/one+0x1234\n"
                                               "hakmem:     #1 0x7002010 /lib/two words.so+0x2010\n"
                                               "hakmem:     #2 0x9000010\n"); /* data is no code */
    assert_string_equal(printed(addresses, 0), "");
    hak_os_fault_files(NULL);
}

UNIT_TEST(frames_without_the_file_are_numbers) {
    static const uintptr_t addresses[] = {0x5001234, 0x7002010};
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, 1);
    assert_string_equal(printed(addresses, 2), "hakmem:     #0 0x5001234\n"
                                               "hakmem:     #1 0x7002010\n");
    hak_os_fault_clear();
}

static bool was_asked;

/* While one report reads the file, asks as a second one; then as the child of a fork would. */
static size_t serve_and_ask(const char *path, char *buffer, size_t capacity) {
    static const uintptr_t address[] = {0x5001234};
    if (!was_asked) {
        was_asked = true;
        hak_guard_stack_print(address, 1);
        hak_guard_stack_after_fork();
        hak_guard_stack_print(address, 1);
    }
    return unit_maps_serve(path, buffer, capacity);
}

UNIT_TEST(one_report_at_a_time_has_files_and_a_forked_child_begins_anew) {
    static const uintptr_t addresses[] = {0x5000010};
    unit_maps = "5000000-5002000 r-xp 00000000 08:01 11   /bin/one\n";
    was_asked = false;
    hak_os_fault_files(serve_and_ask);
    const char *lines = printed(addresses, 1);
    hak_os_fault_files(NULL);
    static const char expected[] = "hakmem:     #0 0x5001234\n"
                                   "hakmem:     #0 0x5001234 /bin/one+0x1234\n";
    assert_memory_equal(lines, expected, sizeof expected - 1);
}

UNIT_TEST(fatal_report_with_a_trace_has_more_lines) {
    unit_fatal_begin();
    hak_services.trace = hak_guard_trace;
    if (setjmp(unit_fatal.back) == 0) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, (void *)0x1230, NULL);
    }
    unit_fatal_end();
    hak_services.trace = NULL;
    assert_true(unit_fatal.is_fatal);
    const char *lines = strstr(unit_fatal.line, "HAKMEM_PROFILE=debug)\nhakmem:     #0 0x");
    UNIT_EXPECT(lines != NULL && strchr(lines, '/') != NULL, "%s", unit_fatal.line);
}
