/* SPDX-License-Identifier: MIT
 *
 * Stands behind ours in a plugin's order, with behind_library.c: an allocator that wraps dlopen. */
#include <dlfcn.h>
#include <stddef.h>

int unloaded_opens;

void *dlopen(const char *file, int mode) {
    void *(*next)(const char *, int) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    unloaded_opens++;
    return next(file, mode);
}
