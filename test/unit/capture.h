/* SPDX-License-Identifier: MIT
 *
 * What a piece of the core writes to standard error, as text. */
#ifndef HAK_TEST_UNIT_CAPTURE_H
#define HAK_TEST_UNIT_CAPTURE_H

#include "unit/unit.h"

static struct unit_capture {
    char text[65536];
    FILE *file;
    int saved_fd;
} unit_capture;

static inline void unit_capture_begin(void) {
    fflush(stderr);
    unit_capture.file = tmpfile();
    assert_non_null(unit_capture.file);
    unit_capture.saved_fd = dup(2);
    assert_int_equal(dup2(fileno(unit_capture.file), 2), 2);
}

static inline const char *unit_capture_end(void) {
    assert_int_equal(dup2(unit_capture.saved_fd, 2), 2);
    close(unit_capture.saved_fd);
    ssize_t length =
        pread(fileno(unit_capture.file), unit_capture.text, sizeof unit_capture.text - 1, 0);
    fclose(unit_capture.file);
    unit_capture.text[length < 0 ? 0 : length] = '\0';
    return unit_capture.text;
}

static inline unsigned unit_line_count(const char *text) {
    unsigned lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

#endif
