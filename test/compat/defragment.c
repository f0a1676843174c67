/* SPDX-License-Identifier: MIT
 *
 * The whole program of docs/jemalloc.md: a table whose blocks move, so that deleted neighbours do
 * not keep memory. Prints what it holds, and what is resident for it, before and after. */
#include <hakmem/hakmem.h>
#include <hakmem/jemalloc.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 1000000, PASSES = 10 };

static char *table[KEYS];

static size_t figure(const char *name) {
    size_t value = 0, length = sizeof value;
    uint64_t epoch = 1;
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    mallctl(name, &value, &length, NULL, 0);
    return value;
}

/* Moves each block that lies in a slab that is to be emptied; returns how many. */
static size_t defragment(void) {
    size_t moved = 0;
    for (size_t i = 0; i < KEYS; i++) {
        if (table[i] != NULL && hak_should_move(table[i])) {
            size_t bytes = malloc_usable_size(table[i]);
            char *fresh = hak_malloc_packed(bytes);
            if (fresh == NULL) {
                break;
            }
            memcpy(fresh, table[i], bytes);
            free(table[i]);
            table[i] = fresh;
            moved++;
        }
    }
    hak_collect_thread(); /* the slabs get what this thread freed */
    return moved;
}

int main(void) {
    for (size_t i = 0; i < KEYS; i++) {
        table[i] = malloc(40 + i * 2654435761u % 200);
        if (table[i] == NULL) {
            return 2;
        }
        memset(table[i], (int)i, 40);
    }
    for (size_t i = 0; i < KEYS; i++) { /* 90 % are deleted */
        if (i * 2654435761u / 1024 % 10 != 0) {
            free(table[i]);
            table[i] = NULL;
        }
    }
    malloc_trim(0);
    printf("held %zu, resident %zu\n", figure("stats.allocated"), figure("stats.resident"));
    for (int pass = 1; pass <= PASSES; pass++) {
        size_t moved = defragment();
        printf("pass %d moved %zu\n", pass, moved);
        if (moved == 0) {
            break;
        }
    }
    malloc_trim(0);
    size_t held = figure("stats.allocated"), resident = figure("stats.resident");
    printf("held %zu, resident %zu\n", held, resident);
    for (size_t i = 0; i < KEYS; i++) {
        if (table[i] != NULL && table[i][39] != (char)i) {
            return 3;
        }
    }
    return resident <= held / 10 * 13 ? 0 : 1;
}
