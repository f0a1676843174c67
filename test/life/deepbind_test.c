/* SPDX-License-Identifier: MIT
 *
 * Do plugins loaded with RTLD_DEEPBIND share our heap, do those that allocate nothing prefer their
 * own functions, and does the dynamic linker still know who called dlopen? Arguments: the outer
 * library; plugins that allocate nothing: plain, one that could find malloc by its name, one that
 * needs a library which allocates; one that exports nothing and frees. */
#include <dlfcn.h>

#include "api/expect.h"

#include <stdlib.h>

typedef struct deepbind {
    void *(*make)(size_t);
    void (*drop)(void *);
} deepbind_t;

static deepbind_t deepbind_of(void *handle) {
    deepbind_t plugin;
    if (handle == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(handle != NULL);
    *(void **)&plugin.make = dlsym(handle, "deepbind_make");
    *(void **)&plugin.drop = dlsym(handle, "deepbind_drop");
    EXPECT(plugin.make != NULL && plugin.drop != NULL);
    return plugin;
}

/* Blocks go both ways; libc's free would stop on ours, and ours on nobody's. */
static void exchange(const deepbind_t *plugin) {
    for (size_t size = 1; size < 3 << 20; size = size * 2 + 1) {
        plugin->drop(malloc(size));
        free(plugin->make(size));
    }
}

int deepbind_version(void);
int deepbind_version(void) { /* the plugins have one, too */
    return 1;
}

static int version_seen_by(const char *plugin, int mode) {
    int (*ask)(void);
    void *handle = dlopen(plugin, mode);
    if (handle == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(handle != NULL);
    EXPECT(dlerror() == NULL);
    *(void **)&ask = dlsym(handle, "deepbind_ask");
    EXPECT(ask != NULL);
    int version = ask();
    EXPECT(dlclose(handle) == 0);
    return version;
}

static void (*offered)(void *);

void deepbind_offer(void (*drop)(void *));
void deepbind_offer(void (*drop)(void *)) {
    offered = drop;
}

int main(int argc, char **argv) {
    EXPECT(argc == 6);
    EXPECT_EQ(version_seen_by(argv[2], RTLD_NOW), 1);
    EXPECT_EQ(version_seen_by(argv[2], RTLD_NOW | RTLD_DEEPBIND), 2);
    expect_say("ok     plugin_that_allocates_nothing_prefers_its_own_names\n");
    EXPECT_EQ(version_seen_by(argv[3], RTLD_NOW | RTLD_DEEPBIND), 1);
    EXPECT_EQ(version_seen_by(argv[4], RTLD_NOW | RTLD_DEEPBIND), 1);
    expect_say("ok     plugin_that_may_allocate_shares_the_names_of_all\n");
    EXPECT(dlopen(argv[5], RTLD_NOW | RTLD_DEEPBIND) != NULL && offered != NULL);
    offered(malloc(100));
    expect_say("ok     plugin_that_exports_nothing_shares_the_heap\n");
    void *outer = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    deepbind_t plugin = deepbind_of(outer);
    exchange(&plugin);
    expect_say("ok     deepbind_plugin_shares_the_heap\n");
    void *(*open_inner)(void);
    *(void **)&open_inner = dlsym(outer, "deepbind_open_inner");
    EXPECT(open_inner != NULL);
    plugin = deepbind_of(open_inner());
    exchange(&plugin);
    expect_say("ok     dlopen_by_a_library_uses_its_search_path\n");
    EXPECT_EQ(version_seen_by(argv[4], RTLD_NOW | RTLD_DEEPBIND), 2);
    expect_say("ok     plugin_whose_needed_library_is_loaded_prefers_its_own_names\n");
    EXPECT(dlopen("libhakmem_is_not_here.so", RTLD_NOW) == NULL && dlerror() != NULL);
    expect_say("ok     dlopen_of_nothing_fails_with_a_reason\n");
    return 0;
}
