/* SPDX-License-Identifier: MIT
 *
 * The parser knows no option by name: everything comes from the table. show.c has the messages. */
#include "conf/conf.h"

#include "base/atomics.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/knobs.h"
#include "conf/jemalloc_conf.h"
#include "conf/show.h"
#include "os/libc.h"
#include "os/optional.h"

#include <string.h>

/* The words of the columns "type" and "kept". */
#define CONF_TYPE_BOOL HAK_CONF_BOOL
#define CONF_TYPE_COUNT HAK_CONF_COUNT
#define CONF_TYPE_PERCENT HAK_CONF_PERCENT
#define CONF_TYPE_BYTES HAK_CONF_BYTES
#define CONF_TYPE_TEXT HAK_CONF_TEXT
#define CONF_TYPE_CHOICE(...) HAK_CONF_CHOICE
#define CONF_KEPT_OWN(knob) 0, 0, false
#define CONF_KEPT_START(knob) offsetof(hak_knobs_t, knob), sizeof hak_knobs.knob, false
#define CONF_KEPT_LIVE(knob) offsetof(hak_knobs_t, knob), sizeof hak_knobs.knob, true
#define CONF_KEPT_ALWAYS CONF_KEPT_LIVE

#define HAK_OPTION(name, type, initial, least, most, kept, knob, text)                             \
    {#name, initial, least, most, CONF_TYPE_##type, CONF_KEPT_##kept(knob)},
const hak_conf_option_t hak_conf_options[] = {
#include "base/options.def"
};
#undef HAK_OPTION

/* The names of choices, in the order of the table. */
#define CONF_NAMES_BOOL
#define CONF_NAMES_COUNT
#define CONF_NAMES_PERCENT
#define CONF_NAMES_BYTES
#define CONF_NAMES_TEXT
#define CONF_NAMES_CHOICE(...) {__VA_ARGS__},
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) CONF_NAMES_##type
static const char conf_names[][HAK_CONF_CHOICES][HAK_CONF_NAME_BYTES] = {
#include "base/options.def"
};
#undef HAK_OPTION

enum { CONF_LIST_BYTES = 4096 };

_Static_assert(HAK_CONF_OPTIONS <= 26, "an option has to leave before another may enter");

hak_conf_state_t hak_conf_state;

/* The program's defaults; see conf.h. */
extern const char *hak_options __attribute__((weak, visibility("default")));

/* --- values ----------------------------------------------------------------------------------- */

const hak_conf_option_t *hak_conf_find(const char *name, size_t length) {
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        const hak_conf_option_t *option = &hak_conf_options[i];
        if (hak_is_word(option->name, name, length)) {
            return option;
        }
    }
    return NULL;
}

const char *hak_conf_choice(const hak_conf_option_t *option, uint64_t index) {
    unsigned row = 0;
    if (option->type != HAK_CONF_CHOICE || index > option->most) {
        return NULL;
    }
    for (const hak_conf_option_t *at = hak_conf_options; at < option; at++) {
        row += at->type == HAK_CONF_CHOICE;
    }
    return conf_names[row][index];
}

uint64_t hak_conf_value(const hak_conf_option_t *option) {
    const char *knob = (const char *)&hak_knobs + option->knob_offset;
    switch (option->knob_bytes) {
    case 0:
        return hak_conf_state.value[option - hak_conf_options];
    case sizeof(bool):
        return hak_load_relaxed((const bool *)knob);
    default:
        return hak_load_relaxed((const size_t *)knob);
    }
}

static void knob_store(const hak_conf_option_t *option, uint64_t value) {
    char *knob = (char *)&hak_knobs + option->knob_offset;
    if (option->knob_bytes == sizeof(bool)) {
        hak_store_relaxed((bool *)knob, value != 0);
    } else if (option->knob_bytes != 0) {
        hak_store_relaxed((size_t *)knob, value);
    }
}

char *hak_conf_text_of(const hak_conf_option_t *option) {
    return hak_conf_state.text[option - &hak_conf_options[HAK_CONF_FIRST_TEXT]];
}

void hak_conf_apply(void) {
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        knob_store(&hak_conf_options[i], hak_conf_state.value[i]);
    }
}

/* --- parsing ---------------------------------------------------------------------------------- */

static bool conf_parse_choice(const hak_conf_option_t *option, const char *s, size_t length,
                              uint64_t *value) {
    for (unsigned i = 0; i <= option->most; i++) {
        if (hak_is_word(hak_conf_choice(option, i), s, length)) {
            *value = i;
            return true;
        }
    }
    return false;
}

static bool conf_parse_value(const hak_conf_option_t *option, const char *s, size_t length,
                             uint64_t *value) {
    bool is_right = true;
    if (option->type == HAK_CONF_CHOICE) {
        is_right = conf_parse_choice(option, s, length, value);
    } else if (option->type == HAK_CONF_TEXT) {
        *value = length;
        is_right = length < HAK_CONF_TEXT_BYTES;
    } else {
        is_right = hak_parse_size(s, length, value);
    }
    return is_right && *value >= option->least && *value <= option->most;
}

static void conf_keep(const hak_conf_option_t *option, uint64_t value, const char *s,
                      const char *source) {
    size_t i = (size_t)(option - hak_conf_options);
    if (option->type == HAK_CONF_TEXT) {
        char *text = hak_conf_text_of(option);
        memcpy(text, s, value);
        text[value] = '\0';
    }
    hak_conf_state.value[i] = value;
    hak_conf_state.source[i] = source;
}

/* A switch, or a choice that has a 1. */
static bool conf_switch_on(const hak_conf_option_t *option, uint64_t *value) {
    bool is_switch = option->type == HAK_CONF_BOOL || option->type == HAK_CONF_CHOICE;
    return is_switch && conf_parse_value(option, "1", 1, value);
}

/* A row of presets.def; of the knob `memory` one of its points. */
static unsigned conf_parse_row(const char *name, size_t length, bool is_memory,
                               const char *source) {
    const hak_conf_preset_t *at = hak_conf_presets;
    for (unsigned i = 0; at->name != NULL && (!is_memory || i < HAK_CONF_POINTS); i++, at++) {
        if (hak_is_word(at->name, name, length)) {
            hak_conf_state.profile = at->name;
            hak_conf_state.profile_source = source;
            return hak_conf_parse(at->options, source);
        }
    }
    hak_conf_complain_profile(source, name, length, is_memory);
    return 1;
}

/* One "key:value", "key=value" or "key". Returns the number of mistakes, 0 or 1. */
static unsigned conf_parse_item(const char *item, size_t length, const char *source) {
    size_t name_length = hak_least(strcspn(item, ":="), length);
    bool has_value = name_length < length;
    if (length == 0) {
        return 0;
    }
    if (hak_is_word("help", item, name_length)) {
        hak_conf_state.wants_help = true;
        return 0;
    }
    const char *s = has_value ? item + name_length + 1 : "";
    size_t s_length = has_value ? length - name_length - 1 : 0;
    if (hak_is_word("memory", item, name_length)) {
        return conf_parse_row(s, s_length, true, source);
    }
    const hak_conf_option_t *option = hak_conf_find(item, name_length);
    if (option == NULL) {
        hak_conf_complain_name(source, item, name_length);
        return 1;
    }
    uint64_t value = 1;
    bool is_right =
        has_value ? conf_parse_value(option, s, s_length, &value) : conf_switch_on(option, &value);
    if (!is_right) {
        hak_conf_complain(source, s, s_length, option);
        return 1;
    }
    conf_keep(option, value, s, source);
    return 0;
}

unsigned hak_conf_parse(const char *text, const char *source) {
    unsigned mistakes = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        mistakes += conf_parse_item(text, length, source);
        text += length + (text[length] == ',');
    }
    return mistakes;
}

static unsigned conf_parse_profile(const char *name) {
    static const char source[] = "HAKMEM_PROFILE";
    if (!HAK_HARDEN && strcmp(name, "hardened") == 0) {
        hak_warn("HAKMEM_PROFILE: this library is not hardened; "
                 "hakmem run --profile hardened takes the one that is");
        return 1;
    }
    return conf_parse_row(name, strlen(name), false, source);
}

/* --- the rest of conf.h ----------------------------------------------------------------------- */

bool hak_conf_get(const char *name, uint64_t *value) {
    const hak_conf_option_t *option = hak_conf_find(name, strlen(name));
    if (option == NULL) {
        return false;
    }
    *value = hak_conf_value(option);
    return true;
}

const char *hak_conf_text(const char *name) {
    const hak_conf_option_t *option = hak_conf_find(name, strlen(name));
    if (option == NULL || option->type < HAK_CONF_CHOICE) {
        return NULL;
    }
    return option->type == HAK_CONF_TEXT ? hak_conf_text_of(option)
                                         : hak_conf_choice(option, hak_conf_value(option));
}

bool hak_conf_put(hak_text_t *text, const char *name) {
    const hak_conf_option_t *option = hak_conf_find(name, strlen(name));
    if (option == NULL) {
        return false;
    }
    hak_conf_put_value(text, option, hak_conf_value(option));
    return true;
}

/* A text has no knob: it cannot be replaced in one step. */
hak_conf_result_t hak_conf_set(const char *name, const char *value) {
    const hak_conf_option_t *option = hak_conf_find(name, strlen(name));
    uint64_t number;
    if (option == NULL) {
        return HAK_CONF_UNKNOWN;
    }
    if (!option->is_live || (HAK_HARDEN && option->knob_offset < HAK_KNOBS_SEALED_BYTES)) {
        return HAK_CONF_FIXED;
    }
    if (!conf_parse_value(option, value, strlen(value), &number)) {
        return HAK_CONF_INVALID;
    }
    knob_store(option, number);
    return HAK_CONF_DONE;
}

/* An overlong text is cut after its last whole item, with a warning. */
static unsigned conf_cut(char *text) {
    size_t length = strlen(text);
    if (length < CONF_LIST_BYTES - 1) {
        return 0;
    }
    while (length > 0 && text[length - 1] != ',') {
        length--;
    }
    text[length] = '\0';
    hak_warn("HAKMEM_OPTIONS is longer than 4094 bytes; the rest is ignored");
    return 1;
}

static void conf_start_anew(void) {
    memset(&hak_conf_state, 0, sizeof hak_conf_state);
    hak_conf_state.profile = HAK_HARDEN ? "hardened" : "balanced";
    hak_conf_state.profile_source = "default";
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        hak_conf_state.value[i] = hak_conf_options[i].initial;
        hak_conf_state.source[i] = "default";
    }
}

#ifndef HAK_JE_PREFIX
#define HAK_JE_PREFIX NULL
#endif

/* NULL: this library does not stand for jemalloc's. Each start asks. */
static const char *jemalloc_prefix(void) {
    const char *prefix = HAK_JE_PREFIX;
    if (HAK_SHARED && prefix == NULL) {
        const char *file = hak_libc_own_file(), *slash = strrchr(file, '/');
        file = slash != NULL ? slash + 1 : file;
        prefix = strncmp(file, "libjemalloc.so", strlen("libjemalloc.so")) == 0 ? "" : NULL;
    }
    return prefix;
}

HAK_COLD void hak_conf_read(void) {
    char text[CONF_LIST_BYTES];
    unsigned mistakes = 0;
    conf_start_anew();
    if (jemalloc_prefix() != NULL) {
        mistakes += hak_jemalloc_conf_read(jemalloc_prefix(), text, sizeof text);
    }
    if (&hak_options != NULL && hak_options != NULL) {
        mistakes += hak_conf_parse(hak_options, "hak_options");
    }
    if (!hak_os_is_secure()) {
        if (hak_os_env("HAKMEM_PROFILE", text, sizeof text) && text[0] != '\0') {
            mistakes += conf_parse_profile(text);
        }
        if (hak_os_env("HAKMEM_OPTIONS", text, sizeof text)) {
            mistakes += conf_cut(text);
            mistakes += hak_conf_parse(text, "HAKMEM_OPTIONS");
        }
    }
    hak_conf_apply();
    if (hak_conf_state.wants_help) {
        hak_conf_print_help();
    }
    if (hak_conf_state.value[HAK_CONF_OPTION_show] != 0) {
        hak_conf_print_values();
    }
    if (mistakes != 0 && hak_conf_state.value[HAK_CONF_OPTION_strict] != 0) {
        hak_fatal(HAK_FATAL_OPTION_STRICT, NULL, NULL);
    }
}

void hak_conf_seal(void) {
    hak_os_seal(&hak_conf_state, sizeof hak_conf_state);
}
