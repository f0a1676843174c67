/* SPDX-License-Identifier: MIT
 *
 * The table of crimes: double frees, frees inside blocks, realloc of freed blocks, writes to links
 * and sized frees, by every pair of threads, on every sort of block. One cell a run, preloaded;
 * matrix_test.py knows what must be said. Without arguments the cells are listed. */
#include "api/still_clock.h" /* how soon an error is found may depend on time */
#include "crimes.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void hak_collect_thread(void) __attribute__((weak));
extern void free_sized(void *, size_t) __attribute__((weak));

typedef struct sort {
    const char *name;
    size_t bytes, align;
} sort_t;

static const sort_t sorts[] = {
    {"16", 16, 0},
    {"100", 100, 0},
    {"1000", 1000, 0},
    {"4000", 4000, 0},
    {"9000", 9000, 0},
    {"14000", 14000, 0}, /* slabs of several units */
    {"60000", 60000, 0},
    {"large", 300000, 0},
    {"huge", 3 << 20, 0},
    {"aligned_64", 100, 64},
    {"aligned_4096", 5000, 4096},
    {"aligned_1m", 100, 1 << 20},
};

static const sort_t *sort; /* the one it is done to */
static void *make(void) {
    return hide(sort->align == 0 ? malloc(sort->bytes) : memalign(sort->align, sort->bytes));
}

enum { BY_OTHER_FIRST = 1, BY_OTHER_SECOND = 2 };
static unsigned who; /* does the first and the second deed */
static void by_self(void (*run)(void *), void *block) {
    run(block);
}

static void first(void (*run)(void *), void *block) {
    (who & BY_OTHER_FIRST ? by_other : by_self)(run, block);
}

static void second(void (*run)(void *), void *block) {
    (who & BY_OTHER_SECOND ? by_other : by_self)(run, block);
}

/* --- crimes ----------------------------------------------------------------------------------- */

enum { OTHERS = 40 };
static void *others[OTHERS];

static void make_others(void) {
    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = make();
    }
}

static void free_others(void) {
    for (unsigned i = 0; i < OTHERS; i++) {
        free(others[i]);
    }
}

static void do_flush(void *block) {
    (void)block;
    hak_collect_thread();
}

/* A double free that was not noticed at once must be before both blocks are in use. */
static void use_twice(const void *block) {
    unsigned times = 0;
    by_other(do_flush, NULL); /* what it has in hand comes home */
    for (unsigned i = 0; i < 4096; i++) {
        times += make() == block;
    }
    if (times < 2) {
        puts("harmless");
    }
}

static void do_free(void *block) {
    free(block);
}

static void free_twice(void) {
    void *block = make();
    first(do_free, block);
    second(do_free, block);
    use_twice(block);
}

static void free_twice_with_others(void) {
    make_others();
    void *block = make();
    first(do_free, block);
    free_others();
    second(do_free, block);
    use_twice(block);
}

static void free_twice_between(void) {
    make_others();
    void *block = make();
    free(others[0]);
    first(do_free, block);
    free(others[1]);
    second(do_free, block);
    use_twice(block);
}

static void do_free_and_flush(void *block) {
    free(block);
    hak_collect_thread();
}

static void free_twice_after_flush(void) {
    make_others(); /* its slab stays */
    void *block = make();
    first(do_free_and_flush, block);
    second(do_free, block);
    use_twice(block);
}

/* Memory of free blocks goes back to the kernel. */
static bool is_current_again;
static void free_twice_after_trim(void) {
    enum { COUNT = 4000 };
    static void *all[COUNT];
    unsigned count = sort->bytes * COUNT < 64 << 20 ? COUNT : 100;
    for (unsigned i = 0; i < count; i++) {
        all[i] = make();
    }
    void *block = all[count / 2];
    all[count / 2] = make();
    for (unsigned i = 0; i < count; i++) {
        if (i % (count / 4) != 1) {
            free(all[i]);
        }
    }
    first(do_free_and_flush, block);
    malloc_trim(0);
    if (is_current_again) {
        (void)!make(); /* its slab may be the current one again */
    }
    second(do_free, block);
    use_twice(block);
}

static void free_twice_after_trim_and_use(void) {
    is_current_again = true;
    free_twice_after_trim();
}

static void free_twice_written(void) {
    make_others();
    void *block = make();
    memset(block, 0x5a, sort->bytes);
    first(do_free, block);
    memset((char *)block + 16, 0x5a, sort->bytes - 16);
    second(do_free, block);
    use_twice(block);
}

static size_t number; /* what the deed is done with */

static void do_free_inside(void *block) {
    free((char *)block + number);
}

static void free_inside(void) {
    number = sort->bytes < 32 ? 8 : sort->bytes / 32 * 16;
    second(do_free_inside, make());
    (void)!make();
}

static void do_realloc(void *block) {
    (void)!hide(realloc(block, number));
}

static void realloc_freed(size_t bytes) {
    make_others();
    void *block = make();
    number = bytes;
    first(do_free, block);
    second(do_realloc, block);
}

static void realloc_of_freed(void) {
    realloc_freed(sort->bytes * 3);
}

static void realloc_in_place_of_freed(void) {
    realloc_freed(sort->bytes);
}

static void write_freed(uint64_t word) {
    make_others();
    void *block = make();
    free(others[0]);
    first(do_free, block);
    *(volatile uint64_t *)block = word;
    for (unsigned i = 0; i < 2048; i++) {
        (void)!make();
        free(make()); /* another one leaves the quarantine */
    }
}

static void write_after_free(void) {
    write_freed(0x4141414141414141u);
}
static void clear_after_free(void) {
    write_freed(0);
}

static void do_free_sized(void *block) {
    free_sized(block, number);
}

static void sized_free_as(size_t bytes) {
    number = bytes;
    second(do_free_sized, make());
}

static void sized_free_of_less(void) {
    sized_free_as(sort->bytes / 2 - 16);
}

static void sized_free_of_more(void) {
    sized_free_as(sort->bytes * 2 + 64);
}

/* Larger free blocks, of which bins hold one or two, are in no list, which a write could damage. */
enum { SLAB_LIST = 4000 };

typedef struct kind {
    const char *name;
    void (*commit)(void);
    size_t least, most; /* blocks it can be committed on */
    unsigned who;       /* bit i: by pair i */
} kind_t;

#define KIND(name, least, most, who)                                                               \
    { #name, name, least, most, who }

static const kind_t kinds[] = {
    KIND(free_twice, 0, SIZE_MAX, 7),
    KIND(free_twice_with_others, 0, SIZE_MAX, 7),
    KIND(free_twice_between, 0, SIZE_MAX, 7),
    KIND(free_twice_after_flush, 0, SIZE_MAX, 7),
    KIND(free_twice_after_trim, 0, SIZE_MAX, 7),
    KIND(free_twice_after_trim_and_use, 0, 65536, 7),
    KIND(free_twice_written, 17, SIZE_MAX, 7),
    KIND(free_inside, 0, SIZE_MAX, 5),
    KIND(realloc_of_freed, 0, SIZE_MAX, 7),
    KIND(realloc_in_place_of_freed, 0, SIZE_MAX, 7),
    KIND(write_after_free, 0, SLAB_LIST, 1),
    KIND(clear_after_free, 0, SLAB_LIST, 1),
    KIND(sized_free_of_less, 100, 65536, 5),
    KIND(sized_free_of_more, 0, 65536, 5),
};

static const char *const pairs[] = {"same", "other_first", "other_second"};

int main(int argc, char **argv) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t w = 0; w < sizeof pairs / sizeof *pairs; w++) {
            for (size_t s = 0; s < sizeof sorts / sizeof *sorts; s++) {
                bool may = sorts[s].bytes >= kinds[k].least && sorts[s].bytes <= kinds[k].most &&
                           sorts[s].align <= kinds[k].most && (kinds[k].who >> w & 1) != 0;
                if (!may) {
                    continue;
                }
                if (argc < 4) {
                    printf("%s %s %s\n", kinds[k].name, pairs[w], sorts[s].name);
                } else if (strcmp(kinds[k].name, argv[1]) == 0 && strcmp(pairs[w], argv[2]) == 0 &&
                           strcmp(sorts[s].name, argv[3]) == 0) {
                    who = (unsigned)w;
                    sort = &sorts[s];
                    start_other();
                    kinds[k].commit();
                    puts("unnoticed");
                    return 3;
                }
            }
        }
    }
    return argc < 4 ? 0 : 2;
}
