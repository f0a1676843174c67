/* SPDX-License-Identifier: MIT
 *
 * What the core does for the report at exit: it calls the observer, which this test stands for, in
 * the processes that are meant, unless a signal handler called exit inside of an operation. */
#include "base/observer.h"
#include "conf/table.h"
#include "door/door.h"
#include "life/life.h"
#include "os/lock.h"
#include "unit/unit.h"

#include <sys/wait.h>

static const char *refusal;

const char *hak_observer_begin(const hak_observer_order_t *order) {
    assert_int_equal(order->door, HAK_DOOR_VERSION);
    assert_true(order->program[0] != '\0');
    dprintf(2, "begin %s '%s'\n", order->report, order->file);
    return refusal;
}

void hak_observer_end(void) {
    dprintf(2, "end\n");
}

/* What a process says that starts with these options, and exits inside of an operation, or not. */
static const char *said(const char *options, bool is_inside) {
    static char text[4096];
    FILE *file = tmpfile();
    assert_non_null(file);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(file), 2);
        if (hak_conf_parse(options, "test") == 0) {
            hak_life_report_init();
            hak_life_report_begin();
        }
        if (is_inside) {
            hak_lock_acquire(HAK_LOCK_SPAN);
        }
        exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ssize_t length = pread(fileno(file), text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    fclose(file);
    return text;
}

UNIT_TEST(observer_is_called_at_the_start_and_at_the_exit) {
    assert_string_equal(said("report:exit", false), "begin exit ''\nend\n");
    assert_string_equal(said("report:map,report_file:/tmp/%p", false),
                        "begin map '/tmp/%p'\nend\n");
    assert_string_equal(said("report:off", false), "");
}

UNIT_TEST(observer_is_not_called_for_what_is_not_meant) {
    assert_string_equal(said("report:exit,only:other", false), "");
    assert_string_equal(said("report:exit,only:/1t", false), "begin exit ''\n");
    assert_string_equal(said("report:exit,only:/1", false), "begin exit ''\nend\n");
}

UNIT_TEST(exit_inside_of_an_operation_gives_one_line) {
    assert_string_equal(said("report:exit", true),
                        "begin exit ''\n"
                        "hakmem: report: none, as exit was called inside of an allocation\n");
}

UNIT_TEST(observer_that_refuses_gives_one_line) {
    refusal = "it has a reason";
    const char *text = said("report:exit", false);
    assert_non_null(strstr(text, "hakmem: report: none, as it needs libhakmem-observe.so."));
    assert_non_null(strstr(text, ": it has a reason\n"));
    assert_null(strstr(text, "end\n"));
    refusal = NULL;
}
