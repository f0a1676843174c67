/* SPDX-License-Identifier: MIT
 *
 * HAKMEM_PROFILE and HAKMEM_OPTIONS as any text: every value, every mistake and every line said
 * about them, compared with a second reading of the same text. The input: the profile, a zero, the
 * options. */
#include "conf/conf.h"
#include "double/option_table.h"
#include "double/os_fault.h"
#include "fuzz/capture.h"
#include "fuzz/reading.h"

#include "base/check.h"

#include <setjmp.h>

enum { TEXT_MOST = 6000, TEXT_KEPT = 4095 };

static struct expected {
    uint64_t number;
    char text[TABLE_VALUE_BYTES]; /* of a text */
} expected[TABLE_OPTIONS];

static bool wants_help;
static const char *profile_expected, *word_expected; /* `profile` or `memory` */

/* --- the second reading -----------------------------------------------------------------------
 */

/* false: the option has no such value. */
static bool value_read(const table_option_t *option, const char *text, struct expected *value) {
    if (option->type == TABLE_TEXT) {
        snprintf(value->text, sizeof value->text, "%s", text);
        value->number = strlen(text);
        return table_has(option, value->number);
    }
    if (option->type != TABLE_CHOICE) {
        return reading_size(text, strlen(text), &value->number) && table_has(option, value->number);
    }
    for (value->number = 0; value->number <= option->most; value->number++) {
        if (strcmp(option->names[value->number], text) == 0) {
            return true;
        }
    }
    return false;
}

/* TABLE_OPTIONS: there is none. */
static unsigned option_named(const char *name) {
    unsigned i = 0;
    while (i < TABLE_OPTIONS && strcmp(table_options[i].name, name) != 0) {
        i++;
    }
    return i;
}

static unsigned options_read(const char *text);

/* false: the knob has the point. */
static bool memory_read(const char *point) {
    static const char *const points[] = {"least", "less", "balanced", "more", "most"};
    bool is_point = false;
    for (unsigned i = 0; point != NULL && i < sizeof points / sizeof *points; i++) {
        is_point = is_point || strcmp(point, points[i]) == 0;
    }
    for (unsigned i = 0; is_point && i < TABLE_PRESETS; i++) {
        if (strcmp(table_presets[i].name, point) == 0) {
            profile_expected = table_presets[i].name;
            word_expected = "memory";
            options_read(table_presets[i].options);
        }
    }
    return !is_point;
}

/* true: a mistake. */
static bool item_read(char *item) {
    static struct expected value;
    char *given = strpbrk(item, ":=");
    if (given != NULL) {
        *given++ = '\0';
    }
    if (strcmp(item, "help") == 0) {
        wants_help = true;
        return false;
    }
    if (strcmp(item, "memory") == 0) {
        return memory_read(given);
    }
    unsigned i = option_named(item);
    if (i == TABLE_OPTIONS) {
        return item[0] != '\0' || given != NULL;
    }
    bool is_switch = table_options[i].type == TABLE_BOOL || table_options[i].type == TABLE_CHOICE;
    if ((given == NULL && !is_switch) ||
        !value_read(&table_options[i], given == NULL ? "1" : given, &value)) {
        return true;
    }
    expected[i] = value;
    return false;
}

static unsigned options_read(const char *text) {
    char copy[TEXT_MOST + 1];
    unsigned mistakes = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *item = copy; item != NULL;) {
        char *comma = strchr(item, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        mistakes += item_read(item);
        item = comma;
    }
    return mistakes;
}

static unsigned profile_read(const char *name) {
    if (!HAK_HARDEN && strcmp(name, "hardened") == 0) {
        return 1; /* a library of its own */
    }
    for (unsigned i = 0; i < TABLE_PRESETS; i++) {
        if (strcmp(table_presets[i].name, name) == 0) {
            profile_expected = name;
            word_expected = "profile";
            return options_read(table_presets[i].options);
        }
    }
    return name[0] != '\0';
}

/* What does not fit is cut, from the last whole item on. */
static unsigned environment_read(const char *profile, char *text) {
    for (unsigned i = 0; i < TABLE_OPTIONS; i++) {
        expected[i].number = table_options[i].initial;
        expected[i].text[0] = '\0';
    }
    wants_help = false;
    profile_expected = HAK_HARDEN ? "hardened" : "balanced";
    word_expected = HAK_HARDEN ? "profile" : "memory";
    unsigned mistakes = strlen(profile) <= TEXT_KEPT ? profile_read(profile) : 1;
    if (strlen(text) >= TEXT_KEPT) {
        text[TEXT_KEPT] = '\0';
        char *comma = strrchr(text, ',');
        *(comma != NULL ? comma : text) = '\0';
        mistakes++;
    }
    return mistakes + options_read(text);
}

/* --- the target ------------------------------------------------------------------------------- */

extern char **environ;

static jmp_buf after_fatal;

static bool fatal_abort(const char *data, size_t length) {
    (void)length;
    if (data == NULL) {
        longjmp(after_fatal, 1);
    }
    return false;
}

/* false: it was fatal. */
static bool conf_read(char **environment) {
    char **before = environ;
    volatile bool is_read = false;
    hak_os_fault_reports(fatal_abort);
    environ = environment;
    if (setjmp(after_fatal) == 0) {
        hak_conf_read();
        is_read = true;
    }
    environ = before;
    hak_os_fault_reports(NULL);
    return is_read;
}

static unsigned newlines(const char *text) {
    unsigned count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void values_compare(void) {
    for (unsigned i = 0; i < TABLE_OPTIONS; i++) {
        const table_option_t *option = &table_options[i];
        const char *text = hak_conf_text(option->name);
        uint64_t value, number = expected[i].number;
        FUZZ_EXPECT(hak_conf_get(option->name, &value) && value == number);
        FUZZ_EXPECT((text != NULL) == (option->type >= TABLE_CHOICE));
        FUZZ_EXPECT(text == NULL ||
                    strcmp(text, option->type == TABLE_TEXT ? expected[i].text
                                                            : option->names[number]) == 0);
    }
}

/* What `show` says of it. */
static const char *profile_line(void) {
    static char line[64];
    snprintf(line, sizeof line, "hakmem: %s:%s  from ", word_expected, profile_expected);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char profile[TEXT_MOST + 32], text[TEXT_MOST + 32];
    const char profile_name[] = "HAKMEM_PROFILE=", text_name[] = "HAKMEM_OPTIONS=";
    const uint8_t *zero = memchr(data, '\0', size);
    size_t length = zero != NULL ? (size_t)(zero - data) : 0;
    size_t begin = zero != NULL ? length + 1 : 0;
    size = size < TEXT_MOST ? size : TEXT_MOST;
    if (begin > size) {
        return 0;
    }
    snprintf(profile, sizeof profile, "%s%.*s", profile_name, (int)length, (const char *)data);
    snprintf(text, sizeof text, "%s%.*s", text_name, (int)(size - begin),
             (const char *)data + begin);
    char *environment[] = {profile, text, NULL};
    capture_begin();
    bool is_read = conf_read(environment);
    const char *said = capture_end();
    bool is_one_line_each = newlines(profile) + newlines(text) == 0;
    unsigned mistakes =
        environment_read(profile + sizeof profile_name - 1, text + sizeof text_name - 1);
    bool is_strict = expected[option_named("strict")].number != 0;
    bool is_shown = expected[option_named("show")].number != 0;
    FUZZ_EXPECT(is_read == !(is_strict && mistakes != 0));
    values_compare();
    unsigned lines = mistakes + !is_read + (wants_help ? 2 + TABLE_OPTIONS + TABLE_PRESETS : 0) +
                     (is_shown ? TABLE_OPTIONS + 1 : 0);
    FUZZ_EXPECT(!is_shown || capture_is_full() || strstr(said, profile_line()) != NULL);
    FUZZ_EXPECT(!is_one_line_each || newlines(said) == lines || capture_is_full());
    return 0;
}
