/* SPDX-License-Identifier: MIT
 *
 * What does a program that uses jemalloc's interface wrongly get: an error number, one line at
 * most, and its blocks? Numbers of names that are none, caches that are gone, receivers of text
 * that call everything. */
#include "compat/mallctl.h"

#include <stdlib.h>

/* A receiver of text that prints, asks and allocates itself. */
static unsigned put_depth, put_calls;

static void put_again(void *context, const char *text) {
    (void)text;
    EXPECT(context == &put_depth);
    put_calls++;
    if (put_depth++ < 2) {
        next_epoch();
        EXPECT_EQ(mallctl("arena.0.purge", NULL, NULL, NULL, 0), 0);
        dallocx(mallocx(100, MALLOCX_ZERO), 0);
        free(malloc(3000000));
        if (put_calls < 20) {
            malloc_stats_print(put_again, &put_depth, "J");
        }
    }
    put_depth--;
}

static void a_receiver_of_text_may_call_everything(void) {
    malloc_stats_print(put_again, &put_depth, NULL);
    EXPECT(put_calls > 20 && put_depth == 0);
}

static void a_message_function_may_print_again(void) {
    put_calls = 0;
    malloc_message = put_again;
    malloc_stats_print(NULL, &put_depth, NULL);
    malloc_message = NULL;
    EXPECT(put_calls > 20 && put_depth == 0);
}

static unsigned lines_of(void (*act)(void)) {
    static char text[4096];
    unsigned lines = 0;
    EXPECT_EQ(expect_child_says(act, text, sizeof text), 0);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    return lines;
}

static void use_caches_that_are_gone(void) {
    unsigned cache = 0;
    READ("tcache.create", cache);
    EXPECT_EQ(WRITE("tcache.destroy", cache), 0);
    for (unsigned i = 0; i < 1000; i++) {
        dallocx(mallocx(100, MALLOCX_TCACHE(i % 2 == 0 ? cache : 4000)), MALLOCX_TCACHE(cache));
    }
}

static void make_every_mistake(void) {
    static void *hooks[9];
    void *place = hooks;
    ssize_t decay = -5;
    unsigned bad = 5000;
    const char *none = NULL;
    for (int i = 0; i < 100; i++) {
        EXPECT(mallocx(100, MALLOCX_ARENA(4000)) == NULL && mallocx(SIZE_MAX / 2, 0) == NULL);
        EXPECT_EQ(WRITE("arena.0.extent_hooks", place), EFAULT);
        EXPECT_EQ(WRITE("arenas.dirty_decay_ms", decay), EFAULT);
        EXPECT_EQ(WRITE("thread.arena", bad), EFAULT);
        EXPECT_EQ(WRITE("tcache.flush", bad), EFAULT);
        EXPECT_EQ(WRITE("arena.0.dss", none), EINVAL);
        EXPECT_EQ(WRITE("prof.prefix", none), EINVAL);
        EXPECT_EQ(WRITE("arena.0.purge", bad), EPERM);
        EXPECT_EQ(WRITE("nothing.here", bad), ENOENT);
    }
}

static void a_mistake_is_one_line_at_most(void) {
    EXPECT_EQ(lines_of(use_caches_that_are_gone), 1);
    EXPECT_EQ(lines_of(make_every_mistake), 0);
}

static void numbers_of_no_name_are_enoent(void) {
    uint64_t state = 88172645463325252u;
    _Alignas(8) unsigned char space[9 * sizeof(size_t) + 1];
    for (int i = 0; i < 100000; i++) {
        size_t mib[9], count = 9, bytes = 0;
        for (size_t part = 0; part < count; part++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            mib[part] = i % 2 == 0 ? state : state % 160;
        }
        memcpy(space + i % 2, mib, sizeof mib);
        const size_t *at = (const size_t *)(void *)(space + i % 2);
        count = i % 4 == 0 ? state : state % 9;
        int error = mallctlbymib(at, count, NULL, &bytes, NULL, 0);
        bool is_known = error == 0 || error == EPERM || error == EINVAL || error == EFAULT;
        EXPECT(error == ENOENT || (is_known && count <= 7));
    }
}

static void blocks_stay_whole(void) {
    static unsigned char *block[200];
    for (unsigned i = 0; i < 200; i++) {
        block[i] = memset(mallocx(i * i + 1, 0), (int)i, i * i + 1);
    }
    EXPECT_EQ(lines_of(make_every_mistake), 0);
    make_every_mistake();
    for (unsigned i = 0; i < 200; i++) {
        EXPECT(block[i][0] == (unsigned char)i && block[i][i * i] == (unsigned char)i);
        sdallocx(block[i], i * i + 1, 0);
    }
}

int main(void) {
    RUN(a_mistake_is_one_line_at_most); /* first: the line comes once */
    RUN(a_receiver_of_text_may_call_everything);
    RUN(a_message_function_may_print_again);
    RUN(numbers_of_no_name_are_enoent);
    RUN(blocks_stay_whole);
    return expect_status();
}
