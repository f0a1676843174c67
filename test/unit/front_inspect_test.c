/* SPDX-License-Identifier: MIT
 *
 * The check of a thread's free blocks at the end of the process: what it notices, that it changes
 * nothing, and that its work is bounded. */
#include "unit/fatal.h"
#include "unit/front.h"

enum { INSPECT_COUNT = 9000, BOUND = 1 << 13, LISTED = 10 };

static void *block[INSPECT_COUNT];

UNIT_AROUND(inspect_begin) {
    UNIT_TAKE_ALL(block, INSPECT_COUNT, unit_malloc(64));
    hak_collect_thread();
    return 0;
}

/* Links the first `count` blocks, so that block 0 is the head; the last leads to `end`. */
static void **link_blocks(unsigned count, void *end) {
    for (unsigned i = 0; i < count; i++) {
        hak_link_begin(block[i], i + 1 < count ? block[i + 1] : end);
    }
    return block;
}

/* The bin of 64-byte blocks. */
static void **list_head(void) {
    return &self()->bin[SC_64].head;
}

UNIT_TEST(sound_lists_pass_unchanged) {
    void **head = list_head();
    for (unsigned count = 0; count < 40; count++) {
        *head = count == 0 ? NULL : link_blocks(count, NULL)[0];
        void *before = *head;
        hak_tcache_inspect(self());
        assert_ptr_equal(*head, before);
        for (unsigned i = 0; i < count; i++) {
            assert_ptr_equal(hak_link_get(block[i]), i + 1 < count ? block[i + 1] : NULL);
        }
    }
    *head = NULL;
}

/* The last of `count` blocks leads back to block `first`. */
static void expect_cycle(void **head, unsigned count, unsigned first) {
    *head = link_blocks(count, block[first])[0];
    UNIT_EXPECT_FATAL(hak_tcache_inspect(self()), "double free");
    *head = NULL;
}

/* The block that is freed twice leads to those freed between, and they lead back to it. */
UNIT_TEST(double_free_is_noticed_wherever_it_is) {
    for (unsigned count = 1; count <= 2 * LISTED; count++) {
        for (unsigned first = 0; first < count; first++) {
            expect_cycle(list_head(), count, first);
        }
    }
}

UNIT_TEST(write_to_a_freed_block_is_noticed) {
    for (unsigned i = 0; i < LISTED; i++) {
        void **head = list_head();
        *head = link_blocks(LISTED, NULL)[0];
        *(volatile uint64_t *)block[i] ^= 1;
        UNIT_EXPECT_FATAL(hak_tcache_inspect(self()), "write to a freed block");
        *head = NULL;
    }
}

UNIT_TEST(address_inside_a_block_is_noticed) {
    void **head = list_head();
    *head = (char *)block[0] + 16;
    hak_link_begin(*head, NULL);
    UNIT_EXPECT_FATAL(hak_tcache_inspect(self()), "inside a block");
    *head = NULL;
}

/* The block went back to its slab, and was freed again. */
UNIT_TEST(block_that_its_slab_has_is_noticed) {
    if (HAK_HARDEN) {
        return; /* noticed by the second free */
    }
    void **head = list_head(), *twice = block[INSPECT_COUNT - 1];
    hak_free(twice);
    hak_collect_thread();
    hak_link_set(twice, NULL); /* as a free does, which leaves the second word alone */
    *head = twice;
    UNIT_EXPECT_FATAL(hak_tcache_inspect(self()), "double free");
    *head = NULL;
}

UNIT_TEST(work_is_bounded) {
    void **head = list_head();
    *head = link_blocks(BOUND + 1, NULL)[0];
    *(volatile uint64_t *)block[BOUND] ^= 1;
    hak_tcache_inspect(self());
    *head = block[1];
    UNIT_EXPECT_FATAL(hak_tcache_inspect(self()), "write to a freed block");
    *head = NULL;
}

UNIT_GROUP(inspect_begin)
