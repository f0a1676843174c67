/* SPDX-License-Identifier: MIT
 *
 * Crimes of which some only the hardened library notices: writes to freed blocks, behind blocks and
 * to the library's own settings. */
#include "crimes.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, SUPERSLAB_BYTES = 4 << 20 };

void churn(size_t bytes) {
    for (unsigned i = 0; i < 2000; i++) {
        free(hide(malloc(bytes)));
    }
}

static void scribble(char *block, size_t at) {
    *(volatile char *)(block + at) = 0x41;
}

CRIME(write_after_free_behind_the_link) {
    char *block = hide(malloc(100));
    free(block);
    scribble(block, 60);
    churn(100);
}

CRIME(write_after_free_at_the_end) {
    char *block = hide(malloc(5000));
    size_t usable = malloc_usable_size(block);
    free(block);
    scribble(block, usable - 1);
    churn(5000);
}

static void overflow(size_t bytes, char value) {
    char *block = hide(malloc(bytes));
    *(volatile char *)(block + malloc_usable_size(block)) ^= value;
    free(block);
}

CRIME(overflow_by_one) {
    overflow(24, 0x41);
}

/* The end of a string; the byte there may be 0 in one run of 256. */
CRIME(overflow_by_one_of_zero) {
    for (unsigned i = 0; i < 8; i++) {
        char *block = hide(malloc(56));
        *(volatile char *)(block + malloc_usable_size(block)) = 0;
        free(block);
    }
}

CRIME(overflow_of_medium) {
    overflow(20000, 1);
}

CRIME(overflow_seen_by_realloc) {
    char *block = hide(malloc(40));
    scribble(block, malloc_usable_size(block) + 7);
    *(volatile char *)(block + malloc_usable_size(block)) ^= 1;
    (void)!realloc(block, 4000);
}

CRIME(overflow_seen_by_another_thread) {
    char *block = hide(malloc(40));
    *(volatile char *)(block + malloc_usable_size(block)) ^= 1;
    free_in_thread(block);
}

/* Noticed when the block before is freed, whose canary it hits. */
CRIME(underflow_by_one) {
    enum { COUNT = 200, BYTES = 80 };
    char *block[COUNT];
    bool is_done = false;
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(BYTES - 8));
    }
    for (unsigned i = 0; i < COUNT * COUNT && !is_done; i++) {
        char *at = block[i / COUNT];
        if (at == block[i % COUNT] + BYTES) {
            *(volatile char *)(at - 1) ^= 1;
            is_done = true;
        }
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
    }
}

CRIME(double_free_of_held_back) {
    void *block = hide(malloc(64));
    free(block);
    churn(96); /* of another class */
    free(block);
}

CRIME(double_free_by_another_thread) {
    void *block = hide(malloc(64));
    free(block);
    free_in_thread(block);
}

CRIME(realloc_of_held_back) {
    void *block = hide(malloc(64));
    free(block);
    (void)!realloc(block, 1000);
}

CRIME(write_behind_superslab) {
    for (unsigned i = 0; i < 400; i++) { /* the first 192 lie between guards of their own */
        char *block = hide(malloc(MIB));
        if (((uintptr_t)block + MIB) % SUPERSLAB_BYTES == 0) {
            scribble(block, MIB);
        }
    }
}

CRIME(write_behind_huge) {
    char *block = hide(malloc(3 * MIB));
    memset(block, 1, malloc_usable_size(block));
    scribble(block, malloc_usable_size(block));
}

CRIME(write_behind_grown_huge) {
    char *block = hide(malloc(3 * MIB));
    block = hide(realloc(block, 9 * MIB));
    memset(block, 1, malloc_usable_size(block));
    free(block); /* to the cache */
    block = hide(malloc(2 * MIB));
    scribble(block, malloc_usable_size(block));
}

/* The budget of kernel calls for large blocks fills up again. */
static void rest(void) {
    clock_advance_ms(600);
}

CRIME(read_of_freed_large) {
    rest();
    char *block = hide(malloc(300000));
    memset(block, 1, 300000);
    free(block);
    printf("%d\n", *(volatile char *)(block + 200000));
}

CRIME(write_to_freed_large) {
    rest();
    char *block = hide(malloc(70000));
    free(block);
    scribble(block, 69999);
}

CRIME(write_to_freed_huge) {
    rest();
    char *block = hide(malloc(3 * MIB));
    free(block);
    scribble(block, MIB);
}

/* Takes a page behind a block if none is mapped there: it cannot grow where it is. */
static void stand_behind(char *block, size_t bytes) {
    enum { STEP = 1 << 12, REACH = 512 << 10 }; /* beyond a guard of the library */
    uintptr_t first = ((uintptr_t)block + bytes + STEP - 1) / STEP * STEP;
    for (uintptr_t page = first; page < first + REACH; page += STEP) {
        void *hint = (void *)page; /* NOLINT(performance-no-int-to-ptr) */
        char *mapped = mmap(hint, STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == hint) {
            return;
        }
        munmap(mapped, STEP);
    }
}

/* The place that realloc moved it from; */
CRIME(write_to_moved_large) {
    rest();
    char *block = hide(malloc(300000));
    stand_behind(block, 300000);
    char *moved = hide(realloc(block, 20 * MIB));
    if (moved != block) {
        scribble(block, 0);
    } else {
        puts("grew in place");
    }
}

CRIME(write_behind_large) {
    rest();
    char *block = hide(malloc(300000));
    scribble(block, malloc_usable_size(block));
}

/* A read-only mapping without a file, right behind those of the library: its settings. */
static char *sealed(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to, end = 0, inode;
    char line[4096], rights[8], *found = NULL;
    while (maps != NULL && found == NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &from, &to, rights, &inode) != 4) {
            continue;
        }
        if (strstr(line, "libhakmem") != NULL) {
            end = to;
        } else if (from == end && inode == 0) {
            found = strcmp(rights, "r--p") == 0 ? (char *)from : NULL; /* NOLINT */
            end = to;
        }
    }
    return found;
}

CRIME(write_to_sealed) {
    char *settings = sealed();
    if (settings != NULL) {
        scribble(settings, 0);
    }
}
