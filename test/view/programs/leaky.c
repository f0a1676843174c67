// SPDX-License-Identifier: MIT
// Holds what it should free in one function, keeps others' pages resident in another, and works in
// a third.
//     leaky [MIB [wait|SIGNAL]]   wait: says "ready", and goes on until its input ends
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAK_BYTES = 1000, PIN_BYTES = 512, PIN_EACH = 64 };

static void *last;

__attribute__((noinline)) static void *leak_record(size_t bytes) {
    char *record = malloc(bytes); // the line of the leak
    memset(record, 1, bytes);
    last = record;
    return record;
}

__attribute__((noinline)) static void *pin_slab(size_t bytes) {
    char *block = calloc(1, bytes); // the line of the pinned blocks
    block[0] = 1;
    return block;
}

__attribute__((noinline)) static size_t work(void) {
    char *text = malloc(300);
    text[0] = 1;
    size_t found = strlen(text + 1);
    free(text);
    return found;
}

int main(int argc, char **argv) {
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 16) << 20;
    size_t pins = bytes / PIN_BYTES;
    void **pinned = calloc(pins, sizeof *pinned);
    for (size_t done = 0; done < bytes; done += LEAK_BYTES) {
        leak_record(LEAK_BYTES);
        work();
    }
    for (size_t at = 0; at < pins; at++) {
        pinned[at] = pin_slab(PIN_BYTES);
    }
    for (size_t at = 0; at < pins; at++) {
        if (at % PIN_EACH != 0) {
            free(pinned[at]);
        }
    }
    if (argc > 2) {
        raise(atoi(argv[2]));
        puts("ready");
        fflush(stdout);
        for (int letter = getchar(); letter != EOF; letter = getchar()) {
            leak_record(LEAK_BYTES);
        }
    }
    free(pinned);
    return last == NULL;
}
