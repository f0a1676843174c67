/* SPDX-License-Identifier: MIT
 *
 * Catches a fatal report of the core in the process: the double keeps the line and jumps back. */
#ifndef HAK_TEST_UNIT_FATAL_H
#define HAK_TEST_UNIT_FATAL_H

#include "base/check.h"
#include "base/wanted.h"
#include "double/os_fault.h"
#include "os/lock.h"
#include "unit/unit.h"

static struct unit_fatal {
    jmp_buf back;
    char line[8192];
    size_t length;
    bool is_fatal;
} unit_fatal;

static inline bool unit_fatal_report(const char *data, size_t length) {
    size_t space = sizeof unit_fatal.line - 1 - unit_fatal.length;
    size_t kept = length < space ? length : space;
    if (data == NULL) {
        unit_fatal.is_fatal = true;
        longjmp(unit_fatal.back, 1);
    }
    memcpy(unit_fatal.line + unit_fatal.length, data, kept);
    unit_fatal.length += kept;
    unit_fatal.line[unit_fatal.length] = '\0';
    return true;
}

static inline void unit_fatal_begin(void) {
    unit_fatal.length = 0;
    unit_fatal.line[0] = '\0';
    unit_fatal.is_fatal = false;
    hak_os_fault_reports(unit_fatal_report);
}

static inline void unit_fatal_end(void) {
    hak_os_fault_reports(NULL);
}

/* The statement ends in a fatal report whose line contains `text`. */
#define UNIT_EXPECT_FATAL(statement, text)                                                         \
    do {                                                                                           \
        unit_fatal_begin();                                                                        \
        if (setjmp(unit_fatal.back) == 0) {                                                        \
            statement;                                                                             \
        }                                                                                          \
        unit_fatal_end();                                                                          \
        hak_lock_unlock_owners();                                                                  \
        assert_true(unit_fatal.is_fatal);                                                          \
        UNIT_EXPECT(strstr(unit_fatal.line, text) != NULL, "'%s' in '%s'", text, unit_fatal.line); \
    } while (0)

#endif
