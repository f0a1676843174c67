/* SPDX-License-Identifier: MIT
 *
 * Do glibc's tuning and reporting functions answer: mallopt, mallinfo, mallinfo2, malloc_info,
 * malloc_stats?
 */
#include <limits.h>
#include <malloc.h>

#include "family.h"

enum { LOAD_COUNT = 8192, LOAD_BLOCK_BYTES = 1024, LOAD_LARGE_BYTES = 16 << 20 };

static void *load_blocks[LOAD_COUNT];

static void load_take(void) {
    for (size_t i = 0; i < LOAD_COUNT; ++i) {
        load_blocks[i] = family.malloc(LOAD_BLOCK_BYTES);
        EXPECT(load_blocks[i] != NULL);
        memset(load_blocks[i], 1, LOAD_BLOCK_BYTES);
    }
}

static void load_give(void) {
    for (size_t i = 0; i < LOAD_COUNT; ++i) {
        family.free(load_blocks[i]);
    }
}

static void mallopt_accepts_glibc_parameters_and_goes_on(void) {
    static const int parameters[][2] = {{M_MMAP_THRESHOLD, 131072}, {M_TRIM_THRESHOLD, 131072},
                                        {M_TOP_PAD, 131072},        {M_ARENA_MAX, 4},
                                        {M_MMAP_MAX, 65536},        {M_PERTURB, 0}};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; ++i) {
        EXPECT_EQ(mallopt(parameters[i][0], parameters[i][1]), 1);
    }
    int unknown = mallopt(-4711, 1);
    EXPECT(unknown == 0 || unknown == 1);
    void *block = family.malloc(1000);
    EXPECT(block != NULL);
    family.free(block);
}

static void mallinfo2_follows_what_is_allocated(void) {
    struct mallinfo2 before = mallinfo2();
    load_take();
    volatile size_t large_bytes = LOAD_LARGE_BYTES;
    char *large = family.malloc(large_bytes);
    EXPECT(large != NULL);
    large[0] = 1;
    struct mallinfo2 during = mallinfo2();
    size_t grown = during.uordblks + during.hblkhd - before.uordblks - before.hblkhd;
    EXPECT(grown >= (size_t)LOAD_COUNT * LOAD_BLOCK_BYTES + LOAD_LARGE_BYTES / 2);
    EXPECT(during.arena + during.hblkhd >= (size_t)LOAD_COUNT * LOAD_BLOCK_BYTES);
    family.free(large);
    load_give();
    struct mallinfo2 after = mallinfo2();
    EXPECT(after.uordblks + after.hblkhd < during.uordblks + during.hblkhd);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static struct mallinfo narrow_info(void) {
    return mallinfo();
}
#pragma GCC diagnostic pop

static void mallinfo_agrees_with_mallinfo2(void) {
    load_take();
    struct mallinfo narrow = narrow_info();
    struct mallinfo2 wide = mallinfo2();
    EXPECT_EQ(narrow.uordblks, wide.uordblks);
    EXPECT_EQ(narrow.hblkhd, wide.hblkhd);
    load_give();
}

/* The C library's own wraps around. */
static void mallinfo_of_more_than_an_int_holds_its_most(void) {
    volatile size_t vast_bytes = 3ull << 30;
    void *vast = family.malloc(vast_bytes); /* untouched; some systems grant no such block */
    if (vast != NULL && family.is_hakmem) {
        EXPECT_EQ(narrow_info().hblkhd, INT_MAX);
        EXPECT(mallinfo2().hblkhd >= vast_bytes);
    }
    family.free(vast);
}

/* Runs `print` with stderr turned into a pipe; returns what it wrote. */
static size_t capture_stderr(void (*print)(void), char *text, size_t capacity) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(ends[1], STDERR_FILENO);
    print();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    return expect_read_all(ends[0], text, capacity);
}

static void malloc_stats_writes_lines_to_stderr(void) {
    static char text[65536];
    EXPECT(capture_stderr(malloc_stats, text, sizeof text) > 0);
    EXPECT(strchr(text, '\n') != NULL);
}

static void malloc_info_writes_one_xml_element(void) {
    static char text[1 << 20];
    FILE *file = tmpfile();
    EXPECT(file != NULL);
    EXPECT_EQ(malloc_info(0, file), 0);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    EXPECT_EQ(strncmp(text, "<malloc version=\"", 17), 0);
    EXPECT(strstr(text, "</malloc>") != NULL);
}

static void malloc_info_with_options_is_einval(void) {
    int result = malloc_info(1, stderr);
    EXPECT(result == EINVAL || (result == -1 && errno == EINVAL));
}

int main(void) {
    family_load();
    RUN(mallopt_accepts_glibc_parameters_and_goes_on);
    RUN(mallinfo2_follows_what_is_allocated);
    RUN(mallinfo_agrees_with_mallinfo2);
    RUN(mallinfo_of_more_than_an_int_holds_its_most);
    RUN(malloc_stats_writes_lines_to_stderr);
    RUN(malloc_info_writes_one_xml_element);
    RUN(malloc_info_with_options_is_einval);
    return expect_status();
}
