/* SPDX-License-Identifier: MIT
 *
 * Plugins: loaded and unloaded 1 000 times, in a namespace of their own, and hakmem itself as a
 * plugin of a program that was not linked with it. No hang, no crash, no growth?
 * Arguments: plugin library, rounds (default 1 000).
 */
#include <dlfcn.h>

#include "thread/block.h"

static const char *plugin_path;
static size_t round_count;

typedef struct plugin {
    void *handle;
    size_t (*work)(size_t);
    void *(*make)(size_t);
    void (*drop)(void *);
} plugin_t;

static plugin_t plugin_open(void *handle) {
    plugin_t plugin = {.handle = handle};
    if (handle == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(handle != NULL);
    *(void **)&plugin.work = dlsym(handle, "plugin_work");
    *(void **)&plugin.make = dlsym(handle, "plugin_make");
    *(void **)&plugin.drop = dlsym(handle, "plugin_drop");
    EXPECT(plugin.work && plugin.make && plugin.drop);
    return plugin;
}

static bool is_all_5a(const unsigned char *block, size_t size) {
    for (size_t at = 0; at < size; ++at) {
        if (block[at] != 0x5a) {
            return false;
        }
    }
    return true;
}

static void *work_in_thread(void *argument) {
    const plugin_t *plugin = (const plugin_t *)argument;
    EXPECT(plugin->work(30) >= 30);
    return NULL;
}

/* Blocks cross the border both ways: made there and freed here, made here and freed there. */
static void exercise(const plugin_t *plugin, size_t round) {
    EXPECT(plugin->work(10) >= 10);
    unsigned char *theirs = plugin->make(100 + round);
    EXPECT(theirs != NULL && is_all_5a(theirs, 100 + round));
    family.free(theirs);
    plugin->drop(family.malloc(10 + round));
    if (round % 20 == 0) {
        EXPECT_EQ(pthread_join(thread_start(work_in_thread, (void *)plugin), NULL), 0);
    }
}

static void plugin_loaded_and_unloaded_often_does_not_grow(void) {
    size_t before = 0;
    for (size_t round = 0; round < round_count; ++round) {
        plugin_t plugin = plugin_open(dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL));
        exercise(&plugin, round);
        EXPECT_EQ(dlclose(plugin.handle), 0);
        if (round == round_count / 10) {
            before = expect_rss_bytes();
        }
    }
    expect_rss_at_most(before, 8 << 20);
}

/* The namespace has a libc of its own, thus another malloc: each side frees what it made, both
 * sides read and write what the other made. */
static void plugin_in_its_own_namespace_exchanges_blocks(void) {
    plugin_t plugin = plugin_open(dlmopen(LM_ID_NEWLM, plugin_path, RTLD_NOW | RTLD_LOCAL));
    for (size_t round = 0; round < 200; ++round) {
        EXPECT(plugin.work(10) >= 10);
        size_t size = round * 61 + 1;
        unsigned char *theirs = plugin.make(size);
        unsigned char *ours = family.malloc(size);
        EXPECT(theirs != NULL && ours != NULL && is_all_5a(theirs, size));
        memcpy(ours, theirs, size);
        memset(theirs, 1, size);
        EXPECT(is_all_5a(ours, size));
        plugin.drop(theirs);
        family.free(ours);
    }
    EXPECT_EQ(pthread_join(thread_start(work_in_thread, &plugin), NULL), 0);
    EXPECT_EQ(dlclose(plugin.handle), 0);
}

typedef struct late_hakmem {
    void *(*malloc)(size_t);
    void (*free)(void *);
} late_hakmem_t;

static void *late_work(void *argument) {
    const late_hakmem_t *late = (const late_hakmem_t *)argument;
    void *blocks[500];
    for (size_t i = 0; i < 500; ++i) {
        blocks[i] = late->malloc(i * i);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, i * i);
    }
    for (size_t i = 0; i < 500; ++i) {
        late->free(blocks[i]);
    }
    return NULL;
}

static void late_exercise(void *handle) {
    if (handle == NULL) {
        expect_say("%s\n", dlerror());
    }
    EXPECT(handle != NULL);
    late_hakmem_t late;
    *(void **)&late.malloc = dlsym(handle, "hak_malloc");
    *(void **)&late.free = dlsym(handle, "hak_free");
    EXPECT(late.malloc && late.free);
    late_work(&late);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; ++i) {
        threads[i] = thread_start(late_work, &late);
    }
    threads_join(threads, 4);
    EXPECT_EQ(dlclose(handle), 0);
}

static void hakmem_only_dlopened_serves_its_own_names(void) {
    const char *library = getenv("HAKMEM_LIB");
    if (library == NULL) {
        expect_say("HAKMEM_LIB is not set: not tried\n");
        return;
    }
    for (size_t round = 0; round < 20; ++round) {
        late_exercise(dlopen(library, RTLD_NOW | RTLD_LOCAL));
    }
}

static void hakmem_in_a_namespace_serves_its_own_names(void) {
    const char *library = getenv("HAKMEM_LIB");
    if (library != NULL) {
        for (size_t round = 0; round < 3; ++round) {
            late_exercise(dlmopen(LM_ID_NEWLM, library, RTLD_NOW | RTLD_LOCAL));
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        expect_skip("usage: plugin_test PLUGIN [ROUNDS]");
    }
    plugin_path = argv[1];
    round_count = expect_arg(argc, argv, 2, 1000);
    family_load();
    expect_watchdog();
    RUN(plugin_loaded_and_unloaded_often_does_not_grow);
    RUN(plugin_in_its_own_namespace_exchanges_blocks);
    RUN(hakmem_only_dlopened_serves_its_own_names);
    RUN(hakmem_in_a_namespace_serves_its_own_names);
    return expect_status();
}
