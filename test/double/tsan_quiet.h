/* SPDX-License-Identifier: MIT
 *
 * For a test that is ThreadSanitizer's run-time itself: the calls that are no access. Included by
 * one file of a program. */
#ifndef HAK_TEST_DOUBLE_TSAN_QUIET_H
#define HAK_TEST_DOUBLE_TSAN_QUIET_H

#define TSAN_QUIET(name, parameter)                                                                \
    void name(parameter);                                                                          \
    void name(parameter __attribute__((unused))) {                                                 \
    }

void __tsan_init(void);
void __tsan_init(void) {
}
TSAN_QUIET(__tsan_func_entry, void *caller)
void __tsan_func_exit(void);
void __tsan_func_exit(void) {
}
TSAN_QUIET(__tsan_acquire, void *at)
TSAN_QUIET(__tsan_release, void *at)

#endif
