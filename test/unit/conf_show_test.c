/* SPDX-License-Identifier: MIT
 *
 * What is said about options: complaints, help, show, JSON. With --json the program prints the JSON
 * instead, for conf_json_test.py. */

#include "conf/show.h"
#include "unit/conf.h"

CONF_TEST(unknown_names_are_answered_with_the_nearest_one) {
    static const char *const cases[][2] = {
        {"bogus:7", "unknown option 'bogus'; 'help' lists all\n"},
        {"retain_mni:8m",
         "unknown option 'retain_mni'; did you mean retain_min? 'help' lists all\n"},
        {"retain-min=8m",
         "unknown option 'retain-min'; did you mean retain_min? 'help' lists all\n"},
        {"retain_min 8m", "unknown option 'retain_min 8m'; did you mean retain_min? "},
        {"retain", "unknown option 'retain'; did you mean retain_min? "},
        {"HUGE_PAGES", "unknown option 'HUGE_PAGES'; did you mean huge_pages? "},
        {"file:/tmp/r", "unknown option 'file'; did you mean report_file? "},
        {"bins", "unknown option 'bins'; did you mean bin_"},
        {"scavanger:1", "unknown option 'scavanger'; did you mean scavenger? "},
        {"sow", "unknown option 'sow'; did you mean show? "},
        {"memry:least", "unknown option 'memry'; did you mean memory? "},
        {"mem:less", "unknown option 'mem'; did you mean memory? "},
        {"hepl", "unknown option 'hepl'; did you mean help? "},
        {":7", "unknown option ''; 'help' lists all\n"},
        {"+++", "unknown option '+++'; 'help' lists all\n"}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        const char *said = conf_said(cases[i][0], 1);
        UNIT_EXPECT(strncmp(said, "hakmem: test: ", 14) == 0, "%s", said);
        UNIT_EXPECT(strncmp(said + 14, cases[i][1], strlen(cases[i][1])) == 0, "%s", said);
    }
}

CONF_TEST(name_of_every_option_is_found_by_any_letter_less_or_more) {
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        const char *name = table_options[i].name;
        size_t length = strlen(name);
        for (size_t at = 0; at < length; at++) {
            char both[128], meant[96];
            (void)snprintf(both, sizeof both, "%.*s%s,%.*s#%s", (int)at, name, name + at + 1,
                           (int)at, name, name + at);
            (void)snprintf(meant, sizeof meant, "; did you mean %s? ", name);
            const char *said = conf_said(both, 2), *first = strstr(said, meant);
            UNIT_EXPECT(first != NULL && strstr(first + 1, meant) != NULL, "%s", said);
        }
    }
}

CONF_TEST(what_is_right_beside_mistakes_takes_effect) {
    conf_said("learn:0,nonsense:7,,retain_min=3m,x", 2);
    hak_conf_apply();
    assert_int_equal(hak_knobs.learn, HAK_LEARN_OFF);
    assert_int_equal(hak_knobs.retain_min_bytes, 3u << 20);
}

CONF_TEST(profile_unknown_is_answered_with_the_valid_ones) {
    setenv("HAKMEM_PROFILE", "fastest", 1);
    const char *said = conf_said_by(hak_conf_read);
    assert_int_equal(unit_line_count(said), 1);
    assert_non_null(strstr(said, "unknown profile 'fastest'"));
    for (size_t i = 0; i < TABLE_PRESETS; i++) {
        assert_non_null(strstr(said, table_presets[i].name));
    }
    setenv("HAKMEM_PROFILE", "", 1);
    assert_string_equal(conf_said_by(hak_conf_read), "");
}

CONF_TEST(endless_words_are_cut_in_messages) {
    static char text[3000];
    memset(text, 'q', sizeof text - 1);
    assert_true(strlen(conf_said(text, 1)) <= 512);
}

CONF_TEST(complaint_about_a_value_names_the_valid_ones) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"bin_bytes:1", "bad value '1' for bin_bytes; valid: 4k to 1m\n"},
        {"report:all",
         "bad value 'all' for report; valid: off, exit, json, explain, map, stats, profile, "
         "leaks\n"},
        {"only", "bad value '' for only; valid: at most 255 bytes, no comma\n"},
        {"learn:2", "bad value '2' for learn; valid: 0, 1, counterfactual\n"},
        {"learn:", "bad value '' for learn; valid: 0, 1, counterfactual\n"}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        const char *said = conf_said(cases[i].text, 1);
        UNIT_EXPECT(strstr(said, cases[i].said) != NULL, "%s", said);
    }
}

CONF_TEST(show_prints_the_profile_and_every_value_and_its_source) {
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "show,bin_bytes:24k,report:json,report_file:/tmp/%p", 1);
    const char *said = conf_said_by(hak_conf_read);
    assert_int_equal(unit_line_count(said), TABLE_OPTIONS + 1);
    assert_non_null(strstr(said, "hakmem: profile:low-memory  from HAKMEM_PROFILE\n"));
    assert_non_null(strstr(said, "hakmem: bin_bytes:24k  from HAKMEM_OPTIONS\n"));
    assert_non_null(strstr(said, "hakmem: retain_min:1m  from HAKMEM_PROFILE\n"));
    assert_non_null(strstr(said, "hakmem: learn:1  from default\n"));
    assert_non_null(strstr(said, "hakmem: report:json  from HAKMEM_OPTIONS\n"));
    assert_non_null(strstr(said, "hakmem: report_file:/tmp/%p  from HAKMEM_OPTIONS\n"));
}

CONF_TEST(show_prints_a_point_of_memory_by_that_name_and_a_profile_by_its_own) {
    static const char *const cases[][3] = {
        {"", "memory:least", "memory:least  from HAKMEM_OPTIONS"},
        {"", "memory:balanced", "memory:balanced  from HAKMEM_OPTIONS"},
        {"most", "", "profile:most  from HAKMEM_PROFILE"},
        {"balanced", "", "profile:balanced  from HAKMEM_PROFILE"},
        {"debug", "memory:more", "memory:more  from HAKMEM_OPTIONS"},
        {"nonsense", "memory:nonsense",
         HAK_HARDEN ? "profile:hardened  from default" : "memory:balanced  from default"}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        setenv("HAKMEM_PROFILE", cases[i][0], 1);
        setenv("HAKMEM_OPTIONS", cases[i][1], 1);
        conf_said_by(hak_conf_read);
        const char *said = conf_said_by(hak_conf_print_values);
        UNIT_EXPECT(strncmp(said + strlen("hakmem: "), cases[i][2], strlen(cases[i][2])) == 0, "%s",
                    said);
    }
}

CONF_TEST(show_tells_what_the_program_changed) {
    assert_int_equal(hak_conf_set("retain_idle", "7m"), HAK_CONF_DONE);
    const char *said = conf_said_by(hak_conf_print_values);
    assert_non_null(strstr(said, "hakmem: retain_idle:7m  from the program\n"));
    assert_non_null(strstr(said, HAK_HARDEN ? "hakmem: profile:hardened  from default\n"
                                            : "hakmem: memory:balanced  from default\n"));
}

CONF_TEST(profile_of_every_name_says_nothing_but_the_other_librarys) {
    for (size_t i = 0; i < TABLE_PRESETS; i++) {
        bool is_other = !HAK_HARDEN && strcmp(table_presets[i].name, "hardened") == 0;
        setenv("HAKMEM_PROFILE", table_presets[i].name, 1);
        assert_int_equal(unit_line_count(conf_said_by(hak_conf_read)), is_other);
        char line[64];
        snprintf(line, sizeof line, "%s:%s ", is_other ? "memory" : "profile",
                 is_other ? "balanced" : table_presets[i].name);
        UNIT_EXPECT(strstr(conf_said_by(hak_conf_print_values), line) != NULL, "%s", line);
    }
}

CONF_TEST(help_prints_a_line_for_every_option_and_profile) {
    setenv("HAKMEM_OPTIONS", "help", 1);
    const char *said = conf_said_by(hak_conf_read);
    assert_int_equal(unit_line_count(said), 2 + TABLE_OPTIONS + TABLE_PRESETS);
    assert_non_null(strstr(said, "hakmem: memory:balanced  (least, less, balanced, more, most)  "));
    assert_non_null(strstr(said, "hakmem: help  "));
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        assert_non_null(strstr(said, table_options[i].name));
    }
    assert_non_null(strstr(
        said, "hakmem: report:off  (off, exit, json, explain, map, stats, profile, leaks)  "));
    assert_non_null(strstr(said, "hakmem: report_file:  (at most 255 bytes, no comma)  "));
    assert_non_null(strstr(said, "hakmem: profile hardened = (nothing)  selects "));
    conf_begin(NULL);
    assert_string_equal(conf_said_by(hak_conf_read), ""); /* it is not wanted for ever */
}

CONF_TEST(option_that_is_gone_names_what_is_there_instead) {
    setenv("HAKMEM_OPTIONS", "control:@hakmem-%p", 1);
    assert_string_equal(conf_said_by(hak_conf_read),
                        "hakmem: HAKMEM_OPTIONS: the option control is gone: hakmem-observe needs "
                        "none\n");
}
