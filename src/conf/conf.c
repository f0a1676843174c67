/* SPDX-License-Identifier: MIT
 *
 * The parser knows no option by name: everything comes from the table. */
#include "conf/conf.h"

#include "base/atomics.h"
#include "base/check.h"
#include "base/fmt.h"
#include "base/knobs.h"
#include "os/os.h"

#include <string.h>

typedef enum conf_type { CONF_BOOL, CONF_COUNT, CONF_PERCENT, CONF_BYTES } conf_type_t;

typedef struct conf_option {
    const char *name;
    const char *text;
    uint64_t initial, least, most;
    conf_type_t type;
} conf_option_t;

#define HAK_OPTION(name, type, initial, least, most, text)                                         \
    {#name, text, initial, least, most, CONF_##type},
static const conf_option_t options[] = {
#include "conf/options.def"
};
#undef HAK_OPTION

#define HAK_OPTION(name, type, initial, least, most, text) OPTION_##name,
enum {
#include "conf/options.def"
    OPTION_COUNT
};
#undef HAK_OPTION

typedef struct conf_preset {
    const char *name, *options, *text;
} conf_preset_t;

#define HAK_PRESET(name, options, text) {name, options, text},
static const conf_preset_t presets[] = {
#include "conf/presets.def"
};
#undef HAK_PRESET

enum { PRESET_COUNT = sizeof presets / sizeof *presets, CONF_TEXT_BYTES = 4096 };

_Static_assert(OPTION_COUNT <= 24, "an option has to leave before another may enter");

static uint64_t values[OPTION_COUNT];     /* [init] */
static const char *sources[OPTION_COUNT]; /* [init] */
static bool wants_help;                   /* [init] */

/* A program may define it; see conf.h. */
extern const char *hak_options __attribute__((weak, visibility("default")));

/* --- output ----------------------------------------------------------------------------------- */

static void conf_line(const hak_text_t *text) {
    char line[HAK_LINE_TEXT];
    size_t length = text->length < sizeof line - 1 ? text->length : sizeof line - 1;
    memcpy(line, text->data, length);
    line[length] = '\n';
    hak_os_write(2, line, length + 1);
}

static void conf_put_value(hak_text_t *text, const conf_option_t *option, uint64_t value) {
    static const char suffix[] = " kmgt";
    unsigned k = 0;
    while (option->type == CONF_BYTES && value != 0 && value % 1024 == 0 && k < 4) {
        value /= 1024;
        k++;
    }
    hak_text_uint(text, value);
    if (k > 0) {
        hak_text_mem(text, &suffix[k], 1);
    }
}

void hak_conf_print_help(void) {
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        hak_text_init(&text, buffer, sizeof buffer);
        hak_text_format(&text, "hakmem: %s:", options[i].name);
        conf_put_value(&text, &options[i], options[i].initial);
        hak_text_str(&text, "  (");
        conf_put_value(&text, &options[i], options[i].least);
        hak_text_str(&text, " to ");
        conf_put_value(&text, &options[i], options[i].most);
        hak_text_format(&text, ")  %s", options[i].text);
        conf_line(&text);
    }
    for (unsigned i = 0; i < PRESET_COUNT; i++) {
        hak_text_init(&text, buffer, sizeof buffer);
        hak_text_format(&text, "hakmem: profile %s = %s  %s", presets[i].name, presets[i].options,
                        presets[i].text);
        conf_line(&text);
    }
}

void hak_conf_print_values(void) {
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        hak_text_init(&text, buffer, sizeof buffer);
        hak_text_format(&text, "hakmem: %s:", options[i].name);
        conf_put_value(&text, &options[i], values[i]);
        hak_text_format(&text, "  from %s", sources[i]);
        conf_line(&text);
    }
}

/* One line: what was wrong, and what would have been right. */
static void conf_complain(const char *source, const char *what, const char *word, size_t length,
                          const conf_option_t *option) {
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_format(&text, "hakmem: %s: %s '", source, what);
    hak_text_mem(&text, word, length < 64 ? length : 64);
    if (option != NULL) {
        hak_text_format(&text, "' for %s; valid: ", option->name);
        conf_put_value(&text, option, option->least);
        hak_text_str(&text, " to ");
        conf_put_value(&text, option, option->most);
    } else {
        hak_text_str(&text, "'; valid: help");
        for (unsigned i = 0; i < OPTION_COUNT; i++) {
            hak_text_format(&text, ", %s", options[i].name);
        }
    }
    conf_line(&text);
}

/* --- parsing ---------------------------------------------------------------------------------- */

static bool conf_parse_value(const conf_option_t *option, const char *s, size_t length,
                             uint64_t *value) {
    if (length == 0) {
        return false;
    }
    return hak_parse_size(s, length, value) && *value >= option->least && *value <= option->most;
}

static const conf_option_t *conf_find(const char *name, size_t length) {
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* One "key:value" or "key". Returns the number of mistakes, 0 or 1. */
static unsigned conf_parse_item(const char *item, size_t length, const char *source) {
    const char *colon = memchr(item, ':', length);
    size_t name_length = colon != NULL ? (size_t)(colon - item) : length;
    if (length == 0) {
        return 0;
    }
    if (name_length == 4 && memcmp(item, "help", 4) == 0) {
        wants_help = true;
        return 0;
    }
    const conf_option_t *option = conf_find(item, name_length);
    if (option == NULL) {
        conf_complain(source, "unknown option", item, name_length, NULL);
        return 1;
    }
    uint64_t value = 1;
    const char *digits = colon != NULL ? colon + 1 : "";
    size_t digits_length = colon != NULL ? length - name_length - 1 : 0;
    bool is_flag = colon == NULL && option->type == CONF_BOOL;
    if (!is_flag && !conf_parse_value(option, digits, digits_length, &value)) {
        conf_complain(source, "bad value", digits, digits_length, option);
        return 1;
    }
    values[option - options] = value;
    sources[option - options] = source;
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
    if (!HAK_HARDEN && strcmp(name, "hardened") == 0) {
        hak_warn("HAKMEM_PROFILE: this library is not hardened; build/hardened/libhakmem.so is, "
                 "and ./hakmem run --profile hardened takes it");
        return 1;
    }
    for (unsigned i = 0; i < PRESET_COUNT; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return hak_conf_parse(presets[i].options, "HAKMEM_PROFILE");
        }
    }
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_str(&text, "hakmem: HAKMEM_PROFILE: unknown profile '");
    hak_text_mem(&text, name, strlen(name) < 64 ? strlen(name) : 64);
    hak_text_str(&text, "'; valid:");
    for (unsigned i = 0; i < PRESET_COUNT; i++) {
        hak_text_format(&text, "%s %s", i == 0 ? "" : ",", presets[i].name);
    }
    conf_line(&text);
    return 1;
}

void hak_conf_apply(void) {
    hak_store_relaxed(&hak_knobs.force_libc, values[OPTION_force_libc] != 0);
    hak_store_relaxed(&hak_knobs.scavenger, values[OPTION_scavenger] != 0);
    hak_store_relaxed(&hak_knobs.learn, values[OPTION_learn] != 0);
    hak_store_relaxed(&hak_knobs.cgroup, values[OPTION_cgroup] != 0);
    hak_store_relaxed(&hak_knobs.retain_min_bytes, values[OPTION_retain_min]);
    hak_store_relaxed(&hak_knobs.retain_percent, values[OPTION_retain_percent]);
    hak_store_relaxed(&hak_knobs.retain_idle_bytes, values[OPTION_retain_idle]);
    hak_store_relaxed(&hak_knobs.huge_pages, values[OPTION_huge_pages] != 0);
    hak_store_relaxed(&hak_knobs.huge_cache_bytes, values[OPTION_huge_cache]);
    hak_store_relaxed(&hak_knobs.bin_max_bytes, values[OPTION_bin_bytes]);
    hak_store_relaxed(&hak_knobs.bin_max_blocks, values[OPTION_bin_blocks]);
    hak_store_relaxed(&hak_knobs.cache_bytes, values[OPTION_cache]);
    hak_store_relaxed(&hak_knobs.outbox_bytes, values[OPTION_outbox]);
    hak_store_relaxed(&hak_knobs.guard, values[OPTION_guard] != 0);
    hak_store_relaxed(&hak_knobs.guard_rate, values[OPTION_guard_rate]);
    hak_store_relaxed(&hak_knobs.backtrace, values[OPTION_backtrace] != 0);
}

bool hak_conf_get(const char *name, uint64_t *value) {
    const conf_option_t *option = conf_find(name, strlen(name));
    if (option == NULL) {
        return false;
    }
    *value = values[option - options];
    return true;
}

/* What does not fit is ignored from the last whole item on, aloud. */
static unsigned conf_cut(char *text) {
    size_t length = strlen(text);
    if (length < CONF_TEXT_BYTES - 1) {
        return 0;
    }
    while (length > 0 && text[length - 1] != ',') {
        length--;
    }
    text[length] = '\0';
    hak_warn("HAKMEM_OPTIONS is longer than 4094 bytes; the rest is ignored");
    return 1;
}

void hak_conf_read(void) {
    char text[CONF_TEXT_BYTES];
    unsigned mistakes = 0;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        values[i] = options[i].initial;
        sources[i] = "default";
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
    if (wants_help) {
        hak_conf_print_help();
    }
    if (values[OPTION_show] != 0) {
        hak_conf_print_values();
    }
    if (mistakes != 0 && values[OPTION_strict] != 0) {
        hak_fatal(HAK_FATAL_OPTION_STRICT, NULL, NULL);
    }
}
