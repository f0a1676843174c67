/* SPDX-License-Identifier: MIT
 *
 * What is said about options: complaints, help, show, JSON. With --json the program prints the JSON
 * instead, for conf_json_test.py. */
#include "conf/conf.h"

#include "base/check.h"
#include "base/knobs.h"
#include "double/option_table.h"
#include "os/os.h"
#include "unit/capture.h"
#include "unit/conf.h"

static const char *said_by_reading(void) {
    unit_capture_begin();
    hak_conf_read();
    return unit_capture_end();
}

static void unknown_names_are_answered_with_the_valid_ones(void **state) {
    (void)state;
    unit_capture_begin();
    assert_int_equal(hak_conf_parse("learn:0,nonsense:7,Learn:1,,retain_min:3m,x", "somewhere"), 3);
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), 3);
    assert_non_null(strstr(said, "hakmem: somewhere: unknown option 'nonsense'"));
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        assert_non_null(strstr(said, table_options[i].name));
    }
    hak_conf_apply(); /* what was right takes effect */
    assert_false(hak_knobs.learn);
    assert_int_equal(hak_knobs.retain_min_bytes, 3u << 20);
}

static void profile_unknown_is_answered_with_the_valid_ones(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "fastest", 1);
    unit_capture_begin();
    hak_conf_read();
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), 1);
    assert_non_null(strstr(said, "unknown profile 'fastest'"));
    for (size_t i = 0; i < TABLE_PRESETS; i++) {
        assert_non_null(strstr(said, table_presets[i].name));
    }
    setenv("HAKMEM_PROFILE", "", 1);
    unit_capture_begin();
    hak_conf_read();
    assert_string_equal(unit_capture_end(), "");
}

static void endless_words_are_cut_in_messages(void **state) {
    (void)state;
    static char text[3000];
    memset(text, 'q', sizeof text - 1);
    unit_capture_begin();
    assert_int_equal(hak_conf_parse(text, "test"), 1);
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), 1);
    assert_true(strlen(said) <= 512);
}

static void complaint_about_a_value_names_the_valid_ones(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"outbox:1", "bad value '1' for outbox; valid: 64 to 1m\n"},
        {"report:all", "bad value 'all' for report; valid: off, exit, json, explain, map\n"},
        {"control", "bad value '' for control; valid: at most 107 bytes, no comma\n"},
        {"learn:", "bad value '' for learn; valid: 0 to 1\n"},
    };
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        unit_capture_begin();
        assert_int_equal(hak_conf_parse(cases[i].text, "test"), 1);
        const char *said = unit_capture_end();
        UNIT_EXPECT(strstr(said, cases[i].said) != NULL, "%s", said);
    }
}

static void show_prints_the_profile_and_every_value_and_its_source(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "show,outbox:3k,report:json,report_file:/tmp/%p", 1);
    const char *said = said_by_reading();
    assert_int_equal(unit_line_count(said), TABLE_OPTIONS + 1);
    assert_non_null(strstr(said, "hakmem: profile:low-memory  from HAKMEM_PROFILE\n"));
    assert_non_null(strstr(said, "hakmem: outbox:3k  from HAKMEM_OPTIONS\n"));
    assert_non_null(strstr(said, "hakmem: retain_min:1m  from HAKMEM_PROFILE\n"));
    assert_non_null(strstr(said, "hakmem: learn:1  from default\n"));
    assert_non_null(strstr(said, "hakmem: report:json  from HAKMEM_OPTIONS\n"));
    assert_non_null(strstr(said, "hakmem: report_file:/tmp/%p  from HAKMEM_OPTIONS\n"));
}

static void show_tells_what_the_program_changed(void **state) {
    (void)state;
    assert_int_equal(hak_conf_set("retain_idle", "7m"), HAK_CONF_DONE);
    unit_capture_begin();
    hak_conf_print_values();
    const char *said = unit_capture_end();
    assert_non_null(strstr(said, "hakmem: retain_idle:7m  from the program\n"));
    assert_non_null(strstr(said, HAK_HARDEN ? "hakmem: profile:hardened  from default\n"
                                            : "hakmem: profile:balanced  from default\n"));
}

static void profile_of_every_name_says_nothing_but_the_other_librarys(void **state) {
    (void)state;
    hak_check_sink.write = hak_os_write;
    for (size_t i = 0; i < TABLE_PRESETS; i++) {
        bool is_other = !HAK_HARDEN && strcmp(table_presets[i].name, "hardened") == 0;
        setenv("HAKMEM_PROFILE", table_presets[i].name, 1);
        assert_int_equal(unit_line_count(said_by_reading()), is_other);
        unit_capture_begin();
        hak_conf_print_values();
        char line[64];
        snprintf(line, sizeof line, "profile:%s ", is_other ? "balanced" : table_presets[i].name);
        UNIT_EXPECT(strstr(unit_capture_end(), line) != NULL, "%s", line);
    }
}

static void help_prints_a_line_for_every_option_and_profile(void **state) {
    (void)state;
    setenv("HAKMEM_OPTIONS", "help", 1);
    const char *said = said_by_reading();
    assert_int_equal(unit_line_count(said), TABLE_OPTIONS + TABLE_PRESETS);
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        assert_non_null(strstr(said, table_options[i].name));
    }
    assert_non_null(strstr(said, "hakmem: report:off  (off, exit, json, explain, map)  "));
    assert_non_null(strstr(said, "hakmem: control:  (at most 107 bytes, no comma)  "));
    assert_non_null(strstr(said, "hakmem: profile balanced = (nothing)  the default\n"));
    conf_begin(NULL);
    assert_string_equal(said_by_reading(), ""); /* it is not wanted for ever */
}

static void put_standard_output(void *unused, const char *data, size_t length) {
    (void)unused;
    fwrite(data, 1, length, stdout);
}

#define CONF_TEST(test) cmocka_unit_test_setup(test, conf_begin)

static const struct CMUnitTest tests[] = {
    CONF_TEST(unknown_names_are_answered_with_the_valid_ones),
    CONF_TEST(profile_unknown_is_answered_with_the_valid_ones),
    CONF_TEST(endless_words_are_cut_in_messages),
    CONF_TEST(complaint_about_a_value_names_the_valid_ones),
    CONF_TEST(show_prints_the_profile_and_every_value_and_its_source),
    CONF_TEST(show_tells_what_the_program_changed),
    CONF_TEST(profile_of_every_name_says_nothing_but_the_other_librarys),
    CONF_TEST(help_prints_a_line_for_every_option_and_profile),
};

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--json") == 0) {
        const hak_sink_t sink = {.put = put_standard_output};
        hak_conf_read();
        hak_conf_report(&sink);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
