/* SPDX-License-Identifier: MIT
 *
 * Options: the table, the parser, the environment, profiles. */
#include "conf/conf.h"

#include "base/knobs.h"
#include "unit/capture.h"
#include "unit/fatal.h"

typedef struct option {
    const char *name;
    uint64_t initial, least, most;
    bool is_bool, is_bytes;
} option_t;

enum { TYPE_BOOL, TYPE_COUNT, TYPE_PERCENT, TYPE_BYTES };

#define HAK_OPTION(name, type, initial, least, most, text)                                         \
    {#name, initial, least, most, TYPE_##type == TYPE_BOOL, TYPE_##type == TYPE_BYTES},
static const option_t options[] = {
#include "conf/options.def"
};
#undef HAK_OPTION

typedef struct preset {
    const char *name, *options;
} preset_t;

#define HAK_PRESET(name, options, text) {name, options},
static const preset_t presets[] = {
#include "conf/presets.def"
};
#undef HAK_PRESET

static hak_knobs_t untouched; /* as linked */

static uint64_t value_of(const char *name) {
    uint64_t value = 0;
    assert_true(hak_conf_get(name, &value));
    return value;
}

/* Everything back to the defaults, sources other than the environment's absent. */
static int begin(void **state) {
    (void)state;
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_conf_read();
    return 0;
}

/* Parses "name:number"; the mistakes found, and what was said about them. */
static unsigned parse(const char *name, uint64_t number, const char **said) {
    char text[128];
    snprintf(text, sizeof text, "%s:%llu", name, (unsigned long long)number);
    unit_capture_begin();
    unsigned mistakes = hak_conf_parse(text, "test");
    *said = unit_capture_end();
    assert_int_equal(unit_line_count(*said), mistakes);
    return mistakes;
}

static void knobs_as_linked_equal_the_table(void **state) {
    (void)state;
    assert_memory_equal(&untouched, &hak_knobs, sizeof untouched);
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        UNIT_EXPECT(value_of(options[i].name) == options[i].initial, "%s", options[i].name);
    }
}

static void option_of_every_name_takes_its_bounds_and_nothing_beyond(void **state) {
    (void)state;
    const char *said;
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        const option_t *option = &options[i];
        assert_true(option->least <= option->initial && option->initial <= option->most);
        assert_int_equal(parse(option->name, option->least, &said), 0);
        assert_int_equal(value_of(option->name), option->least);
        assert_int_equal(parse(option->name, option->most, &said), 0);
        assert_int_equal(value_of(option->name), option->most);
        assert_int_equal(parse(option->name, option->most + 1, &said), 1);
        assert_non_null(strstr(said, option->name));
        assert_non_null(strstr(said, "hakmem: test: bad value"));
        assert_int_equal(value_of(option->name), option->most);
        if (option->least > 0) {
            assert_int_equal(parse(option->name, option->least - 1, &said), 1);
            assert_int_equal(value_of(option->name), option->most);
        }
    }
}

static void option_names_are_distinct(void **state) {
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(options[i].name, options[j].name);
        }
    }
    uint64_t value;
    assert_false(hak_conf_get("no_such_option", &value));
    assert_false(hak_conf_get("", &value));
    assert_false(hak_conf_get("sho", &value));
}

static void bad_values_of_every_option_are_one_mistake_each(void **state) {
    (void)state;
    static const char *const values[] = {"",   "x", "-1", "1x", " 1", "99999999999999999999999",
                                         "1:2"};
    char text[128];
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        for (size_t k = 0; k < UNIT_COUNT(values); k++) {
            snprintf(text, sizeof text, "%s:%s", options[i].name, values[k]);
            unit_capture_begin();
            unsigned mistakes = hak_conf_parse(text, "test");
            assert_int_equal(unit_line_count(unit_capture_end()), 1);
            UNIT_EXPECT(mistakes == 1, "%s", text);
            assert_int_equal(value_of(options[i].name), options[i].initial);
        }
    }
}

static void bare_name_means_one_for_flags_only(void **state) {
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        unit_capture_begin();
        unsigned mistakes = hak_conf_parse(options[i].name, "test");
        unit_capture_end();
        assert_int_equal(mistakes, options[i].is_bool ? 0 : 1);
        assert_int_equal(value_of(options[i].name), options[i].is_bool ? 1 : options[i].initial);
    }
}

static void unknown_names_are_answered_with_the_valid_ones(void **state) {
    (void)state;
    unit_capture_begin();
    assert_int_equal(hak_conf_parse("learn:0,nonsense:7,Learn:1,,retain_min:3m,x", "somewhere"), 3);
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), 3);
    assert_non_null(strstr(said, "hakmem: somewhere: unknown option 'nonsense'"));
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        assert_non_null(strstr(said, options[i].name));
    }
    assert_int_equal(value_of("learn"), 0); /* what was right took effect */
    assert_int_equal(value_of("retain_min"), 3u << 20);
}

static void suffixes_multiply_by_powers_of_1024(void **state) {
    (void)state;
    assert_int_equal(hak_conf_parse("retain_min:1t", "test"), 0);
    assert_int_equal(value_of("retain_min"), 1ull << 40);
    assert_int_equal(hak_conf_parse("retain_min:2G,bin_bytes:8K,outbox:64", "test"), 0);
    assert_int_equal(value_of("retain_min"), 2ull << 30);
    assert_int_equal(value_of("bin_bytes"), 8192);
    assert_int_equal(value_of("outbox"), 64);
    assert_int_equal(hak_conf_parse("outbox:1k,outbox:2k", "test"), 0); /* the later wins */
    assert_int_equal(value_of("outbox"), 2048);
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

static void values_reach_the_knobs_when_applied(void **state) {
    (void)state;
    assert_int_equal(hak_conf_parse("retain_min:1m,retain_percent:7,huge_cache:2m,bin_bytes:16k,"
                                    "bin_blocks:99,cache:3m,outbox:4k,learn:0,huge_pages:0",
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
    assert_int_equal(hak_knobs.outbox_bytes, 4 << 10);
    assert_false(hak_knobs.learn);
    assert_false(hak_knobs.huge_pages);
    assert_false(hak_knobs.force_libc);
}

static void profile_of_every_name_is_its_row(void **state) {
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(presets); i++) {
        uint64_t expected[UNIT_COUNT(options)];
        begin(NULL);
        assert_int_equal(hak_conf_parse(presets[i].options, "test"), 0);
        for (size_t k = 0; k < UNIT_COUNT(options); k++) {
            expected[k] = value_of(options[k].name);
        }
        setenv("HAKMEM_PROFILE", presets[i].name, 1);
        hak_conf_read();
        for (size_t k = 0; k < UNIT_COUNT(options); k++) {
            assert_int_equal(value_of(options[k].name), expected[k]);
        }
    }
}

static void profile_unknown_is_answered_with_the_valid_ones(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "fastest", 1);
    unit_capture_begin();
    hak_conf_read();
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), 1);
    assert_non_null(strstr(said, "unknown profile 'fastest'"));
    for (size_t i = 0; i < UNIT_COUNT(presets); i++) {
        assert_non_null(strstr(said, presets[i].name));
    }
    setenv("HAKMEM_PROFILE", "", 1);
    unit_capture_begin();
    hak_conf_read();
    assert_string_equal(unit_capture_end(), "");
}

static void options_of_the_environment_beat_the_profile(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "retain_min:5m", 1);
    hak_conf_read();
    assert_int_equal(value_of("retain_min"), 5u << 20);
    assert_int_equal(value_of("retain_percent"), 5); /* the profile's */
    assert_int_equal(hak_knobs.retain_min_bytes, 5u << 20);
}

static void strict_makes_a_mistake_fatal(void **state) {
    (void)state;
    setenv("HAKMEM_OPTIONS", "strict,learn:0", 1);
    hak_conf_read();
    setenv("HAKMEM_OPTIONS", "nonsense,strict:1", 1);
    unit_capture_begin();
    UNIT_EXPECT_FATAL(hak_conf_read(), "bad option in strict mode");
    assert_int_equal(unit_line_count(unit_capture_end()), 1);
}

static void show_prints_every_value_and_its_source(void **state) {
    (void)state;
    setenv("HAKMEM_PROFILE", "low-memory", 1);
    setenv("HAKMEM_OPTIONS", "show,outbox:3k", 1);
    unit_capture_begin();
    hak_conf_read();
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), UNIT_COUNT(options));
    assert_non_null(strstr(said, "hakmem: outbox:3k  from HAKMEM_OPTIONS\n"));
    assert_non_null(strstr(said, "hakmem: retain_min:1m  from HAKMEM_PROFILE\n"));
    assert_non_null(strstr(said, "hakmem: learn:1  from default\n"));
}

/* Last: "help" stays wanted for the rest of the process. */
static void help_prints_a_line_for_every_option_and_profile(void **state) {
    (void)state;
    setenv("HAKMEM_OPTIONS", "help", 1);
    unit_capture_begin();
    hak_conf_read();
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), UNIT_COUNT(options) + UNIT_COUNT(presets));
    for (size_t i = 0; i < UNIT_COUNT(options); i++) {
        assert_non_null(strstr(said, options[i].name));
    }
}

#define CONF_TEST(test) cmocka_unit_test_setup(test, begin)

static const struct CMUnitTest tests[] = {
    CONF_TEST(knobs_as_linked_equal_the_table),
    CONF_TEST(option_of_every_name_takes_its_bounds_and_nothing_beyond),
    CONF_TEST(option_names_are_distinct),
    CONF_TEST(bad_values_of_every_option_are_one_mistake_each),
    CONF_TEST(bare_name_means_one_for_flags_only),
    CONF_TEST(unknown_names_are_answered_with_the_valid_ones),
    CONF_TEST(suffixes_multiply_by_powers_of_1024),
    CONF_TEST(endless_words_are_cut_in_messages),
    CONF_TEST(values_reach_the_knobs_when_applied),
    CONF_TEST(profile_of_every_name_is_its_row),
    CONF_TEST(profile_unknown_is_answered_with_the_valid_ones),
    CONF_TEST(options_of_the_environment_beat_the_profile),
    CONF_TEST(strict_makes_a_mistake_fatal),
    CONF_TEST(show_prints_every_value_and_its_source),
    CONF_TEST(help_prints_a_line_for_every_option_and_profile),
};

int main(void) {
    untouched = hak_knobs;
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
