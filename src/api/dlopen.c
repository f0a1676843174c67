/* SPDX-License-Identifier: MIT
 *
 * dlopen without RTLD_DEEPBIND. With that flag a plugin finds the C library's free before ours,
 * while it gets blocks of ours from the program: php loads its extensions so. Only the shared
 * library drops the flag, and only while it serves the family; with force_libc the flag stays.
 *
 * The C library identifies its caller (search paths, $ORIGIN, namespace) by the return address, so
 * this function leaves by a jump. */
#include "base/knobs.h"
#include "front/hooks.h"
#include "os/libc.h"
#include "os/os.h"
#include "stack/row.h"

#if HAK_OVERRIDE && HAK_SHARED

#include <stdlib.h>

enum { DLOPEN_DEEPBIND = 8 };

typedef void *dlopen_t(const char *, int);

extern void *dlsym(void *, const char *) HAK_WEAK;

/* Looks the next dlopen up in every call: a plugin that brought it and us may be unloaded. */
HAK_EXPORT HAK_TAIL_CALLS void *dlopen(const char *file, int mode) {
    dlopen_t *next = dlsym != NULL ? (dlopen_t *)dlsym(HAK_LIBC_NEXT, "dlopen") : NULL;
    if (next == NULL) { /* glibc before 2.34, and the program has no libdl */
        return NULL;
    }
    hak_life_process_start();
    hak_row_forget();
    int kept = hak_load_relaxed(&hak_knobs.force_libc) ? mode : mode & ~DLOPEN_DEEPBIND;
    HAK_TAIL return next(file, kept);
}

#endif
