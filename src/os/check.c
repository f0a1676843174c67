/* SPDX-License-Identifier: MIT
 *
 * The fatal report. */
#include "base/check.h"

#include "base/fmt.h"
#include "base/knobs.h"
#include "base/wanted.h"
#include "os/os.h"

#define HAK_FATAL_TEXT(name, text) text,
static const char *const fatal_text[] = {HAK_FATAL_KINDS(HAK_FATAL_TEXT)};

const char *hak_fatal_text(hak_fatal_kind_t kind) {
    return kind < HAK_FATAL_COUNT ? fatal_text[kind] : "unknown";
}

void hak_print_line(hak_text_t *line) {
    line->data[line->length] = '\n';
    hak_os_write(2, line->data, line->length + 1);
}

/* Begins another part of what stands in parentheses. */
static void fatal_part(hak_text_t *text, bool *is_open) {
    hak_text_str(text, *is_open ? "; " : " (");
    *is_open = true;
}

#define FATAL_BIT(name) (1u << HAK_FATAL_##name)

/* What to do next, where the line is all there is. Kinds that show long after the mistake (`late`)
 * show at once where every block is guarded; `others` are no misuse of memory. */
static void fatal_advise(hak_text_t *text, hak_fatal_kind_t kind, bool *is_open) {
    static const uint32_t others =
        FATAL_BIT(OPTION_STRICT) | FATAL_BIT(INLINE_VERSION) | FATAL_BIT(INVARIANT);
    static const uint32_t late = FATAL_BIT(DOUBLE_FREE) | FATAL_BIT(DEAD_FREE) |
                                 FATAL_BIT(CORRUPT_LINK) | FATAL_BIT(OVERFLOW);
    bool is_debug = hak_load_relaxed(&hak_knobs.guard_rate) == 1 &&
                    hak_load_relaxed(&hak_knobs.bin_max_blocks) == 0;
    if (hak_services.trace == NULL && (others >> kind & 1) == 0) {
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
    if (address != NULL && hak_services.describe != NULL) {
        fatal_part(&text, &is_open);
        hak_services.describe(&text, address);
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

void hak_fatal(hak_fatal_kind_t kind, const void *address, const char *detail) {
    fatal_line(kind, address, detail, false);
    if (hak_services.trace != NULL) {
        hak_services.trace();
    }
    hak_os_abort();
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
