/* SPDX-License-Identifier: MIT
 *
 * What a fatal report says of an address: each kind of memory, and none. */
#include "slab/slab_inl.h"
#include "unit/guard.h"

enum { ROOM = 256 };

UNIT_AROUND(describe_begin) {
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

UNIT_TEST(small_block_is_described_by_size_number_and_slab) {
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

UNIT_TEST(place_without_a_block_is_told_apart) {
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

UNIT_TEST(block_above_64_kib_is_large_or_huge) {
    char *large = hak_malloc(300 * KIB), *huge = hak_malloc(3u * MIB);
    expect_described(large, "in a large block");
    expect_described(large + 200 * KIB, "in a large block");
    expect_described(huge + 16, "in a huge block");
    hak_free(huge);
    hak_free(large);
    expect_described(large, "in memory that is unused now");
}

UNIT_TEST(watched_block_is_described_as_watched) {
    char *block = guard_sample(32, HAK_BLOCK_ALIGN);
    assert_non_null(block);
    expect_described(block, "watched");
    hak_fast_free(block);
    expect_described(block, "watched");
}

UNIT_TEST(address_of_others_is_in_no_memory_of_ours) {
    static const uintptr_t addresses[] = {0, 8, 0x8000000000000000u, 0xffff800000000000u,
                                          UINTPTR_MAX};
    expect_described(&state, "not in memory that we use now");
    for (unsigned i = 0; i < UNIT_COUNT(addresses); i++) {
        expect_described((const void *)addresses[i], "not in memory that we use now");
    }
}

UNIT_GROUP(describe_begin)
