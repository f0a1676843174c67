/* SPDX-License-Identifier: MIT
 *
 * Do the functions only hakmem has keep their contracts: hak_version, hak_good_size, hak_alloc_at,
 * hak_free_at, hak_stats_json?
 */
#include <hakmem/hakmem.h>
#include <hakmem/observe.h>

#include "expect.h"

static void version_is_three_numbers(void) {
    int major = -1, minor = -1, patch = -1;
    EXPECT_EQ(sscanf(hak_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    EXPECT(major >= 0 && minor >= 0 && patch >= 0);
}

static void good_size_is_what_malloc_would_give(void) {
    for (size_t size = 0; size <= 100000; size += size < 5000 ? 1 : 37) {
        size_t good = hak_good_size(size);
        EXPECT(good >= size);
        EXPECT_EQ(hak_good_size(good), good);
        EXPECT(hak_good_size(size + 1) >= good);
        void *block = hak_malloc(size);
        EXPECT(block != NULL);
        if (size <= 65536) {
            EXPECT_EQ(hak_malloc_usable_size(block), good);
        } else {
            EXPECT(hak_malloc_usable_size(block) >= size);
        }
        hak_free(block);
    }
}

static void good_size_of_impossible_requests_is_zero(void) {
    EXPECT(hak_good_size((size_t)1 << 40) >= (size_t)1 << 40);
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 65536, SIZE_MAX - 1,
                                   SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        EXPECT_EQ(hak_good_size(sizes[i]), 0);
    }
}

static void alloc_at_and_free_at_are_malloc_and_free(void) {
    static const char site[] = "extension_test";
    hak_free_at(NULL, 0, site);
    for (size_t size = 0; size <= (size_t)1 << 22; size = size * 3 / 2 + 1) {
        unsigned char *block = hak_alloc_at(size, site);
        EXPECT(block != NULL);
        EXPECT_EQ((uintptr_t)block % 16, 0);
        EXPECT(hak_malloc_usable_size(block) >= size);
        memset(block, 1, size);
        hak_free_at(block, size, site);
    }
}

static void alloc_at_blocks_mix_with_the_rest_of_the_family(void) {
    unsigned char *block = hak_alloc_at(100, NULL);
    EXPECT(block != NULL);
    block[99] = 7;
    block = hak_realloc(block, 10000);
    EXPECT(block != NULL);
    EXPECT_EQ(block[99], 7);
    hak_free_at(block, 10000, NULL);
    hak_free(hak_alloc_at(64, &block));
    hak_free_at(hak_malloc(64), 64, &block);
}

static void alloc_at_beyond_the_address_space_is_enomem(void) {
    volatile size_t size = (size_t)PTRDIFF_MAX + 1;
    errno = 0;
    EXPECT(hak_alloc_at(size, NULL) == NULL);
    EXPECT_EQ(errno, ENOMEM);
}

/* test/report/ reads it by a parser. */
static void stats_json_is_one_object_with_our_version(void) {
    static char text[65536];
    char begin[64];
    size_t length = expect_text(hak_stats_json, text, sizeof text);
    EXPECT(length > 4);
    int begun = snprintf(begin, sizeof begin, "{\"hakmem\":\"%s\",\"schema\":1,", hak_version());
    EXPECT_EQ(strncmp(text, begin, (size_t)begun), 0);
    EXPECT_EQ(strcmp(text + length - 4, "}]}\n"), 0);
}

int main(void) {
    RUN(version_is_three_numbers);
    RUN(good_size_is_what_malloc_would_give);
    RUN(good_size_of_impossible_requests_is_zero);
    RUN(alloc_at_and_free_at_are_malloc_and_free);
    RUN(alloc_at_blocks_mix_with_the_rest_of_the_family);
    RUN(alloc_at_beyond_the_address_space_is_enomem);
    RUN(stats_json_is_one_object_with_our_version);
    return expect_status();
}
