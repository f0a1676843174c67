/* SPDX-License-Identifier: MIT
 *
 * Are the figures true? What the program holds is counted to the byte, and no difference that
 * programs form of the bins' figures is negative, however the slabs are filled. */
#include "compat/mallctl.h"

#include <stdlib.h>

enum { BLOCKS = 60000 };
static void *block[BLOCKS];

static void blocks_are_counted_to_the_byte(void) {
    static const size_t sizes[] = {1, 48, 100, 1100, 4000, 9000, 20000, 60000, 100000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        next_epoch();
        size_t before = read_size("stats.allocated"), bytes = 0;
        for (int n = 0; n < 20; n++) {
            block[n] = malloc(sizes[i]);
            bytes += sallocx(block[n], 0) + (expect_is_hardened() && sizes[i] < 65528 ? 8 : 0);
        }
        EXPECT_EQ(read_size("stats.allocated"), before); /* until the next epoch */
        next_epoch();
        size_t more = read_size("stats.allocated") - before;
        EXPECT(more >= bytes && more < bytes + 20 * 65536 * (sizes[i] > 65536) + 1);
        for (int n = 0; n < 20; n++) {
            free(block[n]);
        }
        next_epoch();
        EXPECT_EQ(read_size("stats.allocated"), before);
    }
}

static void the_sums_are_in_order(void) {
    void *held = malloc(1000);
    next_epoch();
    size_t allocated = read_size("stats.allocated"), active = read_size("stats.active");
    size_t resident = read_size("stats.resident"), metadata = read_size("stats.metadata");
    EXPECT(allocated > 0 && allocated <= active);
    EXPECT(active + metadata <= resident);
    EXPECT(active <= read_size("stats.mapped"));
    EXPECT_EQ(read_size("stats.arenas.0.small.allocated") +
                  read_size("stats.arenas.0.large.allocated"),
              allocated);
    EXPECT_EQ(read_size("stats.arenas.0.pactive"), active / read_size("arenas.page"));
    unsigned threads = 0;
    READ("stats.arenas.0.nthreads", threads);
    EXPECT_EQ(threads, 1);
    free(held);
}

/* The table that a program with jemalloc's quantum of 8 has compiled in. */
static void bins_are_those_of_jemalloc(void) {
    unsigned bins = 0, lextents = 0;
    size_t size = 0, step = 8, wanted = 8;
    char name[64];
    READ("arenas.nbins", bins);
    READ("arenas.nlextents", lextents);
    EXPECT_EQ(read_size("arenas.quantum"), 8);
    for (unsigned i = 0; i < bins + lextents; i++) {
        if (i < bins) {
            size = bin_figure(i, "size");
            EXPECT_EQ(bin_figure(i, "slab_size"), size * bin_regions(i));
        } else {
            snprintf(name, sizeof name, "arenas.lextent.%u.size", i - bins);
            size = read_size(name);
        }
        EXPECT_EQ(size, wanted);
        step = size >= 64 && (size & (size - 1)) == 0 ? size / 4 : step;
        wanted += step;
    }
    EXPECT_EQ(size, (size_t)7 << 60);
    EXPECT_EQ(bin_figure(bins - 1, "size"), 14336);
}

/* Slabs of every class with any part of their blocks in use. */
static void fill_some(uint64_t *state) {
    for (int i = 0; i < BLOCKS; i++) {
        *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
        size_t most = (size_t)16 << (*state >> 33) % 11;
        block[i] = malloc((*state >> 44) % most + 1);
    }
    for (int i = 0; i < BLOCKS; i++) {
        *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
        if ((*state >> 50) % 3 != 0) {
            free(block[i]);
            block[i] = NULL;
        }
    }
}

static void no_difference_of_bins_is_negative(void) {
    uint64_t state = 0x2545f4914f6cdd1du;
    for (int round = 0; round < 3; round++) {
        fill_some(&state);
        next_epoch();
        size_t slabs = 0;
        for (unsigned i = 0; i < 39; i++) {
            size_t regions = bin_regions(i), used = read_bin(i, "curregs");
            size_t all = read_bin(i, "curslabs"), nonfull = read_bin(i, "nonfull_slabs");
            EXPECT(nonfull <= all);
            EXPECT(used <= all * regions);
            EXPECT(used >= (all - nonfull) * regions);
            EXPECT((used == all * regions) == (nonfull == 0));
            slabs += all;
        }
        EXPECT(slabs > 20);
        for (int i = 0; i < BLOCKS; i++) {
            free(block[i]);
        }
    }
}

/* Blocks of three slabs, of which as many are freed in each. Two hold what is left when so many of
 * each are free that they fill a slab; until then all count as full, and nothing is to be moved. */
static void free_blocks_count_once_they_fill_a_slab(void) {
    enum { BIN = 38, SIZE = 14336 - 8 };
    size_t regions = bin_regions(BIN), part = regions / 3;
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    for (size_t i = 0; i < 3 * regions; i++) {
        block[i] = mallocx(SIZE, MALLOCX_TCACHE_NONE);
    }
    for (size_t freed = 0; freed <= part + 1; freed++) {
        next_epoch();
        size_t all = read_bin(BIN, "curslabs"), used = read_bin(BIN, "curregs");
        if (!expect_is_hardened()) { /* which holds freed blocks back */
            bool is_slab = 3 * freed >= regions;
            EXPECT_EQ(all, 3);
            EXPECT_EQ(used, (is_slab ? 2 : 3) * regions);
            EXPECT((read_bin(BIN, "nonfull_slabs") == 0) == !is_slab);
        }
        for (size_t slab = 0; slab < 3; slab++) {
            dallocx(block[slab * regions + freed], MALLOCX_TCACHE_NONE);
            block[slab * regions + freed] = NULL;
        }
    }
    for (size_t i = 0; i < 3 * regions; i++) {
        free(block[i]);
    }
}

static unsigned bin_of(size_t bytes) {
    for (unsigned i = 0; i < 39; i++) {
        if (bin_figure(i, "size") == bytes) {
            return i;
        }
    }
    return 39;
}

/* They hold no memory, and no move of blocks would free any. The program has used none of these
 * before. */
static void regions_never_handed_out_are_no_fragmentation(void) {
    void *first = malloc(3000), *second = malloc(13000);
    next_epoch();
    for (unsigned i = bin_of(3072); i <= bin_of(14336); i += bin_of(14336) - bin_of(3072)) {
        size_t regions = bin_regions(i), used = read_bin(i, "curregs");
        EXPECT(read_bin(i, "curslabs") != 0);
        EXPECT(read_bin(i, "curslabs") * regions - used <= 1);
    }
    free(first);
    free(second);
}

/* As Valkey asks: slab bytes / regions is the size of a bin, and the regions are that bin's. */
static void a_query_tells_the_slab_of_each_block(void) {
    uint64_t state = 88172645463325252u;
    fill_some(&state);
    for (int i = 0, n = 0; i < BLOCKS && n < 2000; i++) {
        size_t out[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, length = sizeof out;
        if (block[i] == NULL) {
            continue;
        }
        EXPECT_EQ(mallctl("experimental.utilization.batch_query", out, &length, &block[i], 8), 0);
        size_t usable = sallocx(block[i], 0), bytes = out[2] / out[1];
        EXPECT(out[1] > 0 && out[0] < out[1]); /* this block is in use */
        if (bytes <= 14336) {
            unsigned bin = bin_of(bytes);
            EXPECT(bin < 39 && usable <= bytes);
            EXPECT_EQ(out[1], bin_regions(bin));
        } else {
            EXPECT(out[0] == 0 && out[1] == 1 && out[2] >= usable);
        }
        n++;
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
}

static void queries_check_their_arguments(void) {
    size_t out[6], length = sizeof out, one = 3 * sizeof *out;
    void *in[2] = {malloc(100), NULL};
    const char *batch = "experimental.utilization.batch_query";
    EXPECT_EQ(mallctl(batch, out, &length, in, sizeof in), 0);
    EXPECT(out[1] > 1);
    EXPECT(out[3] == 0 && out[4] == 0 && out[5] == 0); /* NULL is nobody's */
    EXPECT_EQ(mallctl(batch, NULL, &length, in, sizeof in), EINVAL);
    EXPECT_EQ(mallctl(batch, out, NULL, in, sizeof in), EINVAL);
    EXPECT_EQ(mallctl(batch, out, &length, NULL, sizeof in), EINVAL);
    EXPECT_EQ(mallctl(batch, out, &length, in, 0), EINVAL);
    EXPECT_EQ(mallctl(batch, out, &length, in, sizeof in - 1), EINVAL);
    EXPECT_EQ(mallctl(batch, out, &one, in, sizeof in), EINVAL);
    EXPECT_EQ(mallctl(batch, out, &one, in, sizeof *in), 0);
    const char *query = "experimental.utilization.query";
    EXPECT_EQ(mallctl(query, out, &length, in, sizeof *in), 0);
    EXPECT(out[0] != 0 && out[4] >= out[1] && out[5] >= out[2]); /* of its bin, of its slab */
    EXPECT_EQ(mallctl(query, out, &length, in, sizeof in), EINVAL);
    EXPECT_EQ(mallctl(query, out, &one, in, sizeof *in), EINVAL);
    for (int i = 0; i < 1000; i++) { /* addresses of nobody */
        in[1] = (void *)((uintptr_t)i * 0x123456789abu);
        EXPECT_EQ(mallctl(batch, out, &length, in, sizeof in), 0);
    }
    free(in[0]);
}

int main(void) {
    RUN(regions_never_handed_out_are_no_fragmentation);
    RUN(blocks_are_counted_to_the_byte);
    RUN(the_sums_are_in_order);
    RUN(bins_are_those_of_jemalloc);
    RUN(no_difference_of_bins_is_negative);
    RUN(free_blocks_count_once_they_fill_a_slab);
    RUN(a_query_tells_the_slab_of_each_block);
    RUN(queries_check_their_arguments);
    return expect_status();
}
