/* SPDX-License-Identifier: MIT
 *
 * Do mallocx and its kin keep their contracts, with any flags, and do their blocks and those of
 * malloc's family free each other? Without watched blocks, whose usable size is what was asked for.
 */
#include "compat/mallctl.h"

#include <stdlib.h>

/* volatile: else the compiler warns of a size that no object has. */
static const volatile size_t too_large = (size_t)PTRDIFF_MAX + 1, all = SIZE_MAX;

static bool is_byte(const unsigned char *at, int byte, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (at[i] != byte) {
            return false;
        }
    }
    return true;
}

static void blocks_have_the_size_that_nallocx_says(void) {
    for (size_t size = 1; size <= 3000000; size += size < 3000 ? 1 : size / 7) {
        size_t usable = nallocx(size, 0);
        void *block = mallocx(size, 0);
        EXPECT(block != NULL && usable >= size);
        EXPECT_EQ(sallocx(block, 0), usable);
        EXPECT_EQ(nallocx(usable, 0), usable);
        sdallocx(block, size, 0);
    }
}

static void every_alignment_up_to_4_MiB_is_kept(void) {
    static const size_t sizes[] = {1, 15, 24, 100, 1000, 5000, 40000, 70000, 1100000};
    for (unsigned log2 = 0; log2 <= 22; log2++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int more = 0; more < 4; more++) {
                int flags = MALLOCX_LG_ALIGN(log2) | (more & 1 ? MALLOCX_ZERO : 0) |
                            (more & 2 ? MALLOCX_TCACHE_NONE : 0);
                EXPECT_EQ(MALLOCX_ALIGN((size_t)1 << log2), MALLOCX_LG_ALIGN(log2));
                unsigned char *block = mallocx(sizes[i], flags);
                EXPECT(block != NULL);
                EXPECT_EQ((uintptr_t)block & (((size_t)1 << log2) - 1), 0);
                EXPECT_EQ(sallocx(block, flags), nallocx(sizes[i], flags));
                EXPECT((more & 1) == 0 || is_byte(block, 0, sallocx(block, 0)));
                memset(block, 0xa5, sallocx(block, 0));
                sdallocx(block, sizes[i], flags);
            }
        }
    }
}

static void zeroed_blocks_are_zero_to_their_usable_end(void) {
    for (size_t size = 1; size < 300000; size = size * 5 / 4 + 1) {
        for (int flags = 0; flags <= MALLOCX_TCACHE_NONE; flags += MALLOCX_TCACHE_NONE) {
            for (int i = 0; i < 3; i++) { /* the second was in use before */
                unsigned char *block = mallocx(size, MALLOCX_ZERO | flags);
                EXPECT(block != NULL && is_byte(block, 0, sallocx(block, 0)));
                memset(block, 0xff, sallocx(block, 0));
                dallocx(block, flags);
            }
        }
    }
}

static void what_a_block_grows_by_is_zero_if_asked_for(void) {
    for (int flags = 0; flags <= MALLOCX_TCACHE_NONE; flags += MALLOCX_TCACHE_NONE) {
        for (unsigned log2 = 4; log2 <= 14; log2 += 5) {
            int how = flags | MALLOCX_ZERO | MALLOCX_LG_ALIGN(log2);
            unsigned char *block = mallocx(10, how);
            for (size_t size = 20; size < 3000000; size = size * 3 / 2) {
                size_t before = sallocx(block, 0);
                memset(block, 0x5a, before);
                block = rallocx(block, size, how);
                EXPECT(block != NULL && sallocx(block, 0) >= size);
                EXPECT_EQ((uintptr_t)block % ((size_t)1 << log2), 0);
                EXPECT(is_byte(block, 0x5a, before < size ? before : size));
                EXPECT(sallocx(block, 0) <= before ||
                       is_byte(block + before, 0, sallocx(block, 0) - before));
            }
            dallocx(block, how);
        }
    }
}

static void a_zeroed_block_stays_zero_whatever_its_alignment(void) {
    unsigned char *block = mallocx(1, MALLOCX_ZERO);
    for (unsigned log2 = 0; log2 <= 20; log2++) {
        block = rallocx(block, 1, MALLOCX_ZERO | MALLOCX_LG_ALIGN(log2));
        EXPECT(block != NULL && (uintptr_t)block % ((size_t)1 << log2) == 0);
        EXPECT(is_byte(block, 0, sallocx(block, 0)));
    }
    dallocx(block, 0);
}

static void rallocx_shrinks_and_keeps_what_fits(void) {
    unsigned char *block = mallocx(2000000, 0);
    memset(block, 7, 2000000);
    for (size_t size = 1500000; size > 0; size /= 3) {
        block = rallocx(block, size, size % 2 == 0 ? 0 : MALLOCX_ALIGN(64));
        EXPECT(block != NULL && is_byte(block, 7, size));
    }
    block = rallocx(block, 0, 0); /* not defined by jemalloc: as size 1 */
    EXPECT(block != NULL);
    dallocx(block, 0);
    block = rallocx(NULL, 100, 0); /* the same: as mallocx */
    EXPECT(block != NULL);
    dallocx(block, 0);
}

static void xallocx_never_moves(void) {
    for (size_t size = 1; size <= 3000000; size = size * 3 + 1) {
        unsigned char *block = mallocx(size, 0);
        memset(block, 9, size);
        size_t now = xallocx(block, size * 2, size, 0);
        EXPECT_EQ(now, sallocx(block, 0));
        EXPECT(now >= size && is_byte(block, 9, size));
        EXPECT_EQ(xallocx(block, size, 0, 0), sallocx(block, 0));
        EXPECT(sallocx(block, 0) >= size);
        EXPECT_EQ(xallocx(block, size, all - size, MALLOCX_ZERO), sallocx(block, 0));
        dallocx(block, 0);
    }
}

static void what_no_block_can_have_is_refused(void) {
    void *block = mallocx(100, 0);
    const size_t sizes[] = {too_large, all, all - 100, (size_t)1 << 62};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int flags = 0; flags <= MALLOCX_TCACHE_NONE; flags += MALLOCX_TCACHE_NONE) {
            EXPECT(mallocx(sizes[i], flags) == NULL);
            EXPECT(mallocx(sizes[i], flags | MALLOCX_ZERO) == NULL);
            EXPECT(rallocx(block, sizes[i], flags) == NULL);
            EXPECT(rallocx(block, sizes[i], flags | MALLOCX_ALIGN(4096)) == NULL);
        }
    }
    EXPECT_EQ(nallocx(too_large, 0), 0);
    EXPECT_EQ(nallocx(all, MALLOCX_ALIGN(64)), 0);
    for (unsigned log2 = 47; log2 < 64; log2++) {
        EXPECT(mallocx(1, MALLOCX_LG_ALIGN(log2)) == NULL);
        EXPECT(rallocx(block, 1, MALLOCX_LG_ALIGN(log2)) == NULL);
    }
    EXPECT_EQ(nallocx(1, MALLOCX_LG_ALIGN(63)), 0);
    EXPECT(sallocx(block, 0) >= 100);
    dallocx(block, 0);
}

static void garbage_in_flags_does_no_harm(void) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        int flags = (int)state;
        size_t size = (size_t)(state >> 40) % 5000 + 1;
        unsigned char *block = mallocx(size, flags & ~0x30); /* alignments up to 32 KiB */
        if (block != NULL) {
            memset(block, 1, size);
            block = rallocx(block, size + 10, flags & ~0x30 & 0xfffff);
            EXPECT(block != NULL);
            EXPECT_EQ(sallocx(block, flags), xallocx(block, 1, 1, flags));
            dallocx(block, flags);
        }
        (void)nallocx(size, flags);
    }
}

static void an_arena_that_is_not_there_gives_nothing(void) {
    unsigned arenas = 0, made = 0;
    READ("arenas.narenas", arenas);
    EXPECT(mallocx(100, MALLOCX_ARENA(arenas)) == NULL);
    EXPECT(mallocx(100, MALLOCX_ARENA(4094)) == NULL);
    READ("arenas.create", made);
    EXPECT_EQ(made, arenas);
    void *block = mallocx(100, MALLOCX_ARENA(made) | MALLOCX_TCACHE_NONE);
    EXPECT(block != NULL);
    block = rallocx(block, 5000, MALLOCX_ARENA(made));
    EXPECT(block != NULL && rallocx(block, 10, MALLOCX_ARENA(4000)) == NULL);
    dallocx(block, MALLOCX_ARENA(made));
}

static void blocks_of_both_families_free_each_other(void) {
    for (size_t size = 1; size < 3000000; size = size * 2 + 1) {
        for (int flags = 0; flags <= MALLOCX_TCACHE_NONE; flags += MALLOCX_TCACHE_NONE) {
            free(mallocx(size, flags));
            dallocx(malloc(size), flags);
            sdallocx(malloc(size), size, flags);
            free(rallocx(malloc(size), size + 1, flags));
            free(realloc(mallocx(size, flags), size + 1));
            dallocx(calloc(1, size), flags);
            dallocx(aligned_alloc(64, (size + 63) & ~(size_t)63), flags);
        }
    }
    dallocx(NULL, 0);
    dallocx(NULL, MALLOCX_TCACHE_NONE);
    sdallocx(NULL, 8, MALLOCX_TCACHE_NONE);
    dallocx(mallocx(0, 0), MALLOCX_TCACHE_NONE);
    EXPECT_EQ(sallocx(NULL, 0), 0);
}

/* Blocks past the bins come from slabs, not from what this thread freed last. */
static void past_the_bins_is_past_the_bins(void) {
    void *kept = mallocx(48, 0), *other = mallocx(48, 0);
    dallocx(kept, 0);
    dallocx(other, MALLOCX_TCACHE_NONE);
    void *again = mallocx(48, 0);
    EXPECT(expect_is_hardened() || again == kept);
    dallocx(again, MALLOCX_TCACHE_NONE);
}

int main(void) {
    RUN(blocks_have_the_size_that_nallocx_says);
    RUN(every_alignment_up_to_4_MiB_is_kept);
    RUN(zeroed_blocks_are_zero_to_their_usable_end);
    RUN(what_a_block_grows_by_is_zero_if_asked_for);
    RUN(a_zeroed_block_stays_zero_whatever_its_alignment);
    RUN(rallocx_shrinks_and_keeps_what_fits);
    RUN(xallocx_never_moves);
    RUN(what_no_block_can_have_is_refused);
    RUN(garbage_in_flags_does_no_harm);
    RUN(an_arena_that_is_not_there_gives_nothing);
    RUN(blocks_of_both_families_free_each_other);
    RUN(past_the_bins_is_past_the_bins);
    return expect_status();
}
