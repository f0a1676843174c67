/* SPDX-License-Identifier: MIT
 *
 * What every unit test includes. The core is linked with the OS test double and only its hak_
 * names, so the plain malloc of a test is the C library's. Global state of the core lives as long
 * as the process: tests compare before and after instead of assuming a clean slate. */
#ifndef HAK_TEST_UNIT_UNIT_H
#define HAK_TEST_UNIT_UNIT_H

/* cmocka wants these four before its own header */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "double/rng.h"

/* Under qemu-user, which hangs now and then in a child of a process with threads. */
static inline bool unit_is_emulated(void) {
    return getenv("HAKMEM_EMULATED") != NULL;
}

/* How often: under an emulator, which takes twenty times as long, a quarter but with HAKMEM_FULL=1.
 */
static inline unsigned unit_rounds(unsigned all) {
    return unit_is_emulated() && getenv("HAKMEM_FULL") == NULL ? all / 4 : all;
}

#if defined(__SANITIZE_THREAD__)
#define UNIT_IS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNIT_IS_TSAN 1
#endif
#endif
#ifndef UNIT_IS_TSAN
#define UNIT_IS_TSAN 0
#endif

#define UNIT_COUNT(array) (sizeof(array) / sizeof *(array))
#define UNIT_MAIN(tests)                                                                           \
    int main(void) {                                                                               \
        return cmocka_run_group_tests((tests), NULL, NULL) == 0 ? 0 : 1;                           \
    }

/* A failed expectation names the case of a loop it happened in. */
#define UNIT_EXPECT(condition, ...)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("case: " __VA_ARGS__);                                                     \
            print_error("\n");                                                                     \
            assert_true(condition);                                                                \
        }                                                                                          \
    } while (0)

/* mlock of the kernel: under sanitizers that of the C library does nothing. */
static inline bool unit_lock_memory(const void *from, size_t bytes) {
    return syscall(SYS_mlock, from, bytes) == 0;
}

static inline bool unit_unlock_memory(const void *from, size_t bytes) {
    return syscall(SYS_munlock, from, bytes) == 0;
}

/* Every byte of the range has the value. */
static inline bool unit_is_filled(const void *from, size_t bytes, unsigned char value) {
    const unsigned char *at = from;
    return bytes == 0 || (at[0] == value && memcmp(at, at + 1, bytes - 1) == 0);
}

#endif
