/* SPDX-License-Identifier: MIT
 *
 * Options: the table, the parser, the environment, profiles, changes while the process runs. */

#include "conf/table.h"
#include "unit/conf.h"
#include "unit/fatal.h"

static hak_knobs_t untouched; /* as linked */

/* What was parsed, in force. */
static uint64_t conf_value_of(const char *name) {
    uint64_t value = 0;
    hak_conf_apply();
    assert_true(hak_conf_get(name, &value));
    return value;
}

/* What is said about "name:value", with so many mistakes. */
static const char *parse(const table_option_t *option, const char *value, unsigned mistakes) {
    char text[TABLE_VALUE_BYTES + 32];
    snprintf(text, sizeof text, "%s:%s", option->name, value);
    return conf_said(text, mistakes);
}

CONF_TEST(knobs_as_linked_equal_the_table) {
    assert_memory_equal(&untouched, &hak_knobs, sizeof untouched);
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        UNIT_EXPECT(conf_value_of(table_options[i].name) == table_options[i].initial, "%s",
                    table_options[i].name);
    }
}

CONF_TEST(option_of_every_name_takes_its_bounds_and_nothing_beyond) {
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        const table_option_t *option = &table_options[i];
        assert_true(option->least <= option->initial && option->initial <= option->most);
        assert_int_equal(option->type == TABLE_TEXT, i >= HAK_CONF_FIRST_TEXT);
        assert_true(option->type != TABLE_CHOICE || option->names[option->most + 1] == NULL);
        for (uint64_t number = option->least, is_end = 0; is_end <= 1; is_end++) {
            parse(option, table_value(option, number), 0);
            assert_int_equal(conf_value_of(option->name), number);
            number = option->most;
        }
        const char *said = parse(option, table_value(option, option->most + 1), 1);
        assert_non_null(strstr(said, option->name));
        assert_non_null(strstr(said, "hakmem: test: bad value"));
        assert_int_equal(conf_value_of(option->name), option->most);
        if (option->least > 0) {
            parse(option, table_value(option, option->least - 1), 1);
            assert_int_equal(conf_value_of(option->name), option->most);
        }
    }
}

/* A text may be anything; that its length is bounded is tested above. */
CONF_TEST(bad_values_of_every_option_are_one_mistake_each) {
    static const char *const values[] = {"",   "x", "-1", "1x", " 1", "99999999999999999999999",
                                         "1:2"};
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        for (size_t k = 0; table_options[i].type != TABLE_TEXT && k < UNIT_COUNT(values); k++) {
            parse(&table_options[i], values[k], 1);
            assert_int_equal(conf_value_of(table_options[i].name), table_options[i].initial);
        }
    }
}

CONF_TEST(bare_name_means_one_where_that_is_a_choice) {
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        bool is_flag =
            table_options[i].type == TABLE_BOOL ||
            (table_options[i].type == TABLE_CHOICE && strcmp(table_options[i].names[1], "1") == 0);
        conf_said(table_options[i].name, !is_flag);
        assert_int_equal(conf_value_of(table_options[i].name),
                         is_flag ? 1 : table_options[i].initial);
    }
}

CONF_TEST(equals_sign_separates_as_a_colon_does) {
    assert_int_equal(hak_conf_parse("retain_min=8m,learn=0,report=json,report_file=/a=b:c", "test"),
                     0);
    assert_int_equal(conf_value_of("retain_min"), 8u << 20);
    assert_int_equal(conf_value_of("learn"), 0);
    assert_string_equal(hak_conf_text("report"), "json");
    assert_string_equal(hak_conf_text("report_file"), "/a=b:c"); /* the first one separates */
    assert_int_equal(hak_conf_parse("bin_bytes:8k,bin_bytes:16K,only:@a=b", "test"), 0);
    assert_int_equal(conf_value_of("bin_bytes"), 16 << 10); /* the later wins */
    assert_string_equal(hak_conf_text("only"), "@a=b");
    conf_said("retain_min=,bin_bytes:=8k,bin_bytes==8k", 3);
}

CONF_TEST(values_reach_the_knobs_when_applied) {
    assert_int_equal(hak_conf_parse("retain_min:1m,retain_percent:7,huge_cache:2m,bin_bytes:16k,"
                                    "bin_blocks:99,cache:3m,learn:0,huge_pages:0",
                                    "test"),
                     0);
    assert_int_equal(hak_knobs.retain_percent, untouched.retain_percent);
    hak_conf_apply();
    assert_int_equal(hak_knobs.retain_min_bytes, 1 << 20);
    assert_int_equal(hak_knobs.retain_percent, 7);
    assert_int_equal(hak_knobs.huge_cache_bytes, 2 << 20);
    assert_int_equal(hak_knobs.bin_max_bytes, 16 << 10);
    assert_int_equal(hak_knobs.bin_max_blocks, 99);
    assert_int_equal(hak_knobs.cache_bytes, 3 << 20);
    assert_int_equal(hak_knobs.learn, HAK_LEARN_OFF);
    assert_false(hak_knobs.huge_pages);
    assert_false(hak_knobs.force_libc);
}

CONF_TEST(profile_of_every_name_is_its_row) {
    for (size_t i = 0; i < TABLE_PRESETS; i++) {
        uint64_t expected[TABLE_OPTIONS];
        conf_begin(NULL);
        assert_int_equal(hak_conf_parse(table_presets[i].options, "test"), 0);
        for (size_t k = 0; k < TABLE_OPTIONS; k++) {
            expected[k] = conf_value_of(table_options[k].name);
        }
        setenv("HAKMEM_PROFILE", table_presets[i].name, 1);
        hak_conf_read();
        for (size_t k = 0; k < TABLE_OPTIONS; k++) {
            assert_int_equal(conf_value_of(table_options[k].name), expected[k]);
        }
    }
}

/* What is beside the name counts by its place in the list, as ever. */
CONF_TEST(memory_takes_one_of_its_five_points) {
    static const char *const points[] = {"least", "less", "balanced", "more", "most"};
    for (size_t i = 0; i < UNIT_COUNT(points); i++) {
        uint64_t expected[TABLE_OPTIONS];
        char text[64];
        conf_begin(NULL);
        assert_string_equal(table_presets[i].name, points[i]);
        assert_int_equal(hak_conf_parse(table_presets[i].options, "test"), 0);
        for (size_t k = 0; k < TABLE_OPTIONS; k++) {
            expected[k] = conf_value_of(table_options[k].name);
        }
        snprintf(text, sizeof text, "memory:%s", points[i]);
        setenv("HAKMEM_OPTIONS", text, 1);
        hak_conf_read();
        for (size_t k = 0; k < TABLE_OPTIONS; k++) {
            assert_int_equal(conf_value_of(table_options[k].name), expected[k]);
        }
    }
    setenv("HAKMEM_OPTIONS", "retain_min:3m,memory=least,retain_percent:9", 1);
    hak_conf_read();
    assert_int_equal(conf_value_of("retain_min"), 1 << 20);
    assert_int_equal(conf_value_of("retain_percent"), 9);
    assert_non_null(
        strstr(conf_said("memory:throughput", 1),
               "unknown value of memory 'throughput'; valid: least, less, balanced, more, most\n"));
    conf_said("memory,memory:,memory:leas", 3);
}

/* All options with `first`, then `second` in force. */
static void memory_values(const char *first, const char *second, uint64_t value[TABLE_OPTIONS]) {
    char text[64];
    conf_begin(NULL);
    snprintf(text, sizeof text, "memory:%s,memory:%s", first, second);
    assert_int_equal(hak_conf_parse(text, "test"), 0);
    for (size_t k = 0; k < TABLE_OPTIONS; k++) {
        value[k] = conf_value_of(table_options[k].name);
    }
}

CONF_TEST(later_point_of_memory_leaves_nothing_of_an_earlier_one) {
    enum { POINTS = 5 };
    uint64_t alone[TABLE_OPTIONS], both[TABLE_OPTIONS];
    for (size_t i = 0; i < (size_t)POINTS * POINTS; i++) {
        const char *first = table_presets[i / POINTS].name,
                   *second = table_presets[i % POINTS].name;
        memory_values(second, second, alone);
        memory_values(first, second, both);
        for (size_t k = 0; k < TABLE_OPTIONS; k++) {
            UNIT_EXPECT(both[k] == alone[k], "%s, then %s: %s", first, second,
                        table_options[k].name);
            UNIT_EXPECT(strcmp(second, "balanced") != 0 || alone[k] == table_options[k].initial,
                        "balanced is not the default: %s", table_options[k].name);
        }
    }
}

CONF_TEST(old_profiles_are_the_ends_of_memory) {
    static const char *const names[][2] = {{"low-memory", "least"}, {"throughput", "most"}};
    for (size_t i = 0; i < UNIT_COUNT(names); i++) {
        const char *options[2] = {NULL, NULL};
        for (size_t k = 0; k < 2 * TABLE_PRESETS; k++) {
            const table_preset_t *preset = &table_presets[k / 2];
            options[k % 2] =
                strcmp(preset->name, names[i][k % 2]) == 0 ? preset->options : options[k % 2];
        }
        assert_string_equal(options[0], options[1]);
    }
}

CONF_TEST(strict_makes_a_mistake_fatal) {
    setenv("HAKMEM_OPTIONS", "strict,learn:0", 1);
    hak_conf_read();
    setenv("HAKMEM_OPTIONS", "nonsense,strict:1", 1);
    UNIT_EXPECT_FATAL(hak_conf_read(), "bad option in strict mode");
    assert_int_equal(unit_line_count(unit_fatal.line), 2); /* the complaint, and the report */
}

CONF_TEST(choice_is_one_of_its_names) {
    assert_string_equal(hak_conf_text("report"), "off");
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        const table_option_t *option = &table_options[i];
        for (uint64_t k = 0; option->type == TABLE_CHOICE && k <= option->most; k++) {
            parse(option, table_value(option, k), 0);
            assert_int_equal(conf_value_of(option->name), k);
            assert_string_equal(hak_conf_text(option->name), option->names[k]);
        }
    }
    const char *said = conf_said("report:jso,report:JSON,report:jsonl,report:0", 4);
    assert_non_null(strstr(said, "bad value 'jso' for report; valid: off, exit, "));
    assert_string_equal(hak_conf_text("report"), "leaks");
}

CONF_TEST(text_is_what_stands_before_the_comma) {
    assert_string_equal(hak_conf_text("only"), "");
    assert_int_equal(hak_conf_parse("only:@a:b %p=,report_file:/x/\xc3\xa9", "test"), 0);
    assert_string_equal(hak_conf_text("only"), "@a:b %p=");
    assert_string_equal(hak_conf_text("report_file"), "/x/\xc3\xa9");
    assert_int_equal(hak_conf_parse("only:longer than before,only:,learn:0", "test"), 0);
    assert_string_equal(hak_conf_text("only"), "");
    assert_string_equal(hak_conf_text("report_file"), "/x/\xc3\xa9");
    assert_null(hak_conf_text("cache"));
    assert_null(hak_conf_text("no_such_option"));
}

CONF_TEST(set_changes_live_options_and_no_others) {
    for (size_t i = 0; i < TABLE_OPTIONS; i++) {
        const table_option_t *option = &table_options[i];
        bool is_live = option->is_live && !(HAK_HARDEN && option->is_sealed);
        uint64_t ends[] = {option->least, option->most}, before = option->initial;
        for (size_t k = 0; k < UNIT_COUNT(ends); k++) {
            assert_int_equal(hak_conf_set(option->name, table_value(option, ends[k])),
                             is_live ? HAK_CONF_DONE : HAK_CONF_FIXED);
            before = is_live ? ends[k] : before;
            uint64_t value;
            assert_true(hak_conf_get(option->name, &value));
            UNIT_EXPECT(value == before, "%s", option->name);
        }
        static const char *const values[] = {"", "x", "-1", "1x", " 1", "1,2"};
        for (size_t k = 0; k < UNIT_COUNT(values); k++) {
            assert_int_equal(hak_conf_set(option->name, values[k]),
                             is_live ? HAK_CONF_INVALID : HAK_CONF_FIXED);
        }
        assert_int_equal(hak_conf_set(option->name, table_value(option, option->most + 1)),
                         is_live ? HAK_CONF_INVALID : HAK_CONF_FIXED);
    }
    static const char *const unknown[] = {"no_such_option", "", "sho"};
    for (size_t i = 0; i < UNIT_COUNT(unknown); i++) {
        uint64_t value;
        assert_int_equal(hak_conf_set(unknown[i], "1"), HAK_CONF_UNKNOWN);
        assert_false(hak_conf_get(unknown[i], &value));
    }
}

static int conf_start(int argc, char **argv) {
    (void)argc;
    (void)argv;
    untouched = hak_knobs;
    return UNIT_GO_ON;
}

UNIT_START(conf_start)
