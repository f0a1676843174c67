/* SPDX-License-Identifier: MIT
 *
 * A program of the C library in which a plugin brings hakmem and, behind it, a library that
 * replaces operators: dlclose unloads the plugin, hakmem stays. Arguments: the plugin, and one that
 * brings only hakmem. */
#include <dlfcn.h>

#include "api/expect.h"

static void use_plugin(const char *path) {
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(plugin != NULL);
    bool (*works)(void) = NULL;
    *(void **)&works = dlsym(plugin, "replaced_plugin_works");
    EXPECT(works != NULL && works());
    EXPECT_EQ(dlclose(plugin), 0);
    EXPECT(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* else this says nothing */
}

static const char *first, *second;

static void replaced_forms_of_a_closed_plugin_can_still_be_called(void) {
    use_plugin(first);
    use_plugin(second);
    use_plugin(first);
}

int main(int count, char **arguments) {
    EXPECT_EQ(count, 3);
    first = arguments[1];
    second = arguments[2];
    RUN(replaced_forms_of_a_closed_plugin_can_still_be_called);
    return 0;
}
