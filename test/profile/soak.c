/* SPDX-License-Identifier: MIT
 *
 * Allocates a number of times by five functions, of which one is called in 1,024 ways, and then
 * says "ready". For a line of standard input it writes what each did: name, blocks, blocks in use,
 * usable bytes of a block. Usage: soak COUNT */
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noipa))
#endif

enum { KEPT_MOST = 100000, RING = 100000, WAYS_DEEP = 10 };

typedef struct {
    const char *name;
    size_t usable;
    uint64_t blocks, in_use;
} soak_site_t;

static soak_site_t site_gone = {.name = "make_gone"}, site_soon = {.name = "make_soon"},
                   site_kept = {.name = "make_kept"}, site_ways = {.name = "make_ways"},
                   site_large = {.name = "make_large"};

static void *count(soak_site_t *site, void *block) {
    if (site->blocks == 0) {
        site->usable = malloc_usable_size(block);
    }
    if (block == NULL) {
        abort();
    }
    site->blocks++;
    site->in_use++;
    return block;
}

static void drop(soak_site_t *site, void *block) {
    site->in_use -= block != NULL;
    free(block);
}

APART void *make_gone(void) {
    return count(&site_gone, malloc(200));
}

APART void *make_soon(void) {
    return count(&site_soon, malloc(1000));
}

APART void *make_kept(void) {
    return count(&site_kept, malloc(600));
}

APART void *make_large(void) {
    return count(&site_large, malloc(200000));
}

APART void *make_ways(unsigned way, unsigned deep);

APART void *left(unsigned way, unsigned deep) {
    void *block = make_ways(way / 2, deep - 1);
    __asm__ volatile("" : : : "memory"); /* no tail call */
    return block;
}

APART void *right(unsigned way, unsigned deep) {
    void *block = make_ways(way / 2, deep - 1);
    __asm__ volatile("" : : : "memory");
    return block;
}

APART void *make_ways(unsigned way, unsigned deep) {
    if (deep > 0) {
        return way % 2 == 0 ? left(way, deep) : right(way, deep);
    }
    return count(&site_ways, malloc(300));
}

static uint32_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(state >> 33);
}

/* Of 16 blocks 12 go at once, 3 after 100,000 others of theirs, and so does one of many ways. */
static void work(uint64_t most) {
    static void *soon[RING], *ways[RING], *kept[KEPT_MOST];
    uint64_t keep_each = most / KEPT_MOST;
    for (uint64_t at = 0; at < most; at++) {
        if (keep_each != 0 && at % keep_each == 0 && site_kept.blocks < KEPT_MOST) {
            size_t place = site_kept.blocks;
            kept[place] = make_kept();
        } else if (at % 4096 == 1) {
            drop(&site_large, make_large());
        } else if (at % 16 == 2) {
            void **place = &ways[site_ways.blocks % RING];
            drop(&site_ways, *place);
            *place = make_ways(next_random() % (1U << WAYS_DEEP), WAYS_DEEP);
        } else if (at % 16 < 6 && at % 16 > 2) {
            void **place = &soon[site_soon.blocks % RING];
            drop(&site_soon, *place);
            *place = make_soon();
        } else {
            drop(&site_gone, make_gone());
        }
    }
    __asm__ volatile("" : : "r"(kept) : "memory");
}

int main(int argc, char **argv) {
    const soak_site_t *sites[] = {&site_gone, &site_soon, &site_kept, &site_ways, &site_large};
    char line[16];
    if (argc != 2) {
        return 2;
    }
    work(strtoull(argv[1], NULL, 10));
    puts("ready");
    fflush(stdout);
    while (read(0, line, sizeof line) > 0) {
        for (size_t at = 0; at < sizeof sites / sizeof *sites; at++) {
            printf("%s %" PRIu64 " %" PRIu64 " %zu\n", sites[at]->name, sites[at]->blocks,
                   sites[at]->in_use, sites[at]->usable);
        }
        puts("end");
        fflush(stdout);
    }
    return 0;
}
