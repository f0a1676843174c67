/* SPDX-License-Identifier: MIT
 *
 * What a fatal report says of an address: each kind of memory, and none. */
#include "large/large.h"
#include "slab/slab_inl.h"
#include "unit/guard.h"

enum { KIB = 1 << 10, MIB = 1 << 20, ROOM = 256 };

static int begin(void **state) {
    (void)state;
    hak_store_relaxed(&hak_knobs.guard_rate, 1u << 30);
    self()->guard_left = 1 << 30; /* no block is watched by chance */
    return 0;
}

static void expect_described(const void *address, const char *text) {
    char ending[64];
    HAK_TEXT(described, ROOM);
    hak_describe(&described, address);
    const char *said = hak_text_string(&described);
    snprintf(ending, sizeof ending, "; thread %u", hak_os_thread_id());
    UNIT_EXPECT(strncmp(said, text, strlen(text)) == 0, "'%s' is not '%s'", said, text);
    UNIT_EXPECT(strcmp(said + strlen(text), ending) == 0, "'%s' is not '%s'", said, text);
}

static void small_block_is_described_by_size_number_and_slab(void **state) {
    (void)state;
    char expected[ROOM];
    char *block = hak_malloc(100), *start = hak_tag_strip(block);
    hak_slab_t *slab = hak_slab_of(start);
    unsigned number = (unsigned)(start - slab->base) / slab->block_bytes;
    snprintf(expected, sizeof expected, "112-byte block %u of the slab at %p", number,
             (void *)slab->base);
    expect_described(block, expected);
    snprintf(expected, sizeof expected, "17 bytes into 112-byte block %u of the slab at %p", number,
             (void *)slab->base);
    expect_described(block + 17, expected);
    hak_free(block);
}

static void place_without_a_block_is_told_apart(void **state) {
    (void)state;
    char expected[ROOM];
    char *block = hak_malloc(48 * KIB);
    hak_slab_t *slab = hak_slab_of(hak_tag_strip(block));
    size_t bytes = slab->block_bytes, carved = hak_single_writer_load(&slab->carved);
    assert_true(carved < slab->capacity);
    snprintf(expected, sizeof expected, "%zu-byte block %zu of the slab at %p, never handed out",
             bytes, carved, (void *)slab->base);
    expect_described(slab->base + carved * bytes, expected);
    size_t end = (size_t)slab->units * HAK_UNIT_BYTES;
    if (slab->capacity * bytes < end) {
        snprintf(expected, sizeof expected,
                 "%zu-byte block %u of the slab at %p, behind its last block", bytes,
                 (unsigned)slab->capacity, (void *)slab->base);
        expect_described(slab->base + slab->capacity * bytes, expected);
    }
    hak_free(block);
}

static void block_above_64_kib_is_large_or_huge(void **state) {
    (void)state;
    char *large = hak_malloc(300 * KIB), *huge = hak_malloc(3u * MIB);
    expect_described(large, "in a large block");
    expect_described(large + 200 * KIB, "in a large block");
    expect_described(huge + 16, "in a huge block");
    hak_free(huge);
    hak_free(large);
    expect_described(large, "in memory that is unused now");
}

static void watched_block_is_described_as_watched(void **state) {
    (void)state;
    char *block = guard_sample(32, HAK_BLOCK_ALIGN);
    assert_non_null(block);
    expect_described(block, "watched");
    hak_fast_free(block);
    expect_described(block, "watched");
}

static void address_of_others_is_in_no_memory_of_ours(void **state) {
    (void)state;
    static const uintptr_t addresses[] = {0, 8, 0x8000000000000000u, 0xffff800000000000u,
                                          UINTPTR_MAX};
    expect_described(&state, "not in memory that we use now");
    for (unsigned i = 0; i < UNIT_COUNT(addresses); i++) {
        expect_described((const void *)addresses[i], "not in memory that we use now");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_block_is_described_by_size_number_and_slab),
    cmocka_unit_test(place_without_a_block_is_told_apart),
    cmocka_unit_test(block_above_64_kib_is_large_or_huge),
    cmocka_unit_test(watched_block_is_described_as_watched),
    cmocka_unit_test(address_of_others_is_in_no_memory_of_ours),
};

int main(void) {
    return cmocka_run_group_tests(tests, begin, NULL) == 0 ? 0 : 1;
}
