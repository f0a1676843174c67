/* SPDX-License-Identifier: MIT
 *
 * A program of the C library in which a plugin brings hakmem and, behind it, another allocator that
 * wraps dlopen as well: dlclose unloads the plugin, hakmem stays. Argument: the plugin. */
#include <dlfcn.h>

#include "api/expect.h"

static const char *path;

static void *plugin_symbol(void *plugin, const char *name) {
    void *found = dlsym(plugin, name);
    EXPECT(found != NULL);
    return found;
}

/* It stays, or nothing of it is used. */
static void unloaded_plugin_leaves_nothing_behind_ours_that_is_gone(void) {
    void *(*open)(const char *, int) = NULL, *(*behind)(size_t) = NULL;
    void (*ours)(void *) = NULL;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(plugin != NULL);
    *(void **)&open = plugin_symbol(plugin, "dlopen");
    *(void **)&behind = plugin_symbol(plugin, "behind_malloc");
    *(void **)&ours = plugin_symbol(plugin, "hak_free");
    const int *opens = plugin_symbol(plugin, "unloaded_opens");
    const int *frees = plugin_symbol(plugin, "behind_frees");
    EXPECT(open != dlopen && open(NULL, RTLD_NOW) != NULL);
    EXPECT_EQ(*opens, 1); /* ours calls the one behind */
    void *block = behind(40);
    ours(behind(40));
    EXPECT_EQ(*frees, 1);
    EXPECT_EQ(dlclose(plugin), 0);
    EXPECT(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* else this says nothing */
    ours(malloc(40));                                     /* of the C library */
    EXPECT(open(NULL, RTLD_NOW) != NULL);
    ours(block);
    EXPECT_EQ(*frees, 2); /* the allocator stays */
}

int main(int count, char **arguments) {
    EXPECT_EQ(count, 2);
    path = arguments[1];
    RUN(unloaded_plugin_leaves_nothing_behind_ours_that_is_gone);
    return expect_status();
}
