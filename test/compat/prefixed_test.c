/* SPDX-License-Identifier: MIT
 *
 * Are the heap under a prefix (libhakmem_je.a) and that of malloc two heaps, each with its own
 * figures, whichever allocator the program has? */
#define HAK_JE(name) je_##name
#include <hakmem/jemalloc.h>

#include "api/expect.h"

void *je_malloc(size_t size);
void *je_realloc(void *block, size_t size);
int je_posix_memalign(void **block, size_t align, size_t size);
void je_free(void *block);

static size_t allocated(void) {
    uint64_t epoch = 1;
    size_t value = 0, length = sizeof value;
    EXPECT_EQ(je_mallctl("epoch", NULL, NULL, &epoch, sizeof epoch), 0);
    EXPECT_EQ(je_mallctl("stats.allocated", &value, &length, NULL, 0), 0);
    return value;
}

static void each_heap_has_its_own_blocks(void) {
    size_t before = allocated();
    void *theirs = malloc(300000), *aligned = NULL;
    EXPECT_EQ(allocated(), before);
    void *block = je_realloc(je_malloc(100), 300000);
    EXPECT_EQ(je_posix_memalign(&aligned, 4096, 100), 0);
    EXPECT((uintptr_t)aligned % 4096 == 0);
    EXPECT(allocated() >= before + 300000 + 100);
    je_free(aligned);
    je_sdallocx(block, 300000, 0);
    free(theirs);
    EXPECT_EQ(allocated(), before);
}

static void the_other_allocator_knows_nothing_of_it(void) {
    size_t before = allocated();
    void *block[1000];
    for (int i = 0; i < 1000; i++) {
        block[i] = je_mallocx(1000, i % 2 == 0 ? MALLOCX_ZERO : MALLOCX_TCACHE_NONE);
        EXPECT(block[i] != NULL && je_sallocx(block[i], 0) >= 1000);
    }
    for (int i = 0; i < 1000; i++) {
        je_dallocx(block[i], i % 3 == 0 ? MALLOCX_TCACHE_NONE : 0);
    }
    EXPECT_EQ(allocated(), before);
}

static void its_options_have_the_prefix(void) {
    size_t log2 = 0, length = sizeof log2;
    EXPECT_EQ(je_mallctl("opt.lg_prof_sample", &log2, &length, NULL, 0), 0);
    EXPECT_EQ(log2, 17); /* of JE_MALLOC_CONF: the test's environment has another in MALLOC_CONF */
}

int main(void) {
    RUN(each_heap_has_its_own_blocks);
    RUN(the_other_allocator_knows_nothing_of_it);
    RUN(its_options_have_the_prefix);
    return expect_status();
}
