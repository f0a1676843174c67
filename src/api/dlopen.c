/* SPDX-License-Identifier: MIT
 *
 * dlopen without RTLD_DEEPBIND. With that flag a plugin looks its symbols up in its own libraries
 * first and finds the C library's free there, while its blocks come from us through everybody else:
 * php loads its extensions so. Only the shared library does this, and only while it serves the
 * family; with force_libc the flag stays.
 *
 * The C library finds its caller (search paths, $ORIGIN, namespace) by the return address, so we
 * have to jump there. */
#include "api/api.h"
#include "base/knobs.h"
#include "os/libc.h"

#if HAK_OVERRIDE && HAK_SHARED

#include <stdlib.h>

enum { DLOPEN_DEEPBIND = 8 };

typedef void *dlopen_t(const char *, int);

extern void *dlsym(void *, const char *);

/* The next one is looked up each time: a plugin that brought it and ours may be unloaded. */
HAK_EXPORT HAK_TAIL_CALLS void *dlopen(const char *file, int mode) {
    dlopen_t *next = (dlopen_t *)dlsym(HAK_LIBC_NEXT, "dlopen");
    if (next == NULL) {
        hak_os_abort(); /* a program that has dlopen has a C library that defines it */
    }
    hak_life_process_start();
    int kept = hak_load_relaxed(&hak_knobs.force_libc) ? mode : mode & ~DLOPEN_DEEPBIND;
    HAK_TAIL return next(file, kept);
}

#endif
