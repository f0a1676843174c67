/* SPDX-License-Identifier: MIT
 *
 * dlopen without RTLD_DEEPBIND, where that could matter. With that flag a plugin finds the C
 * library's free before ours, while it gets blocks of ours from the program: php loads its
 * extensions so. Only the shared library drops the flag, only while it serves the family
 * (force_libc), and only from plugins that use a function of ours, as far as that is known.
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
typedef int dlclose_t(void *);

extern void *dlsym(void *, const char *);

/* Looks the next one up in every call: a plugin that brought it and us may be unloaded. */
static void *next_of(const char *name) {
    void *next = dlsym(HAK_LIBC_NEXT, name);
    if (next == NULL) {
        hak_os_abort(); /* a C library with dlopen defines them */
    }
    return next;
}

/* An object that is loaded found its functions already. Of others is known only what to search. */
static bool is_loaded(const char *object) {
    void *handle = ((dlopen_t *)next_of("dlopen"))(object, DLOPEN_LAZY | DLOPEN_NOLOAD);
    return handle != NULL && ((dlclose_t *)next_of("dlclose"))(handle) == 0;
}

static bool import_is_harmless(const char *name, bool is_object) {
    return is_object ? is_loaded(name) : !hak_os_is_own_code((uintptr_t)dlsym(NULL, name));
}

/* A file without a slash is searched for. What dlerror has to say about names that nobody defines
 * is forgotten by the dlopen that follows. */
static HAK_COLD HAK_NOINLINE bool may_bind_deep(const char *file) {
    return file == NULL ||
           (strchr(file, '/') != NULL && hak_os_visit_imports(file, import_is_harmless));
}

HAK_EXPORT HAK_TAIL_CALLS void *dlopen(const char *file, int mode) {
    dlopen_t *next = (dlopen_t *)next_of("dlopen");
    hak_life_process_start();
    if (HAK_UNLIKELY((mode & DLOPEN_DEEPBIND) != 0) && !hak_load_relaxed(&hak_knobs.force_libc) &&
        !may_bind_deep(file)) {
        mode &= ~DLOPEN_DEEPBIND;
    }
    HAK_TAIL return next(file, mode);
}

/* A walk may read the tables of any object. Where one does not end, the object stays loaded, which
 * POSIX allows. */
HAK_EXPORT int dlclose(void *handle) {
    dlclose_t *next = (dlclose_t *)next_of("dlclose");
    if (!hak_row_unload_begin()) {
        return 0;
    }
    uintptr_t place = hak_libc_object_place(handle), start;
    bool is_known = place != 0 && hak_libc_find_start(place, &start);
    int result = next(handle);
    hak_row_unload_end(is_known && !hak_libc_find_start(place, &start));
    return result;
}

#endif
