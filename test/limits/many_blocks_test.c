/* SPDX-License-Identifier: MIT
 *
 * More large blocks than the kernel allows mappings (max_map_count, 65 530 as a rule), freed so
 * that as many holes as possible appear, does every request end in a block or in NULL with ENOMEM,
 * and does the process go on? Argument: blocks (default 70 000).
 */
#include "api/family.h"

enum { BLOCK_BYTES = 200 * 1024, COUNT_MAX = 1 << 20 };

static size_t block_count;
static unsigned char **blocks;

static void take(size_t from, size_t step, size_t size) {
    for (size_t i = from; i < block_count; i += step) {
        errno = 0;
        blocks[i] = family.malloc(size);
        if (blocks[i] == NULL) {
            EXPECT_EQ(errno, ENOMEM);
        } else if (i % 16 == 0) {
            blocks[i][0] = blocks[i][size - 1] = (unsigned char)i;
        }
    }
}

static void give(size_t from, size_t step, size_t size) {
    for (size_t i = from; i < block_count; i += step) {
        if (blocks[i] != NULL && i % 16 == 0) {
            EXPECT_EQ(blocks[i][0], (unsigned char)i);
            EXPECT_EQ(blocks[i][size - 1], (unsigned char)i);
        }
        family.free(blocks[i]);
        blocks[i] = NULL;
    }
}

static size_t count_taken(void) {
    size_t count = 0;
    for (size_t i = 0; i < block_count; ++i) {
        count += blocks[i] != NULL;
    }
    return count;
}

static void many_large_blocks_with_holes_are_survived(void) {
    take(0, 1, BLOCK_BYTES);
    EXPECT(count_taken() >= 60000 || block_count < 70000);
    give(1, 2, BLOCK_BYTES);
    take(1, 2, 3 * BLOCK_BYTES / 2);
    give(0, 3, BLOCK_BYTES);
    for (size_t size = 16; size <= 32 << 20; size *= 2) {
        void *block = family.malloc(size);
        EXPECT(block != NULL);
        family.free(block);
    }
    for (size_t i = 0; i < block_count; ++i) {
        family.free(blocks[i]);
        blocks[i] = NULL;
    }
    void *after = family.malloc(64 << 20);
    EXPECT(after != NULL);
    family.free(after);
}

int main(int argc, char **argv) {
    block_count = expect_arg(argc, argv, 1, 70000);
    if (block_count > COUNT_MAX) {
        expect_skip("too many blocks");
    }
    family_load();
    blocks = family.calloc(block_count, sizeof *blocks);
    if (blocks == NULL) {
        return 1;
    }
    RUN(many_large_blocks_with_holes_are_survived);
    return expect_status();
}
