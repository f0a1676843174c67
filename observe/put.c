/* SPDX-License-Identifier: MIT */
#include "put.h"

/* Rounds as `hakmem-run view` does. */
uint64_t obs_rounded(uint64_t value, uint64_t unit) {
    uint64_t whole = value / unit, twice = value % unit * 2;
    return whole + (twice > unit || (twice == unit && whole % 2 != 0));
}

const char *obs_size_text(char buffer[OBS_SIZE_BYTES], uint64_t bytes) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    enum { LAST = sizeof names / sizeof *names - 1 };
    hak_text_t text = {.data = buffer, .capacity = OBS_SIZE_BYTES - 1};
    unsigned power = 0;
    while (power < LAST && bytes * 2 >= 1999ull << 10 * power) {
        power++;
    }
    uint64_t unit = 1ull << 10 * power;
    if (power == 0 || bytes * 20 >= unit * 1999) {
        hak_text_format(&text, "%l", obs_rounded(bytes, unit));
    } else if (bytes * 200 >= unit * 1999) {
        uint64_t tenths = obs_rounded(bytes * 10, unit);
        hak_text_format(&text, "%l.%l", tenths / 10, tenths % 10);
    } else {
        uint64_t parts = obs_rounded(bytes * 100, unit);
        hak_text_format(&text, "%l.%l%l", parts / 100, parts / 10 % 10, parts % 10);
    }
    hak_text_format(&text, " %s", names[power]);
    return hak_text_string(&text);
}

void obs_put_quoted(const hak_sink_t *sink, const char *s) {
    static const char digits[] = "0123456789abcdef";
    HAK_TEXT(text, HAK_LINE_TEXT);
    text.sink = sink;
    hak_text_str(&text, "\"");
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            hak_text_format(&text, "\\u00%c%c", digits[c >> 4], digits[c & 15]);
        } else {
            hak_text_mem(&text, s, 1);
        }
    }
    hak_text_str(&text, "\"");
    hak_text_flush(&text);
}

/* Newton's method from above: no step falls below the root. */
double obs_square_root(double x) {
    double root = x > 1 ? x : 1, next = (root + x / root) / 2;
    while (next < root) {
        root = next;
        next = (root + x / root) / 2;
    }
    return x > 0 ? root : 0;
}
