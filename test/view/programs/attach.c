// SPDX-License-Identifier: MIT
// Has the library's object for attaching, and answers to it as the library does, or in another way.
//     attach ok|refuses|busy|silent|spins|newer|other     says "ready", then each argument it was
//     given
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct answer {
    volatile uint64_t result, number;
};

struct attach {
    char magic[8];
    uint32_t version, size;
    volatile uint64_t command, argument, number;
    struct answer *answer;
};

static struct answer answer = {7, 41}; // of an earlier tool

struct attach hak_attach = {
    {'H', 'A', 'K', 'A', 'T', 'T', 'C', 'H'}, 2, sizeof(struct attach), 0, 0, 41, &answer};

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "ok";
    if (!strcmp(mode, "newer")) {
        hak_attach.version = 3;
    }
    uint64_t busy = UINT64_C(1) << 63 | EBUSY;
    if (!strcmp(mode, "other")) {
        hak_attach.magic[0] = 'X';
    }
    puts("ready");
    fflush(stdout);
    while (!strcmp(mode, "spins") && answer.number == 41) {
    }
    while (!strcmp(mode, "silent")) {
        nanosleep(&(struct timespec){60, 0}, NULL);
    }
    for (int turn = 0; turn < 6000; turn++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        if (hak_attach.number != answer.number) {
            uint64_t failed = UINT64_C(1) << 63 | EADDRINUSE;
            printf("%d %ld\n", (int)hak_attach.command, (long)hak_attach.argument);
            fflush(stdout);
            answer.result = !strcmp(mode, "refuses") ? failed
                            : !strcmp(mode, "busy")  ? busy
                                                     : hak_attach.command;
            nanosleep(&(struct timespec){0, 50000000},
                      NULL); // the tool must not take the result before its number
            answer.number = hak_attach.number;
        }
    }
    return 0;
}
