/* SPDX-License-Identifier: MIT
 *
 * The options a program carries in itself, weaker than every other source. */
#include "base/check.h"
#include "conf/conf.h"
#include "os/os.h"
#include "unit/capture.h"

__attribute__((visibility("default"))) const char *hak_options =
    "retain_percent:33,bin_bytes:8k,show:0";

static uint64_t program_value_of(const char *name) {
    uint64_t value = 0;
    assert_true(hak_conf_get(name, &value));
    return value;
}

UNIT_TEST(options_of_the_program_are_read) {
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_conf_read();
    assert_int_equal(program_value_of("retain_percent"), 33);
    assert_int_equal(program_value_of("bin_bytes"), 8 << 10);
}

UNIT_TEST(profile_and_environment_beat_the_program) {
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "bin_bytes:32k", 1);
    hak_conf_read();
    assert_int_equal(program_value_of("retain_percent"), 5);
    assert_int_equal(program_value_of("bin_bytes"), 32 << 10);
}

UNIT_TEST(mistakes_of_the_program_name_their_source) {
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_options = "bin_bytes:huge";
    unit_capture_begin();
    hak_conf_read();
    assert_non_null(
        strstr(unit_capture_end(), "hakmem: hak_options: bad value 'huge' for bin_bytes"));
    hak_options = NULL;
    unit_capture_begin();
    hak_conf_read();
    assert_string_equal(unit_capture_end(), "");
}
