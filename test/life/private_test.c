/* SPDX-License-Identifier: MIT
 *
 * A plugin that exports operators of C++, or free, over a heap of its own: does it get the blocks
 * of that heap that reach our free, because it hides the operator which made them? Does everything
 * else that is no block end in a report? Argument: the plugin. */
#include <dlfcn.h>

#include "api/family.h"

static void *plugin;

static void *plugin_symbol(const char *name) {
    void *found = dlsym(plugin, name);
    EXPECT(found != NULL);
    return found;
}

static long plugin_drop(void *block) {
    long (*drop)(void *);
    *(void **)&drop = plugin_symbol("private_drop");
    return drop(block);
}

static void *plugin_make(size_t bytes) {
    void *(*make)(size_t);
    *(void **)&make = plugin_symbol("private_make");
    void *block = make(bytes);
    EXPECT(block != NULL);
    return block;
}

static void blocks_of_a_private_heap_go_back_to_its_delete(void) {
    long (*exercise)(void);
    *(void **)&exercise = plugin_symbol("private_exercise");
    errno = 77;
    EXPECT_EQ(exercise(), 0);
    EXPECT_EQ(errno, 77);
}

static void delete_in_place_of_a_return_finds_its_object(void) {
    EXPECT_EQ(plugin_drop(plugin_make(100)), 0);
}

static void private_delete_may_free_more_of_its_heap(void) {
    *(int *)plugin_symbol("private_is_nested") = 1;
    EXPECT_EQ(plugin_drop(plugin_make(100)), 0);
    EXPECT_EQ(*(int *)plugin_symbol("private_is_nested"), 0);
}

static void expect_report(void (*crime)(void)) {
    char text[512];
    int status = expect_child_says(crime, text, sizeof text);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT(strstr(text, "hakmem: free of an address that no allocator here handed out") != NULL);
}

static void forwarded(void) {
    *(int *)plugin_symbol("private_forwards") = 1;
    plugin_drop(plugin_make(100));
}

static void of_program(void) {
    family.free(plugin_make(100));
}

static void delete_without_a_heap_ends_in_the_report(void) {
    expect_report(forwarded);
}

static void private_block_freed_by_another_object_is_reported(void) {
    expect_report(of_program);
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    family_load();
    plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(plugin != NULL);
    RUN(blocks_of_a_private_heap_go_back_to_its_delete);
    RUN(delete_in_place_of_a_return_finds_its_object);
    RUN(private_delete_may_free_more_of_its_heap);
    RUN(delete_without_a_heap_ends_in_the_report);
    RUN(private_block_freed_by_another_object_is_reported);
    return expect_status();
}
