/* SPDX-License-Identifier: MIT
 *
 * The fatal report, and the definitions of counters and knobs. */
#include "base/check.h"

#include "base/counters.h"
#include "base/fmt.h"
#include "base/knobs.h"
#include "base/mailbox.h"
#include "base/wanted.h"

hak_check_sink_t hak_check_sink;
hak_process_counters_t hak_counters;
HAK_LOCKED_STATE HAK_LINE_ALIGNED uint32_t hak_wanted; /* every refill reads it */
hak_services_t hak_services;
HAK_LINE_ALIGNED hak_mailbox_t hak_mailbox; /* every event reads its first words */

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

/* Begins another part of what stands in parentheses. */
static void fatal_part(hak_text_t *text, bool *is_open) {
    hak_text_str(text, *is_open ? "; " : " (");
    *is_open = true;
}

#define FATAL_BIT(name) (1u << HAK_FATAL_##name)

/* What to do next, where the line is all there is. Kinds that are found long after the mistake are
 * found by the mistake itself where every block is guarded. */
static void fatal_advise(hak_text_t *text, hak_fatal_kind_t kind, bool *is_open) {
    static const uint32_t others =
        FATAL_BIT(OPTION_STRICT) | FATAL_BIT(INLINE_VERSION) | FATAL_BIT(INVARIANT);
    static const uint32_t late = FATAL_BIT(DOUBLE_FREE) | FATAL_BIT(DEAD_FREE) |
                                 FATAL_BIT(CORRUPT_LINK) | FATAL_BIT(OVERFLOW);
    bool is_debug = hak_load_relaxed(&hak_knobs.guard_rate) == 1 &&
                    hak_load_relaxed(&hak_knobs.bin_max_blocks) == 0;
    if (hak_check_sink.trace == NULL && (others >> kind & 1) == 0) {
        fatal_part(text, is_open);
        hak_text_str(text, "for stacks: HAKMEM_OPTIONS=backtrace:1");
    }
    if (!is_debug && (late >> kind & 1) != 0) {
        fatal_part(text, is_open);
        hak_text_str(text, "to catch it earlier: HAKMEM_PROFILE=debug");
    }
}

static void fatal_line(hak_fatal_kind_t kind, const void *address, const char *detail,
                       bool has_stacks) {
    HAK_TEXT(text, HAK_LINE_TEXT - 1);
    bool is_open = false;
    hak_text_format(&text, "hakmem: %s", hak_fatal_text(kind));
    if (address != NULL) {
        hak_text_format(&text, ": %p", address);
    }
    if (detail != NULL) {
        fatal_part(&text, &is_open);
        hak_text_str(&text, detail);
    }
    if (address != NULL && hak_check_sink.describe != NULL) {
        fatal_part(&text, &is_open);
        hak_check_sink.describe(&text, address);
    }
    if (!has_stacks) {
        fatal_advise(&text, kind, &is_open);
    }
    hak_text_str(&text, is_open ? ")" : "");
    hak_print_line(&text);
}

void hak_fatal_say(hak_fatal_kind_t kind, const void *address, const char *detail) {
    fatal_line(kind, address, detail, true);
}

void hak_fatal_end(void) {
    if (hak_check_sink.abort != NULL) {
        hak_check_sink.abort();
    }
    __builtin_trap();
}

void hak_fatal(hak_fatal_kind_t kind, const void *address, const char *detail) {
    fatal_line(kind, address, detail, false);
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
