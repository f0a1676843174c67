/* SPDX-License-Identifier: MIT
 *
 * What the core writes to standard error, as text. */
#ifndef HAK_TEST_FUZZ_CAPTURE_H
#define HAK_TEST_FUZZ_CAPTURE_H

#include "fuzz/fuzz.h"
#include "os/os.h"

#include <sys/mman.h>

enum { CAPTURE_MOST = 1 << 20 };

static char capture_text[CAPTURE_MOST + 1];
static int capture_file = -1;

static inline void capture_begin(void) {
    if (capture_file < 0) {
        capture_file = memfd_create("said", MFD_CLOEXEC);
        FUZZ_EXPECT(capture_file >= 0);
    }
    FUZZ_EXPECT(ftruncate(capture_file, 0) == 0 && lseek(capture_file, 0, SEEK_SET) == 0);
    FUZZ_EXPECT(dup2(capture_file, 2) == 2);
}

static inline const char *capture_end(void) {
    FUZZ_EXPECT(dup2(fuzz_report_fd, 2) == 2);
    ssize_t length = pread(capture_file, capture_text, CAPTURE_MOST, 0);
    FUZZ_EXPECT(length >= 0);
    capture_text[length] = '\0';
    return capture_text;
}

/* Then there may have been more. */
static inline bool capture_is_full(void) {
    return strlen(capture_text) == CAPTURE_MOST;
}

#endif
