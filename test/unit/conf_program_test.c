/* SPDX-License-Identifier: MIT
 *
 * The options a program carries in itself, weaker than every other source. */
#include "base/check.h"
#include "conf/conf.h"
#include "os/os.h"
#include "unit/capture.h"

__attribute__((visibility("default"))) const char *hak_options =
    "retain_percent:33,outbox:1k,show:0";

static uint64_t value_of(const char *name) {
    uint64_t value = 0;
    assert_true(hak_conf_get(name, &value));
    return value;
}

static void options_of_the_program_are_read(void **state) {
    (void)state;
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_conf_read();
    assert_int_equal(value_of("retain_percent"), 33);
    assert_int_equal(value_of("outbox"), 1024);
}

static void profile_and_environment_beat_the_program(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "outbox:2k", 1);
    hak_conf_read();
    assert_int_equal(value_of("retain_percent"), 5);
    assert_int_equal(value_of("outbox"), 2048);
}

static void mistakes_of_the_program_name_their_source(void **state) {
    (void)state;
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_options = "outbox:huge";
    hak_check_sink.write = hak_os_write; /* as after the start of a process */
    unit_capture_begin();
    hak_conf_read();
    assert_non_null(strstr(unit_capture_end(), "hakmem: hak_options: bad value 'huge' for outbox"));
    hak_options = NULL;
    unit_capture_begin();
    hak_conf_read();
    assert_string_equal(unit_capture_end(), "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_of_the_program_are_read),
    cmocka_unit_test(profile_and_environment_beat_the_program),
    cmocka_unit_test(mistakes_of_the_program_name_their_source),
};

UNIT_MAIN(tests)
