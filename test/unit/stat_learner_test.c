/* SPDX-License-Identifier: MIT
 *
 * What explain says of the learner's decisions, as text and JSON. */
#include "conf/conf.h"
#include "unit/learner.h"
#include "unit/report.h"

/* The line of a pool; "": none. */
static const char *said_of(const char *pool) {
    static char line[600];
    char begin[64];
    snprintf(begin, sizeof begin, "hakmem: unused %s ", pool);
    const char *at = strstr(report_take(OBS_EXPLAIN), begin);
    size_t length = at == NULL ? 0 : strcspn(at, "\n");
    assert_true(length < sizeof line);
    memcpy(line, at == NULL ? "" : at, length);
    line[length] = '\0';
    return line;
}

static void expect_said(const char *pool, const char *words) {
    const char *line = said_of(pool);
    UNIT_EXPECT(strstr(line, words) != NULL, "%s: %s", words, line);
}

static int learner_begin(void **state) {
    int failed = report_begin(state);
    return program_begin(state) + failed;
}

#define SAID_TEST(name) UNIT_TEST_WITH(name, learner_begin, program_end)

/* The learner's object of units, which ends with its line's bracket. */
static const char *json_units(void) {
    const char *text = report_take_json(OBS_EXPLAIN);
    report_expect_json(text);
    const char *at = strstr(text, "{\"pool\":\"units\"");
    assert_non_null(at);
    return at;
}

/* A load whose memory is kept longer than the standard says. */
static void keep_longer(program_t *program) {
    (void)steps_until_kept(program);
    program_run(program, LOAD_TICKS, 150, 100, LOAD_BYTES);
}

SAID_TEST(standard_is_named_until_something_is_decided) {
    expect_said("units",
                "are kept 0.4 s, the standard for 0 s now: 0 B/s taken again, 0 B/s as the");
    expect_said("huge blocks", "are kept 0.4 s, the standard for 0 s now");
    assert_non_null(strstr(json_units(), "\"acts\":true,\"keep_ms\":400,\"cheapest_ms\":400"));
}

SAID_TEST(decision_is_explained_with_its_price_and_the_standards) {
    program_t program = {0};
    keep_longer(&program);
    learner_view_t view = program_view();
    char words[128];
    snprintf(words, sizeof words,
             "are kept %.1f s, as the learner chose %u s ago: 0 B/s taken again, ",
             (double)HAK_STRATEGY_MS[view.strategy] / 1000, (unsigned)(view.age_ms / 1000));
    expect_said("units", words);
    /* 256 MiB every 1.5 s, and a little more just after they were taken */
    assert_in_range(report_number(said_of("units"), "; kept 0.4 s: "), 165, 195);
    expect_said("huge blocks", "are kept 0.4 s, the standard"); /* which has not learned */
    const char *json = json_units();
    assert_int_equal(report_number(json, "\"keep_ms\":"), HAK_STRATEGY_MS[view.strategy]);
    assert_int_equal(report_number(json, "\"since_ms\":"), view.age_ms);
    assert_int_equal(report_number(json, "\"real\":{\"taken_bytes\":"), 0);
    assert_in_range(report_number(json, "{\"keep_ms\":400,\"taken_bytes\":") / MIB, 165, 195);
}

SAID_TEST(what_it_would_do_is_said_with_counterfactual_and_near_a_limit) {
    program_t program = {0};
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    keep_longer(&program);
    expect_said("units", "would be kept ");
    expect_said("units", "; by learn:counterfactual the standard decides");
    assert_non_null(strstr(json_units(), "\"learn\":\"counterfactual\",\"acts\":false"));
    hak_knobs.learn = HAK_LEARN_ON;
    hak_knobs.is_tight = true;
    expect_said("units", "would be kept ");
    expect_said("units", "; near the limit of a control group the standard decides");
    hak_knobs.is_tight = false;
    expect_said("units", "are kept ");
}

SAID_TEST(failed_forecast_is_told) {
    program_t program = {0};
    keep_longer(&program);
    for (unsigned i = 0; i < 100 && !program_view().is_locked; i++) {
        program.pool.taken += LOAD_BYTES;
        program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
    }
    expect_said("units", "are kept 0.4 s, the standard ");
    expect_said("units", "; a forecast failed, so the standard decides for a while");
    assert_non_null(strstr(json_units(), "\"locked\":true"));
}

SAID_TEST(nothing_is_said_without_the_option) {
    program_t program = {0};
    keep_longer(&program);
    hak_knobs.learn = HAK_LEARN_OFF;
    assert_string_equal(said_of("units"), "");
    assert_string_equal(said_of("huge blocks"), "");
    assert_non_null(strstr(json_units(), "\"learn\":\"0\",\"acts\":false,\"keep_ms\":400"));
}

static uint64_t figure_of(const char *key) {
    return report_number(report_take_json(OBS_STATS), key);
}

SAID_TEST(statistics_say_what_a_keep_time_saves) {
    static const char keep[] = "\"keep_units_ms\":", saves[] = "\"keep_units_saves_bytes\":";
    program_t program = {0};
    assert_int_equal(figure_of(keep) + figure_of(saves), 0);
    keep_longer(&program);
    assert_int_equal(figure_of(keep), HAK_STRATEGY_MS[program_view().strategy]);
    /* by the standard 171 MiB a second are taken, and held for 0.4 to 0.8 s; else held for 1 s */
    assert_in_range(figure_of(saves) / MIB, 171 + 34 - 86, 171 + 69 - 84);
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    assert_int_equal(figure_of(keep) + figure_of(saves), 0);
    hak_knobs.learn = HAK_LEARN_ON;
}
