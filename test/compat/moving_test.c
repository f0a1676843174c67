/* SPDX-License-Identifier: MIT
 *
 * Does a program that defragments as Valkey does, by jemalloc's calls alone, end with as much
 * memory as it holds? It compares the use of a block's slab with the mean of its bin's slabs, moves
 * the block past the caches, and reads the figures anew for each pass. Argument: how many keys.
 * Says the processor time of it, too, to compare it with jemalloc's: the program runs on that,
 * where its library is found by the name of ours (docs/jemalloc.md). */
#include "compat/mallctl.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { KEYS = 200000, PASSES = 30, BINS_MOST = 64 };

static struct key {
    char *text;
    size_t bytes;
} * keys; /* apart from the heap */
static size_t key_count;

static struct bin { size_t size, regions, used, slabs, nonfull; } bins[BINS_MOST];
static unsigned bin_count;

static size_t query_mib[4], query_parts = 4;

static void read_bins(void) {
    next_epoch();
    for (unsigned i = 0; i < bin_count; i++) {
        bins[i].used = read_bin(i, "curregs");
        bins[i].slabs = read_bin(i, "curslabs");
        bins[i].nonfull = read_bin(i, "nonfull_slabs");
    }
}

static const struct bin *bin_of(size_t size) {
    for (unsigned i = 0; i < bin_count; i++) {
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
    size_t rest = bin->used - full * bin->regions; /* in slabs that are not full */
    if (bin->used < full * bin->regions) {         /* jemalloc's current slab counts as full */
        EXPECT(!expect_is_hakmem());
        rest = 0;
    }
    return used < bin->regions && bin->nonfull >= 2 && 1000 * used * bin->nonfull <= 1125 * rest;
}

static size_t asked, moved_bytes;

static size_t move_all(void) {
    size_t moved = 0;
    for (struct key *key = keys; key < keys + key_count; key++) {
        asked += key->text != NULL;
        if (key->text != NULL && is_to_move(key->text)) {
            char *fresh = mallocx(key->bytes, MALLOCX_TCACHE_NONE);
            EXPECT(fresh != NULL);
            memcpy(fresh, key->text, key->bytes);
            sdallocx(key->text, key->bytes, MALLOCX_TCACHE_NONE);
            key->text = fresh;
            moved_bytes += key->bytes;
            moved++;
        }
    }
    return moved;
}

static size_t resident_permille(void) {
    EXPECT_EQ(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    next_epoch();
    return read_size("stats.resident") * 1000 / read_size("stats.allocated");
}

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fill(unsigned part, unsigned parts) {
    for (size_t i = 0; i < key_count; i++) {
        if (i / 7 * 40503u % 100 * parts / 100 == part) {
            keys[i].bytes = 20 + i * 2654435761u % 300;
            keys[i].text = malloc(keys[i].bytes);
            memset(keys[i].text, (int)i, keys[i].bytes);
        }
    }
}

/* A heap of its own, where there is a second processor. */
static void run_on(size_t processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static volatile bool has_filled, may_end;

static void *fill_half_and_stay(void *unused) {
    run_on(1);
    fill(0, 2);
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    has_filled = true;
    while (!may_end) {
        usleep(1000);
    }
    return unused;
}

static bool has_two_heaps;
static pthread_t filler;

static void fill_and_delete(void) {
    fill(has_two_heaps, has_two_heaps + 1u);
    if (has_two_heaps) {
        EXPECT_EQ(pthread_create(&filler, NULL, fill_half_and_stay, NULL), 0);
        while (!has_filled) {
            usleep(1000);
        }
    }
    for (size_t i = 0; i < key_count; i++) {
        if (i * 2654435761u / 1024 % 10 != 0) {
            free(keys[i].text);
            keys[i].text = NULL;
        }
    }
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
}

static void moves_empty_slabs(void) {
    READ("arenas.nbins", bin_count);
    EXPECT(bin_count <= BINS_MOST);
    for (unsigned i = 0; i < bin_count; i++) {
        bins[i].size = bin_figure(i, "size");
        bins[i].regions = bin_regions(i);
    }
    EXPECT_EQ(mallctlnametomib("experimental.utilization.batch_query", query_mib, &query_parts), 0);
    fill_and_delete();
    size_t before = resident_permille(), resident = read_size("stats.resident");
    size_t passes = 0, moved = key_count;
    double begun = processor_seconds();
    for (; moved * 1000 > key_count && passes < PASSES; passes++) { /* 1 % of those that are left */
        read_bins();
        moved = move_all();
        if (expect_is_hardened()) { /* which holds freed blocks back */
            EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
        }
    }
    double took = processor_seconds() - begun;
    size_t after = resident_permille();
    expect_say("resident per held: %zu/1000, after %zu passes %zu/1000\n", before, passes, after);
    expect_say(
        "%zu questions, %zu bytes moved, %.3f s of processor time, %.3f a GB that was resident\n",
        asked, moved_bytes, took, took * 1e9 / (double)resident);
    EXPECT(after <= 1300 && before > 3000);
    EXPECT(passes < PASSES); /* they do not move for ever */
    for (size_t i = 0; i < key_count; i++) {
        EXPECT(keys[i].text == NULL || keys[i].text[keys[i].bytes - 1] == (char)i);
        free(keys[i].text);
    }
}

/* One thread empties slabs of both, and takes slabs of the other's. */
static void moves_empty_slabs_of_two_heaps(void) {
    has_two_heaps = true;
    run_on(0);
    moves_empty_slabs();
    may_end = true;
    EXPECT_EQ(pthread_join(filler, NULL), 0);
}

int main(int argc, char **argv) {
    key_count = expect_arg(argc, argv, 1, KEYS);
    keys = mmap(NULL, key_count * sizeof *keys, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if (keys == MAP_FAILED) {
        return 2;
    }
    RUN(moves_empty_slabs_of_two_heaps);
    has_two_heaps = false;
    RUN(moves_empty_slabs);
    return expect_status();
}
