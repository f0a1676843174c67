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

void stress_plugin_round(const char *path, uint64_t *state) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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
    EXPECT_EQ(dlclose(handle), 0);
}
