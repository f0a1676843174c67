/* SPDX-License-Identifier: MIT
 *
 * Does a program that defragments as Valkey does, by jemalloc's calls alone, end with as much
 * memory as it holds? It compares the use of a block's slab with the mean of its bin's slabs, moves
 * the block past the caches, and reads the figures anew for each pass. */
#include "compat/names.h"

#include <malloc.h>
#include <stdlib.h>

enum { KEYS = 200000, PASSES = 30, BINS = 39 };

static char *key[KEYS];
static size_t key_bytes[KEYS];

static struct bin { size_t size, regions, used, slabs, nonfull; } bins[BINS];

static size_t query_mib[4], query_parts = 4;

static void read_bins(void) {
    next_epoch();
    for (unsigned i = 0; i < BINS; i++) {
        bins[i].used = read_bin(i, "curregs");
        bins[i].slabs = read_bin(i, "curslabs");
        bins[i].nonfull = read_bin(i, "nonfull_slabs");
    }
}

static const struct bin *bin_of(size_t size) {
    for (unsigned i = 0; i < BINS; i++) {
        if (bins[i].size == size) {
            return &bins[i];
        }
    }
    return NULL;
}

/* The slab is used by at most 9/8 of the mean of the bin's slabs that are not full. */
static bool is_to_move(const void *block) {
    size_t out[3], length = sizeof out;
    EXPECT_EQ(mallctlbymib(query_mib, query_parts, out, &length, (void *)&block, sizeof block), 0);
    const struct bin *bin = bin_of(out[2] / out[1]);
    EXPECT(bin != NULL && bin->regions == out[1]);
    size_t used = out[1] - out[0], full = bin->slabs - bin->nonfull;
    EXPECT(bin->used >= full * bin->regions);
    size_t rest = bin->used - full * bin->regions; /* in slabs that are not full */
    return used < bin->regions && bin->nonfull >= 2 && 1000 * used * bin->nonfull <= 1125 * rest;
}

static size_t move_all(void) {
    size_t moved = 0;
    for (size_t i = 0; i < KEYS; i++) {
        if (key[i] != NULL && is_to_move(key[i])) {
            char *fresh = mallocx(key_bytes[i], MALLOCX_TCACHE_NONE);
            EXPECT(fresh != NULL);
            memcpy(fresh, key[i], key_bytes[i]);
            sdallocx(key[i], key_bytes[i], MALLOCX_TCACHE_NONE);
            key[i] = fresh;
            moved++;
        }
    }
    return moved;
}

static size_t resident_permille(void) {
    malloc_trim(0);
    next_epoch();
    return read_size("stats.resident") * 1000 / read_size("stats.allocated");
}

static void moves_empty_slabs(void) {
    for (unsigned i = 0; i < BINS; i++) {
        bins[i].size = bin_figure(i, "size");
        bins[i].regions = bin_regions(i);
    }
    EXPECT_EQ(mallctlnametomib("experimental.utilization.batch_query", query_mib, &query_parts), 0);
    for (size_t i = 0; i < KEYS; i++) {
        key_bytes[i] = 20 + i * 2654435761u % 300;
        key[i] = malloc(key_bytes[i]);
        memset(key[i], (int)i, key_bytes[i]);
    }
    for (size_t i = 0; i < KEYS; i++) {
        if (i * 2654435761u / 1024 % 10 != 0) {
            free(key[i]);
            key[i] = NULL;
        }
    }
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    size_t before = resident_permille(), passes = 0, moved = 1;
    for (; moved != 0 && passes < PASSES; passes++) {
        read_bins();
        moved = move_all();
        if (expect_is_hardened()) { /* which holds freed blocks back */
            EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
        }
    }
    size_t after = resident_permille();
    expect_say("resident per held: %zu/1000, after %zu passes %zu/1000\n", before, passes, after);
    EXPECT(after <= 1300 && before > 3000);
    for (size_t i = 0; i < KEYS; i++) {
        EXPECT(key[i] == NULL || key[i][key_bytes[i] - 1] == (char)i);
        free(key[i]);
    }
}

int main(void) {
    RUN(moves_empty_slabs);
    return expect_status();
}
