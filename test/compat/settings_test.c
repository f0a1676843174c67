/* SPDX-License-Identifier: MIT
 *
 * Do settings of jemalloc act on what we have, and are others accepted and named? Arenas, caches
 * of tcache.create, hooks. */
#include "compat/mallctl.h"

#include <hakmem/hakmem.h>
#include <stdlib.h>

static char printed[1 << 17];
static size_t printed_bytes;

static void put(void *context, const char *text) {
    EXPECT(context == &printed_bytes);
    size_t length = strlen(text);
    EXPECT(printed_bytes + length < sizeof printed);
    memcpy(printed + printed_bytes, text, length + 1);
    printed_bytes += length;
}

static const char *print(const char *options) {
    printed_bytes = 0;
    malloc_stats_print(put, &printed_bytes, options);
    return printed;
}

static size_t option_bytes(const char *name) {
    char value[256], *end;
    EXPECT_EQ(hak_option_get(name, value, sizeof value), 0);
    unsigned long long number = strtoull(value, &end, 10);
    const char *suffix = strchr("kmgt", *end);
    return (size_t)number << (*end == '\0' ? 0 : 10 * (suffix - "kmgt" + 1));
}

static void decay_0_keeps_nothing_and_other_values_the_options(void) {
    size_t kept = option_bytes("retain_min"), idle = option_bytes("retain_idle");
    ssize_t decay = 0, old = -7, none = 0, never = -1, later = 5000;
    READ("arena.0.dirty_decay_ms", decay);
    EXPECT_EQ(decay, 400);
    size_t length = sizeof old;
    EXPECT_EQ(mallctl("arenas.dirty_decay_ms", &old, &length, &none, sizeof none), 0);
    EXPECT_EQ(old, decay);
    EXPECT_EQ(option_bytes("retain_min"), 0);
    EXPECT_EQ(option_bytes("retain_idle"), 0);
    EXPECT_EQ(WRITE("arena.4096.dirty_decay_ms", never), 0);
    EXPECT(option_bytes("retain_min") > (size_t)1 << 40);
    EXPECT_EQ(WRITE("arena.0.dirty_decay_ms", later), 0);
    EXPECT_EQ(option_bytes("retain_min"), kept);
    EXPECT_EQ(option_bytes("retain_idle"), idle);
    READ("stats.arenas.0.dirty_decay_ms", decay);
    EXPECT_EQ(decay, later);
    ssize_t bad = -2;
    EXPECT_EQ(WRITE("arena.0.dirty_decay_ms", bad), EFAULT);
    EXPECT_EQ(WRITE("arena.0.muzzy_decay_ms", bad), EFAULT);
    EXPECT_EQ(WRITE("arenas.muzzy_decay_ms", never), 0);
}

static void purge_returns_unused_memory(void) {
    enum { BLOCKS = 500 };
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = memset(malloc(40000), 1, 40000);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    EXPECT_EQ(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    next_epoch();
    EXPECT_EQ(read_size("stats.arenas.4096.pdirty"), 0);
    unsigned arenas = 0; /* as the manual of jemalloc 4 has it */
    char name[32];
    READ("arenas.narenas", arenas);
    snprintf(name, sizeof name, "arena.%u.purge", arenas);
    EXPECT_EQ(mallctl(name, NULL, NULL, NULL, 0), 0);
    EXPECT_EQ(mallctl("arena.0.decay", NULL, NULL, NULL, 0), 0);
}

static void the_scavenger_is_the_background_thread(void) {
    bool was = true, on = true, off = false;
    READ("background_thread", was);
    EXPECT(!was);
    int error = WRITE("background_thread", on);
    EXPECT_EQ(error, expect_is_hardened() ? EPERM : 0); /* whose options are read-only */
    READ("background_thread", was);
    EXPECT_EQ(was, error == 0);
    uint64_t runs = 0, pause = 0;
    READ("stats.background_thread.run_interval", pause);
    EXPECT_EQ(pause, 100000000);
    while (was && runs == 0) { /* an allocation starts it */
        static void *block[1000];
        for (int i = 0; i < 1000; i++) {
            block[i] = malloc(1000);
        }
        for (int i = 0; i < 1000; i++) {
            free(block[i]);
        }
        next_epoch();
        READ("stats.background_thread.num_runs", runs);
    }
    EXPECT_EQ(WRITE("background_thread", off), error);
}

static void arenas_are_names_of_one_heap(void) {
    unsigned first = 0, made = 0, next = 0;
    char name[64];
    READ("arenas.narenas", first);
    READ("arenas.create", made);
    READ("arenas.narenas", next);
    EXPECT(made == first && next == first + 1);
    size_t length = 2;
    EXPECT_EQ(mallctl("arenas.create", &made, &length, NULL, 0), EINVAL);
    READ("arenas.narenas", next);
    EXPECT_EQ(next, first + 1);
    void *block = mallocx(100000, MALLOCX_ARENA(made));
    next_epoch();
    snprintf(name, sizeof name, "stats.arenas.%u.large.allocated", made);
    EXPECT_EQ(read_size(name), 0); /* the blocks are the heap's */
    EXPECT(read_size("stats.arenas.0.large.allocated") >= 100000);
    snprintf(name, sizeof name, "arena.%u.destroy", made);
    EXPECT_EQ(mallctl(name, NULL, NULL, NULL, 0), EFAULT); /* they would stay */
    snprintf(name, sizeof name, "arena.%u.reset", made);
    EXPECT_EQ(mallctl(name, NULL, NULL, NULL, 0), EFAULT);
    length = sizeof next;
    EXPECT_EQ(mallctl("arenas.lookup", &next, &length, &block, sizeof block), 0);
    EXPECT_EQ(next, 0);
    const void *foreign = &foreign;
    EXPECT_EQ(mallctl("arenas.lookup", &next, &length, &foreign, sizeof foreign), EINVAL);
    EXPECT_EQ(mallctl("arenas.lookup", &next, &length, NULL, 0), EINVAL);
    dallocx(block, 0);
    unsigned arena = made, old = 9, bad = 4000;
    length = sizeof old;
    EXPECT_EQ(mallctl("thread.arena", &old, &length, &arena, sizeof arena), 0);
    EXPECT_EQ(old, 0);
    READ("thread.arena", arena);
    EXPECT_EQ(arena, made);
    EXPECT_EQ(WRITE("thread.arena", bad), EFAULT);
    EXPECT_EQ(WRITE("thread.arena", old), 0);
}

static void hooks_are_refused(void) {
    void *hooks = NULL, *own[9] = {0}, *place = own;
    unsigned arena = 0;
    size_t length = sizeof hooks;
    EXPECT_EQ(mallctl("arena.0.extent_hooks", &hooks, &length, NULL, 0), EFAULT);
    EXPECT_EQ(WRITE("arena.0.extent_hooks", place), EFAULT);
    length = sizeof arena;
    unsigned before = 0, after = 0;
    READ("arenas.narenas", before);
    EXPECT_EQ(mallctl("arenas.create", &arena, &length, &place, sizeof place), EFAULT);
    READ("arenas.narenas", after);
    EXPECT_EQ(before, after);
}

static void caches_have_numbers_until_they_are_destroyed(void) {
    unsigned cache[50], again = 0, bad = 5000;
    for (unsigned i = 0; i < 50; i++) {
        READ("tcache.create", cache[i]);
        EXPECT_EQ(cache[i], i);
    }
    void *block = mallocx(100, MALLOCX_TCACHE(cache[7]));
    EXPECT(block != NULL);
    dallocx(block, MALLOCX_TCACHE(cache[7]));
    EXPECT_EQ(WRITE("tcache.flush", cache[7]), 0);
    EXPECT_EQ(WRITE("tcache.destroy", cache[7]), 0);
    EXPECT_EQ(WRITE("tcache.destroy", cache[7]), EFAULT);
    EXPECT_EQ(WRITE("tcache.flush", cache[7]), EFAULT);
    EXPECT_EQ(WRITE("tcache.flush", bad), EFAULT);
    EXPECT_EQ(mallctl("tcache.flush", NULL, NULL, NULL, 0), EINVAL);
    for (int i = 0; i < 3; i++) { /* one warning, and a block */
        block = mallocx(100, MALLOCX_TCACHE(cache[7]));
        EXPECT(block != NULL);
        dallocx(block, MALLOCX_TCACHE(cache[7]));
    }
    READ("tcache.create", again);
    EXPECT_EQ(again, 7);
    size_t length = 1;
    EXPECT_EQ(mallctl("tcache.create", &again, &length, NULL, 0), EINVAL);
    EXPECT_EQ(length, 0);
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(WRITE("tcache.destroy", i), 0);
    }
}

static void numbers_run_out_as_eagain(void) {
    unsigned cache, made = 0;
    size_t length = sizeof cache;
    int error;
    while ((error = mallctl("tcache.create", &cache, &length, NULL, 0)) == 0) {
        made++;
    }
    EXPECT_EQ(error, EAGAIN);
    EXPECT(made > 4000);
    for (unsigned i = 0; i < made; i++) {
        EXPECT_EQ(WRITE("tcache.destroy", i), 0);
    }
    for (made = 0; (error = mallctl("arenas.create", &cache, &length, NULL, 0)) == 0; made++) {
        EXPECT(made < 5000);
    }
    EXPECT_EQ(error, EAGAIN);
}

static void the_cache_of_a_thread_is_flushed(void) {
    bool on = true, off = false;
    free(malloc(100));
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    next_epoch();
    EXPECT_EQ(read_size("stats.arenas.4096.tcache_bytes"), 0);
    EXPECT_EQ(mallctl("thread.idle", NULL, NULL, NULL, 0), 0);
    EXPECT_EQ(WRITE("thread.tcache.enabled", off), 0);
    READ("thread.tcache.enabled", on);
    EXPECT(!on);
    on = true;
    EXPECT_EQ(WRITE("thread.tcache.enabled", on), 0);
}

static void settings_without_effect_are_accepted_and_named(void) {
    size_t limit = 1 << 20;
    const char *secondary = "secondary", *wrong = "x";
    EXPECT(strstr(print(""), "arena.#.retain_grow_limit") == NULL);
    EXPECT_EQ(WRITE("arena.0.retain_grow_limit", limit), 0);
    EXPECT(strstr(print(""), "Set without effect here: arena.#.retain_grow_limit\n") != NULL);
    EXPECT(strstr(print("J"), "\"arena.#.retain_grow_limit\"") != NULL);
    EXPECT_EQ(WRITE("arena.0.dss", secondary), 0);
    EXPECT_EQ(WRITE("arena.0.dss", wrong), EINVAL);
}

static void figures_are_printed(void) {
    char line[64];
    const char *text = print(NULL);
    snprintf(line, sizeof line, "\nAllocated: %zu, active: ", read_size("stats.allocated"));
    EXPECT(strncmp(text, "___ Begin jemalloc statistics ___\n", 34) == 0);
    EXPECT(strstr(text, line) != NULL && strstr(text, "hakmem: ") != NULL);
    text = print("Jabl");
    EXPECT(strncmp(text, "{\"jemalloc\":{\"version\":\"5.3.0", 29) == 0);
    EXPECT_EQ(text[strlen(text) - 2], '}');
}

int main(void) {
    RUN(decay_0_keeps_nothing_and_other_values_the_options);
    RUN(purge_returns_unused_memory);
    RUN(the_scavenger_is_the_background_thread);
    RUN(arenas_are_names_of_one_heap);
    RUN(hooks_are_refused);
    RUN(caches_have_numbers_until_they_are_destroyed);
    RUN(the_cache_of_a_thread_is_flushed);
    RUN(settings_without_effect_are_accepted_and_named);
    RUN(figures_are_printed);
    RUN(numbers_run_out_as_eagain);
    return expect_status();
}
