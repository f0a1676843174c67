/* SPDX-License-Identifier: MIT
 *
 * Messages about options: values and bounds, warnings, help, show. */
#include "conf/show.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/version.h"

#include <string.h>

/* --- words ------------------------------------------------------------------------------------ */

void hak_conf_put_value(hak_text_t *text, const hak_conf_option_t *option, uint64_t value) {
    static const char suffix[] = " kmgt";
    unsigned k = 0;
    if (option->type == HAK_CONF_CHOICE) {
        hak_text_str(text, hak_conf_choice(option, value));
        return;
    }
    if (option->type == HAK_CONF_TEXT) {
        hak_text_mem(text, hak_conf_text_of(option), value);
        return;
    }
    while (option->type == HAK_CONF_BYTES && value != 0 && value % 1024 == 0 && k < 4) {
        value /= 1024;
        k++;
    }
    hak_text_uint(text, value);
    hak_text_mem(text, &suffix[k], k != 0);
}

/* The valid values. */
static void show_put_valid(hak_text_t *text, const hak_conf_option_t *option) {
    if (option->type == HAK_CONF_CHOICE) {
        for (unsigned i = 0; i <= option->most; i++) {
            hak_text_format(text, "%s%s", i == 0 ? "" : ", ", hak_conf_choice(option, i));
        }
    } else if (option->type == HAK_CONF_TEXT) {
        hak_text_format(text, "at most %l bytes, no comma", option->most);
    } else {
        hak_conf_put_value(text, option, option->least);
        hak_text_str(text, " to ");
        hak_conf_put_value(text, option, option->most);
    }
}

/* --- complaints ------------------------------------------------------------------------------- */

enum {
    SHOW_WORD = 64,   /* bytes of a word in a message */
    SHOW_CASE = 0x20, /* bit that tells small letters from capitals */
};

void hak_conf_complain(const char *source, const char *value, size_t length,
                       const hak_conf_option_t *option) {
    HAK_TEXT(text, HAK_LINE_TEXT - 1);
    hak_text_format(&text, "hakmem: %s: bad value '%m' for %s; valid: ", source, value,
                    hak_least(length, SHOW_WORD), option->name);
    show_put_valid(&text, option);
    hak_print_line(&text);
}

/* Length of the longest common subsequence, computed line by line. */
static unsigned show_common(const char *name, const char *word, size_t length) {
    uint8_t common[SHOW_WORD + 1] = {0}; /* of the name so far and each prefix of the word */
    for (; *name != '\0'; name++) {
        uint8_t before = 0;
        for (size_t i = 0; i < length; i++) {
            uint8_t above = common[i + 1];
            if ((word[i] | SHOW_CASE) == (*name | SHOW_CASE)) {
                common[i + 1] = before + 1;
            } else if (common[i] > above) {
                common[i + 1] = common[i];
            }
            before = above;
        }
    }
    return common[length];
}

/* By edits: a character missing from the word costs 1, as many abbreviate; an extra one costs 3.
 * NULL: no name has more than two thirds of the word. */
static const char *show_nearest(const char *word, size_t length) {
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (unsigned i = 0; i < HAK_CONF_OPTIONS + 2; i++) { /* and two words beside the table */
        const char *name = i < HAK_CONF_OPTIONS    ? hak_conf_options[i].name
                           : i == HAK_CONF_OPTIONS ? "memory"
                                                   : "help";
        size_t common = show_common(name, word, length);
        size_t edits = strlen(name) + 3 * length - 4 * common;
        if (3 * common > 2 * length && edits < least) {
            least = edits;
            nearest = name;
        }
    }
    return nearest;
}

void hak_conf_complain_name(const char *source, const char *name, size_t length) {
    length = hak_least(length, SHOW_WORD);
    if (hak_is_word("control", name, length)) {
        hak_warn("%s: the option control is gone: hakmem-observe needs none", source);
        return;
    }
    const char *nearest = show_nearest(name, length);
    hak_warn("%s: unknown option '%m'%s%s%s 'help' lists all", source, name, length,
             nearest != NULL ? "; did you mean " : ";", nearest, nearest != NULL ? "?" : "");
}

void hak_conf_complain_profile(const char *source, const char *name, size_t length,
                               bool is_memory) {
    HAK_TEXT(text, HAK_LINE_TEXT - 1);
    const hak_conf_preset_t *at = hak_conf_presets;
    hak_text_format(&text, "hakmem: %s: unknown %s '%m'; valid:", source,
                    is_memory ? "value of memory" : "profile", name, hak_least(length, SHOW_WORD));
    for (unsigned i = 0; at->name != NULL && (!is_memory || i < HAK_CONF_POINTS); i++, at++) {
        hak_text_format(&text, "%s %s", i == 0 ? "" : ",", at->name);
    }
    hak_print_line(&text);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* The texts lie here, and not behind pointers in the table of options, as no start reads them. */
static const char *show_text(const hak_conf_option_t *option) {
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) text "\0"
    static const char texts[] =
#include "base/options.def"
        ;
#undef HAK_OPTION
    const char *text = texts;
    for (const hak_conf_option_t *at = hak_conf_options; at < option; at++) {
        text += strlen(text) + 1;
    }
    return text;
}

/* Read at start only where HAKMEM_PROFILE is set. */
#define HAK_PRESET(name, options, text) {name, options, text},
const hak_conf_preset_t hak_conf_presets[] = {
#include "conf/presets.def"
    {0},
};
#undef HAK_PRESET

/* Begins a line about an option with its name and a value. */
static void show_option(hak_text_t *text, const hak_conf_option_t *option, uint64_t value) {
    hak_text_format(text, "hakmem: %s:", option->name);
    hak_conf_put_value(text, option, value);
}

void hak_conf_print_help(void) {
    hak_warn(
        "memory:balanced  (least, less, balanced, more, most)  memory against time: stands for "
        "the options of the profile of that name\nhakmem: help  prints these lines");
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        const hak_conf_option_t *option = &hak_conf_options[i];
        HAK_TEXT(text, HAK_LINE_TEXT - 1);
        show_option(&text, option, option->initial);
        hak_text_str(&text, "  (");
        show_put_valid(&text, option);
        hak_text_format(&text, ")  %s", show_text(option));
        hak_print_line(&text);
    }
    for (const hak_conf_preset_t *at = hak_conf_presets; at->name != NULL; at++) {
        hak_warn("profile %s = %s  %s", at->name,
                 at->options[0] != '\0' ? at->options : "(nothing)", at->text);
    }
}

void hak_conf_print_values(void) {
    const char *name = hak_conf_state.profile, *source = hak_conf_state.profile_source;
    bool is_profile = strcmp(source, "HAKMEM_PROFILE") == 0 || strcmp(name, "hardened") == 0;
    hak_warn("%s:%s  from %s", is_profile ? "profile" : "memory", name, source);
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        const hak_conf_option_t *option = &hak_conf_options[i];
        HAK_TEXT(text, HAK_LINE_TEXT - 1);
        show_option(&text, option, hak_conf_value(option));
        bool is_kept = hak_conf_value(option) == hak_conf_state.value[i];
        hak_text_format(&text, "  from %s", is_kept ? hak_conf_state.source[i] : "the program");
        hak_print_line(&text);
    }
}
