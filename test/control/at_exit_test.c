/* SPDX-License-Identifier: MIT
 *
 * The report at exit when something is missing: memory, or locks that a signal handler interrupted
 * the holder of. */
#include "control/control.h"
#include "double/os_fault.h"
#include "unit/capture.h"

#include "front/hooks.h"
#include "os/lock.h"

static void write_lines(unsigned which, const hak_sink_t *sink) {
    for (unsigned i = 0; i < which; i++) {
        hak_sink_format(sink, "line %u\n", i);
    }
}

static const hak_control_topic_t topics[] = {
    {"/lines", "text/plain", write_lines, 3, false},
    {0},
};

static const char *reported(void) {
    unit_capture_begin();
    hak_control_keep_error();
    hak_control_report("/lines", "");
    return unit_capture_end();
}

/* The program closed standard error, and the file that it opened next got its number. */
static void report_stays_out_of_a_file_of_the_program(void **state) {
    (void)state;
    char data[64] = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    unit_capture_begin();
    hak_control_keep_error();
    assert_int_equal(dup2(fileno(file), 2), 2);
    assert_int_equal(write(2, "DATA", 4), 4);
    hak_control_report("/lines", "");
    const char *said = unit_capture_end();
    assert_int_equal(pread(fileno(file), data, sizeof data, 0), 4);
    assert_string_equal(data, "DATA");
    assert_string_equal(said, "line 0\nline 1\nline 2\n"); /* the copy of standard error */
    fclose(file);
}

static void report_is_written_with_and_without_memory(void **state) {
    (void)state;
    assert_string_equal(reported(), "line 0\nline 1\nline 2\n");
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1000);
    assert_string_equal(reported(), "line 0\nline 1\nline 2\n");
    hak_os_fault_clear();
}

static void report_inside_of_an_operation_is_left_out(void **state) {
    (void)state;
    hak_lock_acquire(HAK_LOCK_SPAN);
    const char *said = reported();
    hak_lock_release(HAK_LOCK_SPAN);
    assert_non_null(strstr(said, "hakmem: report: none"));
    assert_null(strstr(said, "line 0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_is_written_with_and_without_memory),
        cmocka_unit_test(report_stays_out_of_a_file_of_the_program),
        cmocka_unit_test(report_inside_of_an_operation_is_left_out),
    };
    hak_life_process_start(); /* which says where warnings go */
    hak_control_table.topics = topics;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
