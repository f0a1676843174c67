/* SPDX-License-Identifier: MIT
 *
 * HAKMEM_PROFILE and HAKMEM_OPTIONS as any text: every value, every mistake and every line said
 * about them, compared with a second reading of the same text. The input: the profile, a zero, the
 * options. */
#include "conf/conf.h"
#include "fuzz/capture.h"

#include "base/check.h"

#include <setjmp.h>

enum { TYPE_BOOL, TYPE_COUNT, TYPE_PERCENT, TYPE_BYTES, TEXT_MOST = 6000, TEXT_KEPT = 4095 };

typedef struct option {
    const char *name;
    uint64_t initial, least, most;
    int type;
    uint64_t expected;
} option_t;

#define HAK_OPTION(name, type, initial, least, most, text)                                         \
    {#name, initial, least, most, TYPE_##type, 0},
static option_t options[] = {
#include "conf/options.def"
};
#undef HAK_OPTION

#define HAK_PRESET(name, options, text) {name, options},
static const struct {
    const char *name, *options;
} presets[] = {
#include "conf/presets.def"
};
#undef HAK_PRESET

enum { OPTIONS = sizeof options / sizeof *options, PRESETS = sizeof presets / sizeof *presets };

static bool wants_help; /* stays so for the rest of the process */

/* --- the second reading -----------------------------------------------------------------------
 */

/* A decimal number, perhaps with a suffix; false: none, or one above 64 bits. */
static bool number_read(const char *text, uint64_t *value) {
    static const char suffixes[] = "kKmMgGtT";
    size_t digits = strspn(text, "0123456789");
    const char *suffix = text[digits] != '\0' ? strchr(suffixes, text[digits]) : NULL;
    unsigned __int128 wide = 0;
    if (digits == 0 || (text[digits] != '\0' && (suffix == NULL || text[digits + 1] != '\0'))) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        wide = wide * 10 + (unsigned)(text[i] - '0');
        if (wide > UINT64_MAX) {
            return false;
        }
    }
    wide <<= suffix != NULL ? ((suffix - suffixes) / 2 + 1) * 10 : 0;
    *value = (uint64_t)wide;
    return wide <= UINT64_MAX;
}

static option_t *option_named(const char *name) {
    for (option_t *option = options; option < options + OPTIONS; option++) {
        if (strcmp(option->name, name) == 0) {
            return option;
        }
    }
    return NULL;
}

/* true: a mistake. */
static bool item_read(char *item) {
    char *colon = strchr(item, ':');
    uint64_t value = 1;
    if (colon != NULL) {
        *colon++ = '\0';
    }
    if (strcmp(item, "help") == 0) {
        wants_help = true;
        return false;
    }
    option_t *option = option_named(item);
    if (option == NULL) {
        return item[0] != '\0' || colon != NULL;
    }
    bool is_flag = colon == NULL && option->type == TYPE_BOOL;
    if (!is_flag && (colon == NULL || !number_read(colon, &value) || value < option->least ||
                     value > option->most)) {
        return true;
    }
    option->expected = value;
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
    for (unsigned i = 0; i < PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return options_read(presets[i].options);
        }
    }
    return name[0] != '\0';
}

/* What does not fit is cut, from the last whole item on. */
static unsigned environment_read(const char *profile, char *text) {
    for (option_t *option = options; option < options + OPTIONS; option++) {
        option->expected = option->initial;
    }
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

static void fatal_abort(void) {
    longjmp(after_fatal, 1);
}

/* false: it was fatal. */
static bool conf_read(char **environment) {
    char **before = environ;
    hak_check_sink_t sink = hak_check_sink;
    volatile bool is_read = false;
    hak_check_sink = (hak_check_sink_t){.write = hak_os_write, .abort = fatal_abort};
    environ = environment;
    if (setjmp(after_fatal) == 0) {
        hak_conf_read();
        is_read = true;
    }
    environ = before;
    hak_check_sink = sink;
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
    uint64_t value;
    for (const option_t *option = options; option < options + OPTIONS; option++) {
        FUZZ_EXPECT(hak_conf_get(option->name, &value) && value == option->expected);
    }
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
    bool is_strict = option_named("strict")->expected != 0;
    FUZZ_EXPECT(is_read == !(is_strict && mistakes != 0));
    values_compare();
    unsigned lines = mistakes + !is_read + (wants_help ? OPTIONS + PRESETS : 0) +
                     (option_named("show")->expected != 0 ? OPTIONS : 0);
    FUZZ_EXPECT(!is_one_line_each || newlines(said) == lines || capture_is_full());
    return 0;
}
