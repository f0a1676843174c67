/* SPDX-License-Identifier: MIT
 *
 * The fatal report, and the definitions of counters and knobs. */
#include "base/check.h"

#include "base/counters.h"
#include "base/fmt.h"
#include "base/knobs.h"
#include "base/wanted.h"

hak_check_sink_t hak_check_sink;
hak_process_counters_t hak_counters;
HAK_LOCKED_STATE HAK_LINE_ALIGNED uint32_t hak_wanted; /* every refill reads it */
hak_reclaim_hooks_t hak_reclaim_hooks;

#define KNOB_OWN(knob, initial)
#define KNOB_START(knob, initial) .knob = (initial),
#define KNOB_LIVE KNOB_START
#define KNOB_ALWAYS KNOB_START
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) KNOB_##kept(knob, initial)
/* The defaults, in force until conf/ has read the options. */
hak_knobs_t hak_knobs = {
#include "base/options.def"
    .limit_soft_bytes = SIZE_MAX,
    .limit_hard_bytes = SIZE_MAX,
};
#undef HAK_OPTION

#define HAK_FATAL_TEXT(name, text) text,
static const char *const fatal_text[] = {HAK_FATAL_KINDS(HAK_FATAL_TEXT)};

const char *hak_fatal_text(hak_fatal_kind_t kind) {
    return kind < HAK_FATAL_COUNT ? fatal_text[kind] : "unknown";
}

void hak_print_line(hak_text_t *line) {
    line->data[line->length] = '\n';
    if (hak_check_sink.write != NULL) {
        hak_check_sink.write(2, line->data, line->length + 1);
    }
}

void hak_fatal_say(hak_fatal_kind_t kind, const void *address, const char *detail) {
    HAK_TEXT(text, HAK_LINE_TEXT - 1);
    hak_text_format(&text, "hakmem: %s", hak_fatal_text(kind));
    if (address != NULL) {
        hak_text_format(&text, ": %p", address);
    }
    bool is_described = address != NULL && hak_check_sink.describe != NULL;
    if (detail != NULL || is_described) {
        hak_text_format(&text, " (%s%s", detail != NULL ? detail : "",
                        detail != NULL && is_described ? "; " : "");
        if (is_described) {
            hak_check_sink.describe(&text, address);
        }
        hak_text_str(&text, ")");
    }
    hak_print_line(&text);
}

void hak_fatal_end(void) {
    if (hak_check_sink.abort != NULL) {
        hak_check_sink.abort();
    }
    __builtin_trap();
}

void hak_fatal(hak_fatal_kind_t kind, const void *address, const char *detail) {
    hak_fatal_say(kind, address, detail);
    if (hak_check_sink.trace != NULL) {
        hak_check_sink.trace();
    }
    hak_fatal_end();
}

void hak_warn(const char *format, ...) {
    HAK_TEXT(text, HAK_LINE_TEXT - 1); /* in a signal handler, too: stacks may be small */
    va_list args;
    hak_text_str(&text, "hakmem: ");
    va_start(args, format);
    hak_text_format_list(&text, format, args);
    va_end(args);
    hak_print_line(&text);
}
