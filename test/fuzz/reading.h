/* SPDX-License-Identifier: MIT
 *
 * Second readings of the texts that files_fuzz.c has the core read: plain and slow. */
#ifndef HAK_TEST_FUZZ_READING_H
#define HAK_TEST_FUZZ_READING_H

#include "fuzz/fuzz.h"
#include "os/optional.h"

/* Digits up to `length`; false: none, or above 64 bits. */
static inline bool reading_digits(const char *text, size_t length, uint64_t *value) {
    unsigned __int128 wide = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || wide > UINT64_MAX) {
            return false;
        }
        wide = wide * 10 + (unsigned)(text[i] - '0');
    }
    *value = (uint64_t)wide;
    return length != 0 && wide <= UINT64_MAX;
}

/* A number with perhaps one letter behind. */
static inline bool reading_size(const char *text, size_t length, uint64_t *value) {
    static const char suffixes[] = "kKmMgGtT";
    const char *suffix = length != 0 ? memchr(suffixes, text[length - 1], 8) : NULL;
    if (suffix == NULL) {
        return reading_digits(text, length, value);
    }
    unsigned shift = (unsigned)((suffix - suffixes) / 2 + 1) * 10;
    if (!reading_digits(text, length - 1, value) || *value > UINT64_MAX >> shift) {
        return false;
    }
    *value <<= shift;
    return true;
}

/* The next word, between blanks, line ends and zeros; its length, 0: there is none. */
static inline size_t reading_word(const char **text, const char *end) {
    while (*text < end && (**text == ' ' || **text == '\n' || **text == '\0')) {
        ++*text;
    }
    size_t length = 0;
    while (*text + length < end && (*text)[length] != ' ' && (*text)[length] != '\n' &&
           (*text)[length] != '\0') {
        length++;
    }
    return length;
}

static inline unsigned reading_quota(const char *text, size_t length) {
    const char *end = text + length;
    uint64_t number[2];
    for (unsigned i = 0; i < 2; i++) {
        size_t word = reading_word(&text, end);
        if (!reading_digits(text, word, &number[i]) || number[i] == 0) {
            return HAK_OS_NO_QUOTA;
        }
        text += word;
    }
    unsigned __int128 cpus = ((unsigned __int128)number[0] + number[1] - 1) / number[1];
    return cpus < HAK_OS_NO_QUOTA ? (unsigned)cpus : HAK_OS_NO_QUOTA;
}

static inline bool reading_path(const char *text, char *path, size_t capacity) {
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (length >= 3 && memcmp(line, "0::", 3) == 0) {
            if (length - 3 >= capacity || (length > 3 && line[3] != '/')) {
                return false;
            }
            snprintf(path, capacity, "%.*s", (int)length - 3, line + 3);
            bool is_outside = strstr(path, "/..") != NULL || strcmp(path, "/") == 0;
            path[is_outside ? 0 : length - 3] = '\0';
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* Of entries that end within what is read of the file: half a value would be a wrong one. */
static inline bool reading_variable(const char *text, size_t length, const char *name, char *value,
                                    size_t capacity) {
    enum { READ_MOST = 8191 };
    bool is_all = length < READ_MOST;
    length = length < READ_MOST ? length : READ_MOST;
    for (size_t at = 0; at < length;) {
        size_t entry = strnlen(text + at, length - at);
        bool is_whole = is_all || at + entry < length;
        const char *equals = memchr(text + at, '=', entry);
        if (is_whole && equals != NULL && (size_t)(equals - (text + at)) == strlen(name) &&
            memcmp(text + at, name, strlen(name)) == 0) {
            size_t bytes = entry - strlen(name) - 1;
            snprintf(value, capacity, "%.*s", (int)bytes, equals + 1);
            return true;
        }
        at += entry + 1;
    }
    return false;
}

#endif
