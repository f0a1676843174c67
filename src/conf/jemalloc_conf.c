/* SPDX-License-Identifier: MIT
 *
 * jemalloc's options, where the library stands for jemalloc's: as libjemalloc.so.2, or with its
 * names under a prefix. They come from where jemalloc reads them, the later wins: the build; the
 * string malloc_conf of the program; the text of the link /etc/malloc.conf; MALLOC_CONF. Under a
 * prefix the last three have it, too. What comes last is read first, and the rest not. */
#include "conf/jemalloc_conf.h"

#include "base/bits.h"
#include "base/check.h"
#include "conf/show.h"
#include "os/optional.h"
#include "span/span.h"

#include <string.h>

#ifndef HAK_JE_CONF
#define HAK_JE_CONF ""
#endif

#if HAK_OVERRIDE
HAK_EXPORT HAK_WEAK const char *malloc_conf;
#define JE_STRING malloc_conf
#else
HAK_WEAK const char *hak_je_malloc_conf;
#define JE_STRING hak_je_malloc_conf
#endif

enum { JE_NAME_BYTES = 32, JE_ITEM_BYTES = 320, JE_LOG2_MOST = 47 };

enum {
    RULE_SWITCH,
    RULE_LACKS,
    RULE_WORD,
    RULE_BYTES,
    RULE_POWER,
    RULE_PROF,
    RULE_ACTIVE,
    RULE_RATE,
    RULE_FINAL,
    RULE_PREFIX,
    RULE_DECAY,
    RULE_NONE
};

/* No pointers: the dynamic linker would have to write the tables. */
typedef struct jemalloc_row {
    char name[27];
    uint8_t rule;
    char ours[20], otherwise[16];
} jemalloc_row_t;

#define HAK_JEMALLOC(name, rule, ours, otherwise, note) {name, RULE_##rule, ours, otherwise},
#define HAK_JEMALLOC_DECAY(most, ours, note)
static const jemalloc_row_t jemalloc_rows[] = {
#include "conf/jemalloc_conf.def"
};
#undef HAK_JEMALLOC
#undef HAK_JEMALLOC_DECAY

#define HAK_JEMALLOC(name, rule, ours, otherwise, note)
#define HAK_JEMALLOC_DECAY(most, ours, note) {most, ours},
static const struct {
    int64_t most;
    char ours[64];
} jemalloc_decay[] = {
#include "conf/jemalloc_conf.def"
};
#undef HAK_JEMALLOC
#undef HAK_JEMALLOC_DECAY

hak_jemalloc_conf_t hak_jemalloc_conf = {
    .is_active = 1, .sample_log2 = 19, .decay_ms = HAK_WINDOW_MS, .prefix = "jeprof"};

enum { JE_ROWS = sizeof jemalloc_rows / sizeof *jemalloc_rows };
_Static_assert(JE_ROWS <= 64, "a bit each");

/* One source. */
typedef struct jemalloc_source {
    const char *name;
    uint64_t said; /* bits of rows that a later item has set */
    const jemalloc_row_t *final;
    hak_text_t *unknown; /* what has no effect, of all sources */
    unsigned mistakes;
} jemalloc_source_t;

/* The number, of which a minus is its sign. */
static bool jemalloc_number(const char *s, size_t length, int64_t *number) {
    bool is_negative = length > 1 && *s == '-';
    uint64_t value;
    if (!hak_parse_size(s + is_negative, length - is_negative, &value) || value > INT64_MAX) {
        return false;
    }
    *number = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static void jemalloc_set(jemalloc_source_t *from, const char *ours) {
    from->mistakes += hak_conf_parse(ours, from->name);
}

/* As near to the value as the option can be. */
static void jemalloc_set_number(jemalloc_source_t *from, const char *name, uint64_t value) {
    HAK_TEXT(text, JE_ITEM_BYTES);
    const hak_conf_option_t *option = hak_conf_find(name, strlen(name));
    value = hak_most(option->least, hak_least(option->most, value));
    hak_text_format(&text, "%s:%l", name, value);
    jemalloc_set(from, hak_text_string(&text));
}

/* false: the value is none of the option. */
static bool jemalloc_set_switch(jemalloc_source_t *from, const jemalloc_row_t *row, bool is_on) {
    switch (row->rule) {
    case RULE_LACKS:
        return !is_on;
    case RULE_PROF:
        hak_jemalloc_conf.is_profiled = is_on;
        return true;
    case RULE_ACTIVE:
        hak_jemalloc_conf.is_active = is_on;
        return true;
    case RULE_FINAL:
        from->final = is_on && from->final == NULL ? row : from->final;
        return true;
    default:
        jemalloc_set(from, is_on ? row->ours : row->otherwise);
        return true;
    }
}

static bool jemalloc_set_decay(jemalloc_source_t *from, int64_t ms) {
    unsigned i = 0;
    if (ms < -1) {
        return false;
    }
    while (ms > jemalloc_decay[i].most) {
        i++;
    }
    hak_jemalloc_conf.decay_ms = ms;
    hak_jemalloc_conf.retain_min = hak_conf_options[HAK_CONF_OPTION_retain_min].initial;
    hak_jemalloc_conf.retain_idle = hak_conf_options[HAK_CONF_OPTION_retain_idle].initial;
    jemalloc_set(from, jemalloc_decay[i].ours);
    return true;
}

static bool jemalloc_set_amount(jemalloc_source_t *from, const jemalloc_row_t *row,
                                int64_t number) {
    bool is_power = row->rule != RULE_BYTES;
    if (number < 0 || (is_power && number > JE_LOG2_MOST)) {
        return false;
    }
    uint64_t value = is_power ? 1ull << number : (uint64_t)number, bound = 0;
    if (row->rule == RULE_RATE) {
        hak_jemalloc_conf.sample_log2 = (uint64_t)number;
    } else if (hak_parse_size(row->otherwise, strlen(row->otherwise), &bound) && value < bound) {
        jemalloc_set_number(from, row->ours, value);
    }
    return true;
}

static bool jemalloc_set_value(jemalloc_source_t *from, const jemalloc_row_t *row, const char *s,
                               size_t length) {
    int64_t number;
    switch (row->rule) {
    case RULE_NONE:
        return true;
    case RULE_WORD:
        jemalloc_set(from, hak_is_word(row->otherwise, s, length) ? row->ours : "");
        return true;
    case RULE_PREFIX:
        if (length >= sizeof hak_jemalloc_conf.prefix) {
            return false;
        }
        memcpy(hak_jemalloc_conf.prefix, s, length);
        hak_jemalloc_conf.prefix[length] = '\0';
        return true;
    case RULE_DECAY:
        return jemalloc_number(s, length, &number) && jemalloc_set_decay(from, number);
    case RULE_BYTES:
    case RULE_POWER:
    case RULE_RATE:
        return jemalloc_number(s, length, &number) && jemalloc_set_amount(from, row, number);
    default: {
        bool is_off = hak_is_word("false", s, length);
        bool is_known = is_off || hak_is_word("true", s, length) || row->rule == RULE_LACKS;
        return is_known && jemalloc_set_switch(from, row, !is_off);
    }
    }
}

/* Rows of the same option are one. */
static uint64_t jemalloc_bits(const jemalloc_row_t *row) {
    bool is_amount = row->rule == RULE_BYTES || row->rule == RULE_POWER;
    uint64_t bits = 0;
    for (unsigned i = 0; i < JE_ROWS; i++) {
        bool is_same = is_amount && strcmp(jemalloc_rows[i].ours, row->ours) == 0;
        bits |= (uint64_t)(is_same || &jemalloc_rows[i] == row) << i;
    }
    return bits;
}

/* false: unknown, or without a value of it. */
static bool jemalloc_set_item(jemalloc_source_t *from, const char *item, size_t length) {
    const char *colon = memchr(item, ':', length);
    size_t name_length = colon != NULL ? (size_t)(colon - item) : length;
    for (unsigned i = 0; colon != NULL && i < JE_ROWS; i++) {
        const jemalloc_row_t *row = &jemalloc_rows[i];
        if (hak_is_word(row->name, item, name_length)) {
            bool is_right = (from->said >> i & 1) != 0 ||
                            jemalloc_set_value(from, row, colon + 1, length - name_length - 1);
            from->said |= is_right ? jemalloc_bits(row) : 0;
            return is_right;
        }
    }
    return length == 0;
}

static void jemalloc_read(jemalloc_source_t *from, const char *name, const char *text) {
    size_t end = strlen(text), start = end;
    from->name = name;
    for (; start != 0; end = start - 1) {
        for (start = end; start != 0 && text[start - 1] != ',';) {
            start--;
        }
        if (!jemalloc_set_item(from, text + start, end - start)) {
            hak_text_format(from->unknown, " %m", text + start, end - start);
            from->mistakes++;
        }
    }
}

/* Sampling begins, and a report of it is made, by all options together. */
static void jemalloc_sample(jemalloc_source_t *from) {
    if (!hak_jemalloc_conf.is_profiled || !hak_jemalloc_conf.is_active) {
        return;
    }
    hak_jemalloc_conf.samples = true;
    jemalloc_set_number(from, "profile_rate", 1ull << hak_jemalloc_conf.sample_log2);
    if (from->final != NULL) {
        HAK_TEXT(text, JE_ITEM_BYTES);
        hak_text_format(&text, "%s,report_file:%s.%%p", from->final->ours,
                        hak_jemalloc_conf.prefix);
        jemalloc_set(from, hak_text_string(&text));
    }
}

HAK_COLD unsigned hak_jemalloc_conf_read(const char *prefix, char *text, size_t capacity) {
    static char variable[JE_NAME_BYTES + 1]; /* [init] stays the source of what it set */
    HAK_TEXT(link, JE_NAME_BYTES);
    HAK_TEXT(unknown, HAK_LINE_TEXT / 2);
    hak_text_t name = {.data = variable, .capacity = JE_NAME_BYTES};
    jemalloc_source_t from = {.unknown = &unknown};
    for (const char *at = prefix; *at != '\0'; at++) {
        hak_text_format(&name, "%c", *at >= 'a' && *at <= 'z' ? *at - ('a' - 'A') : *at);
    }
    hak_text_str(&name, "MALLOC_CONF");
    hak_text_format(&link, "/etc/%smalloc.conf", prefix);
    if (!hak_os_is_secure() && hak_os_env(variable, text, capacity)) {
        jemalloc_read(&from, variable, text);
    }
    if (hak_os_read_link(hak_text_string(&link), text, capacity)) {
        jemalloc_read(&from, "/etc/malloc.conf", text);
    }
    if (JE_STRING != NULL) {
        jemalloc_read(&from, "malloc_conf", JE_STRING);
    }
    jemalloc_read(&from, "build", HAK_JE_CONF);
    from.name = variable;
    jemalloc_sample(&from);
    if (unknown.length != 0) {
        hak_warn("%s: without effect here:%s", variable, hak_text_string(&unknown));
    }
    return from.mistakes;
}
