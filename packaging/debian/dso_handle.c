/* SPDX-License-Identifier: MIT
 *
 * What the library needs of the compiler's start files, which lack the marks for control-flow integrity: one file without them
 * takes the marks from the whole library. */
extern void *__dso_handle;
__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;
