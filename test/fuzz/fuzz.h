/* SPDX-License-Identifier: MIT
 *
 * What every fuzz target includes: the input as a tape that is read once, and a check that ends the
 * process, upon which libFuzzer keeps the input. */
#ifndef HAK_TEST_FUZZ_FUZZ_H
#define HAK_TEST_FUZZ_FUZZ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_tape {
    const uint8_t *at, *end;
} fuzz_tape_t;

/* Zeros follow the end. */
static inline unsigned fuzz_byte(fuzz_tape_t *tape) {
    return tape->at < tape->end ? *tape->at++ : 0;
}

static inline unsigned fuzz_pair(fuzz_tape_t *tape) {
    unsigned low = fuzz_byte(tape);
    return low | fuzz_byte(tape) << 8;
}

/* Where standard error was at start: libFuzzer may close it, a target may look at it. */
static int fuzz_report_fd = 2;

__attribute__((constructor)) static void fuzz_keep_report_fd(void) {
    int copy = fcntl(2, F_DUPFD_CLOEXEC, 3);
    fuzz_report_fd = copy < 0 ? 2 : copy;
}

#define FUZZ_EXPECT(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(fuzz_report_fd, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
