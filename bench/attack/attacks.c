/* SPDX-License-Identifier: MIT
 *
 * Attacks on the heap, one a process:
 *
 *   attacks               lists them: kind, name
 *   attacks NAME          on a fresh heap
 *   attacks NAME warm     on a heap that a program used before
 *
 * Prints "harmless", "stopped" or "succeeded"; a process that a signal ends was stopped, too. */
#include "attack.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILL_WHOLE = 1 << 16, FILL_END = 4096, LARGE_ROW_FROM = 1 << 16, LARGE_ROW = 12 };

char *make(size_t bytes) {
    char *block = hide(malloc(bytes));
    if (block == NULL) {
        puts("harmless"); /* a broken heap gives no more */
        exit(0);
    }
    return block;
}

void fill(char *block, size_t bytes) {
    if (bytes <= FILL_WHOLE) {
        memset(block, SECRET, bytes);
    } else {
        memset(block, SECRET, FILL_END);
        memset(block + bytes - FILL_END, SECRET, FILL_END);
        block[bytes / 2] = SECRET;
    }
}

static bool is_all(const volatile char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (from[i] != SECRET) {
            return false;
        }
    }
    return true;
}

bool is_filled(const char *block, size_t bytes) {
    return bytes <= FILL_WHOLE
               ? is_all(block, bytes)
               : is_all(block, FILL_END) && is_all(block + bytes - FILL_END, FILL_END) &&
                     block[bytes / 2] == SECRET;
}

void churn(size_t bytes) {
    for (unsigned i = 0; i < (bytes > FILL_WHOLE ? 100 : 3000); i++) {
        free(make(bytes));
    }
}

size_t make_row(char **row, size_t bytes) {
    size_t count = bytes > LARGE_ROW_FROM ? LARGE_ROW : ROW;
    for (size_t i = 0; i < count; i++) {
        row[i] = make(bytes);
        fill(row[i], bytes);
    }
    return count;
}

void free_row(char *const *row, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(row[i]);
    }
}

static bool is_near(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

bool overlap(char *const *row, size_t count, size_t bytes) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (is_near(row[i], bytes, row[k], bytes)) {
                return true;
            }
        }
    }
    return false;
}

bool spray_hits(size_t bytes, const char *target, size_t target_bytes) {
    for (unsigned i = 0; i < (bytes > FILL_WHOLE ? LARGE_ROW : SPRAY); i++) {
        if (is_near(make(bytes), bytes, target, target_bytes)) {
            return true;
        }
    }
    return false;
}

typedef struct task {
    void (*run)(void *);
    void *argument;
} task_t;

static void *run_task(void *task) {
    ((task_t *)task)->run(((task_t *)task)->argument);
    return NULL;
}

void in_thread(void (*run)(void *), void *argument) {
    task_t task = {run, argument};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_task, &task) != 0) {
        exit(2);
    }
    pthread_join(thread, NULL);
}

/* Blocks of all sizes come and go; a third of them stays in use. */
static void use_heap(void) {
    enum { SLOTS = 4000, STEPS = 40000, LARGE_SLOTS = 40 };
    static const size_t spread[] = {64, 200, 1024, 4096, 20000};
    static char *slot[SLOTS];
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (unsigned step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (random >> 33) % SLOTS, pick = (random >> 20) % 5;
        size_t bytes = 1 + (random >> 40) % spread[pick];
        if (at < LARGE_SLOTS) {
            bytes += (random >> 50) % 40 * 100000;
        }
        free(slot[at]);
        slot[at] = (random >> 8) % 3 == 0 ? NULL : make(bytes);
        if (slot[at] != NULL) {
            slot[at][0] = slot[at][bytes - 1] = 1;
        }
    }
    for (size_t i = 0; i < SLOTS; i += 2) {
        free(slot[i]);
    }
}

static const attack_t *const tables[] = {bounds_attacks, reuse_attacks, free_attacks, link_attacks};

int main(int argc, char **argv) {
    static const char *const words[] = {"harmless", "stopped", "succeeded"};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const attack_t *attack = tables[t]; attack->name != NULL; attack++) {
            if (argc < 2) {
                printf("%s\t%s\n", attack->kind, attack->name);
            } else if (strcmp(argv[1], attack->name) == 0) {
                if (argc > 2) {
                    use_heap();
                }
                outcome_t outcome = attack->run(attack);
                puts(words[outcome]);
                return 0; /* blocks looked at now may still stop it */
            }
        }
    }
    return argc < 2 ? 0 : 2;
}
