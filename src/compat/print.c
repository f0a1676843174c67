/* SPDX-License-Identifier: MIT
 *
 * malloc_stats_print: jemalloc's first lines, then our own totals, unless as JSON. */
#include "base/fmt.h"
#include "compat/control.h"
#include "os/os.h"
#include "stat/stat.h"

#include <string.h>

#if HAK_OVERRIDE
HAK_EXPORT void (*malloc_message)(void *context, const char *text);
#define PRINT_MESSAGE malloc_message
#else
void (*hak_je_malloc_message)(void *context, const char *text);
#define PRINT_MESSAGE hak_je_malloc_message
#endif

typedef struct print {
    void (*write)(void *context, const char *text);
    void *context;
} print_t;

/* The receiver wants strings. */
static void print_put(void *context, const char *data, size_t length) {
    const print_t *print = context;
    if (print->write == NULL) {
        hak_os_write(2, data, length);
        return;
    }
    char piece[HAK_LINE_TEXT + 1];
    for (size_t part; length != 0; data += part, length -= part) {
        part = length < HAK_LINE_TEXT ? length : (size_t)HAK_LINE_TEXT;
        memcpy(piece, data, part);
        piece[part] = '\0';
        print->write(print->context, piece);
    }
}

static const char print_heads[2][160] = {
    "___ Begin jemalloc statistics ___\nVersion: \"%s\"\nAllocated: %l, active: %l, metadata: %l, "
    "resident: %l, mapped: %l, retained: %l\n",
    "{\"jemalloc\":{\"version\":\"%s\",\"stats\":{\"allocated\":%l,\"active\":%l,\"metadata\":%l,"
    "\"resident\":%l,\"mapped\":%l,\"retained\":%l},\"ignored\":["};
/* A setting without effect, the next one, before our report, the end: as text, as JSON. */
static const char print_forms[2][4][40] = {
    {"Set without effect here: %s\n", "Set without effect here: %s\n", "",
     "--- End jemalloc statistics ---\n"},
    {"\"%s\"", ",\"%s\"", "]", "}}\n"},
};

void hak_je_malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                               const char *options) {
    print_t print = {.write = write != NULL ? write : PRINT_MESSAGE, .context = context};
    const hak_sink_t sink = {.put = print_put, .context = &print};
    uint64_t epoch = 1;
    bool is_json = options != NULL && strchr(options, 'J') != NULL;
    if (hak_je_mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0) {
        return; /* a signal handler within the allocator */
    }
    const char(*form)[40] = print_forms[is_json];
    const hak_compat_figures_t *now = hak_compat_figures();
    hak_sink_format(&sink, print_heads[is_json], HAK_COMPAT_VERSION, now->allocated, now->active,
                    now->metadata, now->resident, now->mapped, now->retained);
    unsigned at = 0, line = 0;
    for (const char *name; (name = hak_compat_ignored(&at)) != NULL; line = 1) {
        hak_sink_format(&sink, form[line], name);
    }
    hak_sink_format(&sink, form[2]);
    if (!is_json) {
        hak_stat_write_text(&sink);
    }
    hak_sink_format(&sink, form[3]);
}

HAK_JE_ALIAS(malloc_stats_print)
