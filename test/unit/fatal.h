/* SPDX-License-Identifier: MIT
 *
 * Catches a fatal report of the core in the process: the sink keeps the line and jumps back. */
#ifndef HAK_TEST_UNIT_FATAL_H
#define HAK_TEST_UNIT_FATAL_H

#include "base/check.h"
#include "os/lock.h"
#include "unit/unit.h"

static struct unit_fatal {
    jmp_buf back;
    hak_check_sink_t saved;
    char line[8192];
    size_t length;
    bool is_fatal;
} unit_fatal;

static inline void unit_fatal_write(int fd, const char *data, size_t length) {
    size_t space = sizeof unit_fatal.line - 1 - unit_fatal.length;
    size_t kept = length < space ? length : space;
    assert_int_equal(fd, 2);
    memcpy(unit_fatal.line + unit_fatal.length, data, kept);
    unit_fatal.length += kept;
    unit_fatal.line[unit_fatal.length] = '\0';
}

static inline void unit_fatal_abort(void) {
    unit_fatal.is_fatal = true;
    longjmp(unit_fatal.back, 1);
}

static inline void unit_fatal_begin(void) {
    unit_fatal.saved = hak_check_sink;
    unit_fatal.length = 0;
    unit_fatal.line[0] = '\0';
    unit_fatal.is_fatal = false;
    hak_check_sink.write = unit_fatal_write;
    hak_check_sink.abort = unit_fatal_abort;
}

/* The statement ends in a fatal report whose line contains `text`. */
#define UNIT_EXPECT_FATAL(statement, text)                                                         \
    do {                                                                                           \
        unit_fatal_begin();                                                                        \
        if (setjmp(unit_fatal.back) == 0) {                                                        \
            statement;                                                                             \
        }                                                                                          \
        hak_check_sink = unit_fatal.saved;                                                         \
        hak_lock_unlock_owners();                                                                  \
        assert_true(unit_fatal.is_fatal);                                                          \
        UNIT_EXPECT(strstr(unit_fatal.line, text) != NULL, "'%s' in '%s'", text, unit_fatal.line); \
    } while (0)

#endif
