/* SPDX-License-Identifier: MIT
 *
 * The libraries of deepbind_test.c: the outer one finds the inner one by its own search path only.
 */
#include <dlfcn.h>
#include <stdlib.h>

void *deepbind_make(size_t size) {
    return malloc(size);
}

void deepbind_drop(void *block) {
    free(block);
}

#ifdef DEEPBIND_INNER
void *deepbind_open_inner(void) {
    return dlopen(DEEPBIND_INNER, RTLD_NOW | RTLD_DEEPBIND);
}
#endif
