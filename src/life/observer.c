/* SPDX-License-Identifier: MIT
 *
 * The observer's library (observe/), of which this process calls some functions: a program may have
 * it linked in, and a static one must; else it is loaded. */
#include "base/observer.h"
#include "base/fmt.h"
#include "life/life.h"
#include "os/libc.h"

#include <string.h>

enum { OBSERVER_NOW = 2 /* RTLD_NOW */, OBSERVER_PATH_BYTES = 4096 };

/* Its file lies beside ours, two folders above a variant of ours, or where libraries are looked
 * for. NULL: in none of them, or this program cannot load any. A path of ours that is relative may
 * lead elsewhere by now. */
static HAK_COLD void *observer_load(void) {
    static const char *const folders[] = {"", "../../"};
    void *(*open)(const char *, int) =
        (void *(*)(const char *, int))hak_libc_symbol(HAK_LIBC_NEXT, "dlopen");
    const char *file = hak_libc_own_file();
    void *handle = NULL;
    HAK_TEXT(path, OBSERVER_PATH_BYTES);
    const char *slash = *file == '/' ? strrchr(file, '/') : NULL;
    for (unsigned i = 0; slash != NULL && handle == NULL && i < 2; i++) {
        path.length = 0;
        hak_text_mem(&path, file, (size_t)(slash - file) + 1);
        hak_text_format(&path, "%s" HAK_OBSERVER_LIBRARY, folders[i]);
        handle = open != NULL ? open(hak_text_string(&path), OBSERVER_NOW) : NULL;
    }
    return handle != NULL || open == NULL ? handle : open(HAK_OBSERVER_LIBRARY, OBSERVER_NOW);
}

HAK_COLD void *hak_life_observer(void *linked, const char *name) {
    void *handle = linked == NULL && hak_libc_symbol != NULL ? observer_load() : NULL;
    return handle != NULL ? hak_libc_symbol(handle, name) : linked;
}
