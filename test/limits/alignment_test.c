/* SPDX-License-Identifier: MIT
 *
 * Alignments up to 1 GiB: does the request end in a block at such an address, and is no more
 * mapped after it than the block, although the kernel must be asked for more to find the place?
 * Argument: log2 of the largest alignment (default 30).
 */
#include "api/family.h"
#include "api/figure.h"

enum { KIBIBYTE = 1 << 10, MEBIBYTE = 1 << 20, COUNT = 8 };

/* The rest of what the allocator maps for itself: a superslab, a piece of metadata, and a leaf of
 * its page map for each 4 GiB of addresses, of which every block may lie in another one. */
enum { SLACK_BYTES = 8 * MEBIBYTE };

static size_t largest_alignment, most_beyond;

static void *aligned(size_t alignment, size_t size) {
    unsigned char *block = family.aligned_alloc(alignment, size);
    EXPECT(block != NULL);
    EXPECT_EQ((uintptr_t)block % alignment, 0);
    block[0] = block[size - 1] = 1;
    EXPECT(family.usable_size(block) >= size);
    return block;
}

static void several_of(size_t alignment, size_t size) {
    void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; ++i) {
        size_t address_space = expect_statm_bytes(0), rss = expect_rss_bytes();
        blocks[i] = aligned(alignment, size);
        size_t grown = expect_statm_bytes(0) - address_space;
        if (grown < SIZE_MAX / 2 && grown > size && grown - size > most_beyond) {
            most_beyond = grown - size;
        }
        if (expect_is_hakmem()) { /* others keep the surplus */
            figure_address_space_at_most(address_space, size + SLACK_BYTES);
        }
        expect_rss_at_most(rss, 4 * MEBIBYTE);
    }
    for (size_t i = 0; i < COUNT; ++i) {
        family.free(blocks[i]);
    }
}

static void alignment_of_any_size_maps_no_more_than_the_block(void) {
    static const size_t sizes[] = {1, 4096, 100000, MEBIBYTE, 5 * MEBIBYTE, 64 * MEBIBYTE};
    EXPECT_HAS(aligned_alloc);
    for (size_t alignment = 64 * KIBIBYTE; alignment <= largest_alignment; alignment *= 4) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
            several_of(alignment, sizes[i]);
        }
    }
    several_of(largest_alignment, 4096);
    several_of(largest_alignment, largest_alignment);
    expect_say("at most %zu KiB beyond the block were mapped\n", most_beyond >> 10);
}

int main(int argc, char **argv) {
    largest_alignment = (size_t)1 << expect_arg(argc, argv, 1, 30);
    family_load();
    expect_watchdog();
    RUN(alignment_of_any_size_maps_no_more_than_the_block);
    return expect_status();
}
