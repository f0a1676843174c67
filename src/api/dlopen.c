/* SPDX-License-Identifier: MIT
 *
 * dlopen without RTLD_DEEPBIND, where that could matter. With that flag a plugin finds the C
 * library's free before ours, while it gets blocks of ours from the program: php loads its
 * extensions so. Only the shared library drops the flag, only while it serves the family
 * (force_libc), and only from plugins that may use a function of ours, as their files tell.
 *
 * The C library identifies its caller (search paths, $ORIGIN, namespace) by the return address, so
 * this function leaves by a jump. */
#include "base/knobs.h"
#include "front/hooks.h"
#include "os/libc.h"
#include "os/optional.h"
#include "stack/row.h"

#if HAK_OVERRIDE && HAK_SHARED

#include <stdlib.h>
#include <string.h>

enum { DLOPEN_LAZY = 1, DLOPEN_NOLOAD = 4, DLOPEN_DEEPBIND = 8 };

typedef void *dlopen_t(const char *, int);

extern void *dlsym(void *, const char *) HAK_WEAK;

/* Looks the next one up in every call: a plugin that brought it and us may be unloaded. NULL: glibc
 * before 2.34, and the program has no libdl. */
static void *next_of(const char *name) {
    return dlsym != NULL ? dlsym(HAK_LIBC_NEXT, name) : NULL;
}

/* A loaded object has found its functions. Of others only the name is known. */
static bool is_loaded(const char *object) {
    void *handle = ((dlopen_t *)next_of("dlopen"))(object, DLOPEN_LAZY | DLOPEN_NOLOAD);
    return handle != NULL && ((int (*)(void *))next_of("dlclose"))(handle) == 0;
}

/* dlsym finds functions of ours by name, and passes the flag on to its search. */
static bool import_is_harmless(const char *name, bool is_object) {
    return is_object
               ? is_loaded(name)
               : strcmp(name, "dlsym") != 0 && strcmp(name, "dlvsym") != 0 && !hak_os_exports(name);
}

/* A file without a slash is searched by rules that only the dynamic linker knows. */
static HAK_COLD HAK_NOINLINE bool may_bind_deep(const char *file) {
    return file != NULL && strchr(file, '/') != NULL &&
           hak_os_visit_imports(file, import_is_harmless);
}

HAK_EXPORT HAK_TAIL_CALLS void *dlopen(const char *file, int mode) {
    dlopen_t *next = (dlopen_t *)next_of("dlopen");
    if (next == NULL) {
        return NULL;
    }
    hak_life_process_start();
    hak_row_follow(hak_libc_unload_count());
    if (HAK_UNLIKELY((mode & DLOPEN_DEEPBIND) != 0) && !hak_load_relaxed(&hak_knobs.force_libc) &&
        !may_bind_deep(file)) {
        mode &= ~DLOPEN_DEEPBIND;
    }
    HAK_TAIL return next(file, mode);
}

#endif
