/* SPDX-License-Identifier: MIT
 *
 * A small program for options_test.sh and setuid_test.sh: works through all size ranges and prints
 * the usable size of a 200-byte block, which tells glibc's malloc (200) from hakmem's (216, 224).
 * With an argument it prints the heap profile instead. PROBE_SAMPLES: asks for a profile.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void hak_profile_json(int fd) __attribute__((weak));

#if defined(PROBE_SAMPLES)
extern const char *hak_options;
const char *hak_options = "profile_rate:1k";
#endif

int main(int argc, char **argv) {
    (void)argv;
    enum { LIVE_COUNT = 200 };
    static char *live[LIVE_COUNT];
    for (size_t i = 0; i < 5000; ++i) {
        size_t size = i * i * i % 300007 + 1;
        char **place = &live[i % LIVE_COUNT];
        if (*place != NULL && (*place)[0] != (char)(i % LIVE_COUNT)) {
            return 1;
        }
        if (i % 3 == 0) {
            *place = realloc(*place, size);
        } else {
            free(*place);
            *place = i % 5 == 0 ? memalign(64, size) : calloc(1, size);
        }
        if (*place == NULL) {
            return 1;
        }
        (*place)[0] = (char)(i % LIVE_COUNT);
    }
    for (size_t i = 0; i < LIVE_COUNT; ++i) {
        free(live[i]);
    }
    if (argc > 1 && hak_profile_json != NULL) {
        hak_profile_json(STDOUT_FILENO);
        return 0;
    }
    void *block = malloc(200);
    char text[32];
    snprintf(text, sizeof text, "usable %zu\n", malloc_usable_size(block));
    fputs(text, stdout);
    free(block);
    return 0;
}
