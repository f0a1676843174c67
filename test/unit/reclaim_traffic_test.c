/* SPDX-License-Identifier: MIT
 *
 * The learner on recorded traffic: what a program's pool pays while the learner decides, from its
 * first second on and with all changes of mind, against the best keep time in hindsight. The files
 * of test/unit/traffic have the memory in use of real programs, from their statistics every 10 ms
 * of a minute, to within 1 MiB: slabs and blocks up to 1 MiB, or (_huge) larger ones. */
#include "unit/learner.h"

static load_t traffic_load;
static paid_t traffic_paid;

/* Words: units of 64 KiB in use, and `*` for how many ticks, if not for one. */
static void load_read(const char *name) {
    char path[512];
    const char *source = getenv("HAKMEM_SOURCE");
    snprintf(path, sizeof path, "%s/test/unit/traffic/%s", source == NULL ? "." : source, name);
    FILE *file = fopen(path, "r");
    UNIT_EXPECT(file != NULL, "%s", path);
    size_t units, at = 0;
    while (fscanf(file, "%zu", &units) == 1) {
        size_t ticks = 1;
        (void)!fscanf(file, "*%zu", &ticks);
        for (; ticks > 0 && at < LOAD_TICKS; ticks--) {
            traffic_load.in_use[at++] = units * HAK_UNIT_BYTES;
        }
    }
    fclose(file);
    assert_int_equal(at, LOAD_TICKS);
}

/* Ten percent of the best. */
static const double TRAFFIC_WITHIN = 1.1;

static void regret_is_within(const char *name) {
    load_read(name);
    program_t program = {.pool.held = traffic_load.in_use[0]};
    for (unsigned i = 0; i < LOAD_TICKS; i++) {
        program_tick(&program, traffic_load.in_use[i]);
    }
    double best = 1e300, fixed[HAK_STRATEGIES], own = pool_price(&program.pool);
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        fixed[i] = price_if_kept(&traffic_load, (unsigned)HAK_STRATEGY_MS[i] / TICK_MS).whole;
        best = fixed[i] < best ? fixed[i] : best;
    }
    paid_add(&traffic_paid, own, fixed[HAK_STRATEGY_STANDARD], fixed);
    UNIT_EXPECT(own <= TRAFFIC_WITHIN * best + LITTLE, "%s: %.3f", name, own / best);
}

/* Keys of 64 to 20 000 bytes, 5 000 to 120 000 at a time, dropped now and then. */
LEARNER_TEST(redis_pays_about_the_best_price) {
    regret_is_within("redis.txt");
}

/* Documents of JSON, read, sorted and written; a few are held for a while. */
LEARNER_TEST(python_pays_about_the_best_price) {
    regret_is_within("python.txt");
    program_begin(state);
    regret_is_within("python_huge.txt");
}

/* Tables of strings, by a collector. */
LEARNER_TEST(ruby_pays_about_the_best_price) {
    regret_is_within("ruby.txt");
    program_begin(state);
    regret_is_within("ruby_huge.txt");
}

/* The best fixed choice would be the default if it did as well. */
LEARNER_TEST(learner_pays_less_than_any_fixed_keep_time) {
    assert_int_equal(traffic_paid.loads, 5);
    assert_true(paid_is_least(&traffic_paid));
}
