/* SPDX-License-Identifier: MIT
 *
 * The tables of options and profiles, as tests read them. */
#ifndef HAK_TEST_DOUBLE_OPTION_TABLE_H
#define HAK_TEST_DOUBLE_OPTION_TABLE_H

#include "base/knobs.h"

#include <stdio.h>

typedef enum table_type {
    TABLE_BOOL,
    TABLE_COUNT,
    TABLE_PERCENT,
    TABLE_BYTES,
    TABLE_CHOICE,
    TABLE_TEXT,
} table_type_t;

typedef struct table_option {
    const char *name;
    uint64_t initial, least, most;
    table_type_t type;
    const char *const *names; /* of a choice, NULL behind the last */
    bool is_live, is_sealed;  /* hak_option_set may change it; but not in hardened builds */
} table_option_t;

typedef struct table_preset {
    const char *name, *options;
} table_preset_t;

#define TABLE_TYPE_BOOL TABLE_BOOL, NULL
#define TABLE_TYPE_COUNT TABLE_COUNT, NULL
#define TABLE_TYPE_PERCENT TABLE_PERCENT, NULL
#define TABLE_TYPE_BYTES TABLE_BYTES, NULL
#define TABLE_TYPE_CHOICE(...)                                                                     \
    TABLE_CHOICE, (const char *const[]) {                                                          \
        __VA_ARGS__, NULL                                                                          \
    }
#define TABLE_TYPE_TEXT TABLE_TEXT, NULL
#define TABLE_KEPT_OWN(knob) false, false
#define TABLE_KEPT_START(knob) false, false
#define TABLE_KEPT_LIVE(knob) true, offsetof(hak_knobs_t, knob) < HAK_KNOBS_SEALED_BYTES
#define TABLE_KEPT_ALWAYS TABLE_KEPT_LIVE

#define HAK_OPTION(name, type, initial, least, most, kept, knob, text)                             \
    {#name, initial, least, most, TABLE_TYPE_##type, TABLE_KEPT_##kept(knob)},
static const table_option_t table_options[] = {
#include "base/options.def"
};
#undef HAK_OPTION

#define HAK_PRESET(name, options, text) {name, options},
static const table_preset_t table_presets[] = {
#include "conf/presets.def"
};
#undef HAK_PRESET

enum {
    TABLE_OPTIONS = sizeof table_options / sizeof *table_options,
    TABLE_PRESETS = sizeof table_presets / sizeof *table_presets,
    TABLE_VALUE_BYTES = 320,
};

/* Whether the number is a value: of a choice, of one of its names; of a text, the length of one. */
static inline bool table_has(const table_option_t *option, uint64_t number) {
    return number >= option->least && number <= option->most;
}

/* A value as it is written in HAKMEM_OPTIONS, one that the option does not have included. */
static inline const char *table_value(const table_option_t *option, uint64_t number) {
    static char text[TABLE_VALUE_BYTES];
    if (option->type == TABLE_TEXT) {
        snprintf(text, sizeof text, "%0*d", (int)number, 0);
        text[number] = '\0';
    } else if (option->type == TABLE_CHOICE) {
        snprintf(text, sizeof text, "%s", table_has(option, number) ? option->names[number] : "?");
    } else {
        snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    }
    return text;
}

#endif
