/* SPDX-License-Identifier: MIT
 *
 * Do hak_option_get and hak_option_set keep their contract for every row of the table, and while
 * threads allocate?
 */
#include <hakmem/hakmem.h>
#include <pthread.h>

#include "double/option_table.h"
#include "expect.h"

static const char *get(const char *name) {
    static char value[128];
    EXPECT_EQ(hak_option_get(name, value, sizeof value), 0);
    return value;
}

/* Sets, and expects what is given and what is in force then. */
static void set(const char *name, const char *value, int result, const char *then) {
    errno = ERANGE;
    int given = hak_option_set(name, value);
    if (given != result || strcmp(get(name), then) != 0) {
        expect_say("%s:%s gives %d, and is %s then\n", name, value, given, get(name));
    }
    EXPECT_EQ(given, result);
    EXPECT(strcmp(get(name), then) == 0);
    EXPECT_EQ(errno, ERANGE); /* left alone */
}

/* As hak_option_get writes it. */
static const char *written(const table_option_t *option, uint64_t number) {
    static char text[TABLE_VALUE_BYTES];
    unsigned k = 0;
    if (option->type != TABLE_BYTES) {
        return table_value(option, number);
    }
    for (; number != 0 && number % 1024 == 0 && k < 4; number /= 1024) {
        k++;
    }
    snprintf(text, sizeof text, "%llu%.1s", (unsigned long long)number, &"\0kmgt"[k]);
    return text;
}

/* No profile, and no options but guard:0 are set. */
static void every_option_is_its_default_at_start(void) {
    for (size_t i = 0; i < TABLE_OPTIONS; ++i) {
        const table_option_t *option = &table_options[i];
        uint64_t value = strcmp(option->name, "guard") == 0 ? 0 : option->initial;
        EXPECT(strcmp(get(option->name), written(option, value)) == 0);
    }
}

static void every_option_takes_its_bounds_and_nothing_else(void) {
    static const char *const garbage[] = {"", "x", "-1", "1x", " 1", "1 ", "0x1", "1,2", "1:2"};
    for (size_t i = 0; i < TABLE_OPTIONS; ++i) {
        const table_option_t *option = &table_options[i];
        const uint64_t ends[] = {option->least, option->most, option->initial};
        bool is_live = option->is_live && !(expect_is_hardened() && option->is_sealed);
        char now[TABLE_VALUE_BYTES], wanted[TABLE_VALUE_BYTES];
        snprintf(now, sizeof now, "%s", get(option->name));
        for (size_t k = 0; k < sizeof ends / sizeof *ends; ++k) {
            snprintf(wanted, sizeof wanted, "%s", table_value(option, ends[k]));
            snprintf(now, sizeof now, "%s", is_live ? written(option, ends[k]) : get(option->name));
            set(option->name, wanted, is_live ? 0 : EPERM, now);
        }
        for (size_t k = 0; k < sizeof garbage / sizeof *garbage; ++k) {
            set(option->name, garbage[k], is_live ? EINVAL : EPERM, now);
        }
        set(option->name, table_value(option, option->most + 1), is_live ? EINVAL : EPERM, now);
        if (option->least > 0) {
            set(option->name, table_value(option, option->least - 1), is_live ? EINVAL : EPERM,
                now);
        }
    }
}

static void names_that_are_none_are_enoent(void) {
    static const char *const names[] = {"", "no_such_option", "lear", "learn ", "Learn", "help"};
    char value[128] = "kept";
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        EXPECT_EQ(hak_option_set(names[i], "1"), ENOENT);
        EXPECT_EQ(hak_option_get(names[i], value, sizeof value), ENOENT);
        EXPECT(strcmp(value, "kept") == 0);
    }
}

static void values_that_do_not_fit_are_erange(void) {
    char value[4] = "abc";
    EXPECT_EQ(hak_option_get("bin_blocks", value, 4), ERANGE); /* "2048" */
    EXPECT_EQ(hak_option_get("bin_blocks", value, 0), ERANGE);
    EXPECT(strcmp(value, "abc") == 0);
    EXPECT_EQ(hak_option_get("retain_min", value, 4), 0); /* "32m" */
    EXPECT(strcmp(value, "32m") == 0);
    EXPECT_EQ(hak_option_get("report", value, 3), ERANGE); /* "off" */
    EXPECT_EQ(hak_option_get("only", value, 1), 0);
    EXPECT(strcmp(value, "") == 0);
}

/* --- while threads work ----------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 10000, LIVE = 64 };

/* Blocks of all kinds, whatever the options are just then. */
static void *allocate(void *seed) {
    char *live[LIVE] = {0};
    uint64_t state = (uintptr_t)seed;
    for (size_t i = 0; i < (size_t)ROUNDS * 4; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = (size_t)1 << (state >> 33) % 18;
        char **place = &live[(state >> 52) % LIVE];
        hak_free(*place);
        *place = hak_malloc(size);
        EXPECT(*place != NULL);
        (*place)[0] = (*place)[size - 1] = (char)i;
    }
    for (size_t i = 0; i < LIVE; ++i) {
        hak_free(live[i]);
    }
    return NULL;
}

/* Every live option from end to end. */
static void *set_all(void *unused) {
    (void)unused;
    for (size_t round = 0; round < ROUNDS / 10; ++round) {
        for (size_t i = 0; i < TABLE_OPTIONS; ++i) {
            const table_option_t *option = &table_options[i];
            uint64_t number = round % 2 == 0 ? option->least : option->most;
            char text[32], now[128];
            snprintf(text, sizeof text, "%llu", (unsigned long long)number);
            if (option->type == TABLE_CHOICE) {
                snprintf(text, sizeof text, "%s", option->names[number]);
            }
            int result = hak_option_set(option->name, text);
            EXPECT(result == 0 || result == EPERM);
            EXPECT_EQ(hak_option_get(option->name, now, sizeof now), 0);
        }
    }
    return NULL;
}

static void options_change_while_threads_allocate(void) {
    pthread_t threads[THREADS + 2];
    for (size_t i = 0; i < THREADS + 2; ++i) {
        void *(*work)(void *) = i < THREADS ? allocate : set_all;
        EXPECT_EQ(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < THREADS + 2; ++i) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

int main(void) {
    RUN(every_option_is_its_default_at_start);
    RUN(every_option_takes_its_bounds_and_nothing_else);
    RUN(names_that_are_none_are_enoent);
    RUN(values_that_do_not_fit_are_erange);
    RUN(options_change_while_threads_allocate);
    return expect_status();
}
