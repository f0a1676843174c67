/* SPDX-License-Identifier: MIT
 *
 * A program with an allocator of its own, as one that has jemalloc linked into it, which stands
 * before ours: do its blocks go back to it from every name that it lacks and we have, and ours to
 * us? With AHEAD_WRAPS=1 it is no allocator, but calls ours: what is no block is still reported. */
#include <dlfcn.h>

#include "api/family.h"

#if AHEAD_WRAPS

static void ahead_may_be_a_wrapper_of_ours(void) {
    unsigned char *block = family.reallocarray(family.malloc(10), 100, 10);
    EXPECT(block != NULL && family.usable_size(block) >= 1000);
    family.free(block);
}

static void free_what_is_no_block(void) {
    static char none[64] __attribute__((aligned(16)));
    family.free(none + 16);
}

static void ahead_wrapper_frees_what_is_no_block(void) {
    char text[512];
    int status = expect_child_says(free_what_is_no_block, text, sizeof text);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT(strstr(text, "hakmem: free of an address that no allocator here handed out") != NULL);
}

int main(void) {
    family_load();
    RUN(ahead_may_be_a_wrapper_of_ours);
    RUN(ahead_wrapper_frees_what_is_no_block);
    return expect_status();
}

#else

extern void *behind_malloc(size_t);
extern int behind_frees;

static void *named(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    EXPECT(found != NULL);
    return found;
}

/* A block of the program's, with 40 bytes of text. */
static unsigned char *program_block(void) {
    return memset(behind_malloc(40), 0x5a, 40);
}

static void ahead_reallocarray_is_of_the_programs_realloc(void) {
    int before = behind_frees;
    unsigned char *block = family.reallocarray(NULL, 10, 4);
    EXPECT(block != NULL);
    memset(block, 0x5a, 40);
    block = family.reallocarray(block, 100, 10);
    EXPECT(block != NULL && block[0] == 0x5a && block[39] == 0x5a);
    EXPECT_EQ(behind_frees, before + 1);
    volatile size_t many = SIZE_MAX / 2;
    errno = 0;
    EXPECT(family.reallocarray(block, many, 3) == NULL && errno == ENOMEM);
    family.free(block); /* aborts if it were ours */
    EXPECT_EQ(behind_frees, before + 2);
}

static void ahead_blocks_go_back_from_each_name_of_ours(void) {
    family.free_sized(program_block(), 40); /* the first one looks for their owner, and allocates */
    int before = behind_frees;
    family.free_sized(program_block(), 40);
    family.free_aligned_sized(program_block(), 16, 40);
    family.freezero(program_block(), 40);
    unsigned char *block = family.reallocf(program_block(), 80);
    EXPECT(block != NULL && block[39] == 0x5a);
    family.free(block);
    EXPECT_EQ(behind_frees, before + 5); /* two by reallocf and the free after it */
    void (*dallocx)(void *, int), (*release)(void *);
    size_t (*sallocx)(const void *, int), (*usable)(const void *);
    void *(*resize)(void *, size_t);
    *(void **)&dallocx = named("dallocx");
    *(void **)&sallocx = named("sallocx");
    *(void **)&release = named("hak_free");
    *(void **)&usable = named("hak_malloc_usable_size");
    *(void **)&resize = named("hak_realloc");
    block = program_block();
    EXPECT(sallocx(block, 0) == 40 && usable(block) == 40);
    dallocx(block, 0);
    block = resize(program_block(), 80);
    EXPECT(block != NULL && block[39] == 0x5a && usable(block) == 80);
    release(block);
    EXPECT_EQ(behind_frees, before + 8);
}

static void ahead_blocks_of_ours_are_ours(void) {
    int before = behind_frees;
    void *(*mallocx)(size_t, int), *(*make)(size_t);
    void (*dallocx)(void *, int), (*drop)(void *);
    *(void **)&mallocx = named("mallocx");
    *(void **)&dallocx = named("dallocx");
    *(void **)&make = named("_Znwm"); /* without a C++ runtime of its own */
    *(void **)&drop = named("_ZdlPv");
    for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
        dallocx(memset(mallocx(size, 0), 1, size), 0);
        drop(memset(make(size), 1, size));
    }
    EXPECT_EQ(behind_frees, before);
}

int main(void) {
    family_load();
    EXPECT(family.malloc != NULL && (void *)family.malloc != named("hak_malloc"));
    RUN(ahead_blocks_of_ours_are_ours);
    RUN(ahead_reallocarray_is_of_the_programs_realloc);
    RUN(ahead_blocks_go_back_from_each_name_of_ours);
    RUN(ahead_blocks_of_ours_are_ours);
    return expect_status();
}

#endif
