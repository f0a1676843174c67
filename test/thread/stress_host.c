/* SPDX-License-Identifier: MIT
 *
 * Loads the plugin, uses it here and sometimes in another thread, and lets go of it: the thread's
 * objects of the plugin die with the thread, and keep the plugin loaded until then.
 */
#include <dlfcn.h>

#include "thread/block.h"
#include "thread/stress_plugin.h"

typedef unsigned (*plugin_work_t)(unsigned seed);

static void *work_in_thread(void *argument) {
    plugin_work_t work = *(plugin_work_t *)argument;
    EXPECT_EQ(work(11), 11);
    return NULL;
}

/* ThreadSanitizer sees what the loader allocates and frees, but not the loader's own lock. */
static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER;

static void loader_enter(void) {
    if (EXPECT_SANITIZED) {
        pthread_mutex_lock(&loader_lock);
    }
}

static void loader_leave(void) {
    if (EXPECT_SANITIZED) {
        pthread_mutex_unlock(&loader_lock);
    }
}

void stress_plugin_round(const char *path, uint64_t *state) {
    loader_enter();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    loader_leave();
    if (handle == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(handle != NULL);
    plugin_work_t work;
    *(void **)&work = dlsym(handle, "stress_plugin_work");
    EXPECT(work != NULL);
    if (expect_random(state) % 2 == 0) {
        EXPECT_EQ(work(7), 7);
    } else {
        EXPECT_EQ(pthread_join(thread_start(work_in_thread, &work), NULL), 0);
    }
    loader_enter();
    EXPECT_EQ(dlclose(handle), 0);
    loader_leave();
}
