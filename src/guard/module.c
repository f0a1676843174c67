/* SPDX-License-Identifier: MIT
 *
 * Which file an address of code is from, by /proc/self/maps; for reports, so one at a time, in a
 * few KiB of static memory. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/fmt.h"
#include "guard/stack.h"
#include "os/os.h"

#include <string.h>

enum {
    MODULE_FRAMES = 32,
    MODULE_PATH_BYTES = 128,
    MODULE_TEXT_BYTES = 4096, /* a line of the file is shorter, but for very long paths */
};

typedef struct module_place {
    char path[MODULE_PATH_BYTES]; /* "": none */
    uintptr_t offset;             /* from where the file's first byte is mapped */
    bool is_code;
} module_place_t;

/* One line: start-end rwxp offset device inode path */
typedef struct module_line {
    uintptr_t start, end, offset;
    bool is_code;
    const char *path;
    size_t path_length;
} module_line_t;

HAK_LOCKED_STATE HAK_LARGE_STATE(3) struct module_state {
    uint32_t is_taken; /* [atomic] all the rest is of the thread that set it */
    const uintptr_t *addresses;
    unsigned count;
    char last[MODULE_PATH_BYTES]; /* file of the mapping before */
    uintptr_t last_base;          /* where its first byte is mapped */
    module_place_t place[MODULE_FRAMES];
    char text[MODULE_TEXT_BYTES];
} hak_modules;

/* Moves behind the number. */
static uintptr_t module_hex(const char **at) {
    uintptr_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uintptr_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        } else {
            return value;
        }
    }
}

/* Moves behind a field and the blanks that follow it. */
static void module_skip(const char **at) {
    while (**at != ' ' && **at != '\0') {
        (*at)++;
    }
    while (**at == ' ') {
        (*at)++;
    }
}

/* The text ends in 0. */
static module_line_t module_parse(const char *at) {
    module_line_t line = {.start = module_hex(&at)};
    at += *at == '-';
    line.end = module_hex(&at);
    module_skip(&at);
    line.is_code = at[0] != '\0' && at[1] != '\0' && at[2] == 'x';
    module_skip(&at);
    line.offset = module_hex(&at);
    module_skip(&at);
    module_skip(&at);
    module_skip(&at);
    line.path = at;
    line.path_length = strnlen(at, MODULE_PATH_BYTES - 1);
    return line;
}

/* Mappings of a file follow each other, from its first byte on. */
static uintptr_t module_base(const module_line_t *line) {
    struct module_state *state = &hak_modules;
    bool is_same = line->path_length != 0 &&
                   strncmp(state->last, line->path, line->path_length) == 0 &&
                   state->last[line->path_length] == '\0';
    if (!is_same || line->offset == 0) {
        memcpy(state->last, line->path, line->path_length);
        state->last[line->path_length] = '\0';
        state->last_base = line->start - line->offset;
    }
    return state->last_base;
}

static void module_match(const char *text) {
    module_line_t line = module_parse(text);
    uintptr_t base = module_base(&line);
    for (unsigned i = 0; i < hak_modules.count; i++) {
        module_place_t *place = &hak_modules.place[i];
        uintptr_t address = hak_modules.addresses[i];
        if (address >= line.start && address < line.end) {
            memcpy(place->path, line.path, line.path_length);
            place->path[line.path_length] = '\0';
            place->offset = address - base;
            place->is_code = line.is_code;
        }
    }
}

/* Takes whole lines off the text; returns what is left. Of a line that fills it all, the head is
 * taken for the line, and the rest for one that matches nothing. */
static size_t module_take_lines(char *text, size_t length) {
    size_t taken = 0;
    for (;;) {
        char *end = memchr(text + taken, '\n', length - taken);
        if (end == NULL && (taken != 0 || length < MODULE_TEXT_BYTES - 1)) {
            break;
        }
        end = end == NULL ? text + length - 1 : end;
        *end = '\0';
        module_match(text + taken);
        taken = (size_t)(end - text) + 1;
    }
    memmove(text, text + taken, length - taken);
    return length - taken;
}

static void module_print(unsigned number, uintptr_t address, const module_place_t *place) {
    char buffer[MODULE_PATH_BYTES + 96];
    hak_text_t text;
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_format(&text, "hakmem:     #%u %x", number, (uint64_t)address);
    if (place != NULL && place->path[0] != '\0') {
        hak_text_format(&text, " %s+%x", place->path, (uint64_t)place->offset);
    }
    hak_text_str(&text, "\n");
    hak_check_sink.write(2, text.data, text.length);
}

void hak_guard_stack_print(const uintptr_t *addresses, unsigned count) {
    struct module_state *state = &hak_modules;
    if (hak_check_sink.write == NULL) {
        return;
    }
    count = count < MODULE_FRAMES ? count : MODULE_FRAMES;
    bool is_ours = hak_swap_acquire(&state->is_taken, 1) == 0; /* pairs MODULE-1 */
    bool is_known = false;
    if (is_ours) {
        state->addresses = addresses;
        state->count = count;
        state->last[0] = '\0';
        for (unsigned i = 0; i < count; i++) {
            state->place[i].path[0] = '\0';
            state->place[i].is_code = false;
        }
        is_known = hak_os_read_pieces("/proc/self/maps", state->text, MODULE_TEXT_BYTES - 1,
                                      module_take_lines);
    }
    for (unsigned i = 0; i < count && (!is_known || state->place[i].is_code); i++) {
        module_print(i, addresses[i], is_known ? &state->place[i] : NULL);
    }
    if (is_ours) {
        hak_store_release(&state->is_taken, 0); /* pairs MODULE-1 */
    }
}
