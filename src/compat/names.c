/* SPDX-License-Identifier: MIT */

#include "compat/names.h"
#include "base/fmt.h"
#include "compat/control.h"
#include "compat/numbers.h"
#include "conf/conf.h"
#include "front/event.h"

#include <errno.h>
#include <string.h>

#define HAK_JE_NUMBER(name, type, value)                                                           \
    {name, "", value, HAK_JE_##type, HAK_JE_R, HAK_JE_KIND_NUMBER},
#define HAK_JE_WORD(name, text) {name, text, 0, HAK_JE_TEXT, HAK_JE_R, HAK_JE_KIND_TEXT},
#define HAK_JE_FIGURE(name, type, field)                                                           \
    {name, "", offsetof(hak_compat_figures_t, field), HAK_JE_##type, HAK_JE_R, HAK_JE_KIND_FIGURE},
#define HAK_JE_AT_START(name, type, field)                                                         \
    {name, "", offsetof(hak_jemalloc_conf_t, field), HAK_JE_##type, HAK_JE_R, HAK_JE_KIND_AT_START},
#define HAK_JE_SETTING(name, type, value)                                                          \
    {name, "", value, HAK_JE_##type, HAK_JE_RW, HAK_JE_KIND_SETTING},
#define HAK_JE_VALUE(name, type, access, kind)                                                     \
    {name, "", 0, HAK_JE_##type, HAK_JE_##access, HAK_JE_##kind},
const hak_je_row_t hak_je_rows[] = {
#include "compat/names.def"
    {"", "", 0, 0, 0, 0},
};
enum { NAME_ROWS = sizeof hak_je_rows / sizeof hak_je_rows[0] - 1, NAME_PARTS = 7 };

/* The part of a row's name between two dots; NULL: it has fewer. */
static const char *name_part(const hak_je_row_t *row, size_t index, size_t *length) {
    const char *part = row->name;
    *length = 0;
    for (; index != 0; index--) {
        part = strchr(part, '.');
        if (part == NULL) {
            return NULL;
        }
        part++;
    }
    *length = strcspn(part, ".");
    return part;
}

/* Whether a number is one of what the word before it counts. */
static bool name_has_number(const hak_je_row_t *row, size_t index, size_t number) {
    size_t length;
    const char *of = name_part(row, index - 1, &length);
    if (strncmp(of, "bin", 3) == 0) {
        return number < HAK_JE_BINS;
    }
    return *of == 'l' ? number < HAK_JE_LEXTENTS : hak_compat_is_arena_name(number);
}

/* Whether the part is that word, or may be that number. */
static bool name_matches(const hak_je_row_t *row, size_t index, const char *word, size_t length,
                         uint64_t *number) {
    size_t own_length;
    const char *own = name_part(row, index, &own_length);
    if (own == NULL || length == 0) {
        return false;
    }
    if (*own != '#') {
        return own_length == length && memcmp(own, word, length) == 0;
    }
    bool is_digit = *word >= '0' && *word <= '9';
    return is_digit && hak_parse_number(&word, word + length, number) &&
           name_has_number(row, index, *number);
}

int hak_je_mallctlnametomib(const char *name, size_t *mib, size_t *miblen) {
    if (name == NULL || mib == NULL || miblen == NULL) {
        return EINVAL;
    }
    size_t most, index = 0, from = 0, end = NAME_ROWS; /* rows that begin like the name */
    memcpy(&most, miblen, sizeof most);
    while (index < most) {
        size_t length = strcspn(name, ".");
        uint64_t number = 0;
        while (from < end && !name_matches(&hak_je_rows[from], index, name, length, &number)) {
            from++;
        }
        for (size_t i = from; i < end; i++) {
            end = name_matches(&hak_je_rows[i], index, name, length, &number) ? end : i;
        }
        if (from == end) {
            return ENOENT;
        }
        size_t part_length, part = from;
        part = *name_part(&hak_je_rows[from], index, &part_length) == '#' ? number : part;
        memcpy(&mib[index++], &part, sizeof part);
        if (name[length] == '\0') {
            break;
        }
        name += length + 1;
    }
    memcpy(miblen, &index, sizeof index);
    return 0;
}

/* Whether the names of two rows begin with the same parts. */
static bool names_share(size_t a, size_t b, size_t parts) {
    size_t length;
    const char *last = name_part(&hak_je_rows[b], parts - 1, &length);
    size_t bytes = (size_t)(last - hak_je_rows[b].name) + length;
    char next = hak_je_rows[a].name[bytes];
    return memcmp(hak_je_rows[a].name, hak_je_rows[b].name, bytes) == 0 &&
           (next == '.' || next == '\0');
}

const hak_je_row_t *hak_je_row_find(const size_t *mib, size_t length,
                                    size_t number[HAK_NAME_NUMBERS]) {
    size_t part[NAME_PARTS], bytes, numbers = 0;
    if (length == 0 || length > NAME_PARTS) {
        return NULL;
    }
    memcpy(part, mib, length * sizeof *mib); /* perhaps misaligned */
    size_t found = part[length - 1];
    const hak_je_row_t *row = &hak_je_rows[hak_least(found, NAME_ROWS)];
    if (found >= NAME_ROWS || name_part(row, length - 1, &bytes) == NULL ||
        name_part(row, length, &bytes) != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < length; i++) {
        bool is_number = *name_part(row, i, &bytes) == '#';
        if (is_number ? !name_has_number(row, i, part[i])
                      : part[i] >= NAME_ROWS || !names_share(part[i], found, i + 1)) {
            return NULL;
        }
        if (is_number) {
            number[numbers++] = part[i];
        }
    }
    return row;
}

HAK_JE_ALIAS(mallctlnametomib)
