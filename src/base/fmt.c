/* SPDX-License-Identifier: MIT */
#include "base/fmt.h"

static void text_send(hak_text_t *text, size_t length) {
    text->sink->put(text->sink->context, text->data, length);
    text->length -= length;
    memmove(text->data, text->data + length, text->length);
}

void hak_text_flush(hak_text_t *text) {
    text_send(text, text->length);
}

/* Of a full text the whole lines, so that other writers' lines come between lines only. */
static void text_send_lines(hak_text_t *text) {
    size_t length = text->length;
    while (length != 0 && text->data[length - 1] != '\n') {
        length--;
    }
    text_send(text, length != 0 ? length : text->length);
}

void hak_text_mem(hak_text_t *text, const char *s, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text->length == text->capacity && text->sink != NULL) {
            text_send_lines(text);
        }
        if (text->length < text->capacity) {
            text->data[text->length++] = s[i];
        }
    }
}

void hak_text_str(hak_text_t *text, const char *s) {
    hak_text_mem(text, s, s != NULL ? strlen(s) : 0);
}

static void text_number(hak_text_t *text, uint64_t value, unsigned radix) {
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % radix];
        value /= radix;
    } while (value != 0);
    hak_text_mem(text, digits + at, sizeof digits - at);
}

void hak_text_uint(hak_text_t *text, uint64_t value) {
    text_number(text, value, 10);
}

void hak_text_hex(hak_text_t *text, uint64_t value) {
    hak_text_str(text, "0x");
    text_number(text, value, 16);
}

HAK_COLD void hak_text_format_list(hak_text_t *text, const char *format, va_list args) {
    for (const char *f = format; *f != '\0'; f++) {
        if (*f != '%') {
            hak_text_mem(text, f, 1);
            continue;
        }
        const char *s;
        char c;
        switch (*++f) {
        case 's':
            hak_text_str(text, va_arg(args, const char *));
            break;
        case 'm':
            s = va_arg(args, const char *);
            hak_text_mem(text, s, va_arg(args, size_t));
            break;
        case 'u':
            hak_text_uint(text, va_arg(args, unsigned));
            break;
        case 'z': /* size_t has 64 bits: base/config.h */
        case 'l':
            hak_text_uint(text, va_arg(args, uint64_t));
            break;
        case 'x':
            hak_text_hex(text, va_arg(args, uint64_t));
            break;
        case 'p':
            hak_text_hex(text, (uint64_t)(uintptr_t)va_arg(args, const void *));
            break;
        case 'c':
            c = (char)va_arg(args, int);
            hak_text_mem(text, &c, 1);
            break;
        default:
            hak_text_mem(text, f, 1);
            break;
        }
    }
}

void hak_text_format(hak_text_t *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hak_text_format_list(text, format, args);
    va_end(args);
}

void hak_sink_format(const hak_sink_t *sink, const char *format, ...) {
    va_list args;
    HAK_TEXT(text, HAK_LINE_TEXT);
    text.sink = sink;
    va_start(args, format);
    hak_text_format_list(&text, format, args);
    va_end(args);
    hak_text_flush(&text);
}

/* Value of the leading digits; moves *s behind them. false: there are none, or it overflows. */
static bool parse_digits(const char **s, const char *end, uint64_t *value) {
    bool is_right = false, has_overflow = false;
    for (*value = 0; *s < end && **s >= '0' && **s <= '9'; ++*s) {
        has_overflow |= __builtin_mul_overflow(*value, 10u, value);
        has_overflow |= __builtin_add_overflow(*value, (uint64_t)(**s - '0'), value);
        is_right = !has_overflow;
    }
    return is_right;
}

bool hak_parse_size(const char *s, size_t length, uint64_t *value) {
    static const char suffixes[] = "kmgt";
    const char *end = s + length;
    uint64_t total;
    if (!parse_digits(&s, end, &total)) {
        return false;
    }
    if (s < end) {
        const char *suffix = strchr(suffixes, *s | 0x20);
        unsigned shift = suffix != NULL ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
        if (shift == 0 || s + 1 != end || total > (UINT64_MAX >> shift)) {
            return false;
        }
        total <<= shift;
    }
    *value = total;
    return true;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\0';
}

bool hak_parse_number(const char **text, const char *end, uint64_t *value) {
    while (*text < end && is_blank(**text)) {
        ++*text;
    }
    return parse_digits(text, end, value) && (*text == end || is_blank(**text));
}

uint64_t hak_parse_hex(const char **s) {
    uint64_t value = 0;
    for (;; (*s)++) {
        char c = **s;
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return value;
        }
    }
}
