/* SPDX-License-Identifier: MIT
 *
 * Text without allocation: a bounded line, appended to piece by piece, in one thread. A full line
 * goes to its sink; without one the rest is cut off. */
#ifndef HAK_BASE_FMT_H
#define HAK_BASE_FMT_H

#include "base/compiler.h"
#include "base/words.h"

#include <stdarg.h>
#include <string.h>

enum { HAK_LINE_TEXT = 512 };

/* The target of longer texts, piece by piece. */
typedef struct hak_sink {
    void (*put)(void *context, const char *data, size_t length);
    void *context;
} hak_sink_t;

typedef struct hak_text {
    char *data;
    size_t length;
    size_t capacity;
    const hak_sink_t *sink; /* takes the lines of a full text; NULL: the rest is cut off */
} hak_text_t;

/* Defines an empty text, with one byte beyond its capacity. */
#define HAK_TEXT(name, bytes)                                                                      \
    char name##_data[(bytes) + 1];                                                                 \
    hak_text_t name = {.data = name##_data, .capacity = (bytes)}

/* The text as a string; only for HAK_TEXT. */
HAK_INLINE const char *hak_text_string(hak_text_t *text) {
    text->data[text->length] = '\0';
    return text->data;
}
void hak_text_str(hak_text_t *text, const char *s);
void hak_text_mem(hak_text_t *text, const char *s, size_t length);
void hak_text_uint(hak_text_t *text, uint64_t value);
void hak_text_hex(hak_text_t *text, uint64_t value);
/* Understands %s %u (unsigned) %z (size_t) %l (uint64_t) %m (const char *, size_t: so
 * many characters) %x (uint64_t, with 0x) %p %c %%. */
void hak_text_format(hak_text_t *text, const char *format, ...);
/* Sends all of it to its sink. */
void hak_text_flush(hak_text_t *text);
void hak_text_format_list(hak_text_t *text, const char *format, va_list args);

/* As hak_text_format, of any length. */
void hak_sink_format(const hak_sink_t *sink, const char *format, ...);

/* Whether the text is that word. */
HAK_INLINE bool hak_is_word(const char *word, const char *s, size_t length) {
    return strlen(word) == length && memcmp(word, s, length) == 0;
}
/* Value of a decimal number with an optional suffix k, m, g or t (powers of 1024). false: none. */
bool hak_parse_size(const char *s, size_t length, uint64_t *value);
/* Value of the decimal number behind the leading blanks; moves *text behind it. false: there is
 * none before the end, it overflows, or something else than a blank or the end follows. */
bool hak_parse_number(const char **text, const char *end, uint64_t *value);
/* Value of the leading hexadecimal digits (0-9, a-f); moves *s behind them. */
uint64_t hak_parse_hex(const char **s);

#endif
