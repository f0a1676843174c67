/* SPDX-License-Identifier: MIT
 *
 * A fuzz target without a fuzzer: every file of the folders named runs once, in the order of names,
 * then some random inputs, the same each time. Arguments: folders. What fails is named before it
 * runs, if HAKMEM_REPLAY is set. */
#include "fuzz/fuzz.h"

#include <dirent.h>

enum { INPUT_MOST = 1 << 16 };

static unsigned replayed;

static void replay_file(const char *folder, const char *name) {
    static uint8_t input[INPUT_MOST];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    FUZZ_EXPECT(file != NULL);
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    if (getenv("HAKMEM_REPLAY") != NULL) {
        printf("%s\n", path);
        fflush(stdout);
    }
    LLVMFuzzerTestOneInput(input, size);
    replayed++;
}

static int is_input(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void replay_random(void) {
    enum { INPUTS = 24, EACH = 40 };
    static uint8_t input[INPUTS * EACH];
    uint64_t state = 1;
    for (size_t size = EACH; size <= sizeof input; size += EACH) {
        for (size_t i = 0; i < size; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            input[i] = (uint8_t)(state >> 56);
        }
        LLVMFuzzerTestOneInput(input, size);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        struct dirent **entries = NULL;
        int count = scandir(argv[i], &entries, is_input, alphasort);
        FUZZ_EXPECT(count >= 0);
        for (int k = 0; k < count; k++) {
            replay_file(argv[i], entries[k]->d_name);
            free(entries[k]);
        }
        free(entries);
    }
    replay_random();
    printf("%u inputs\n", replayed);
    return replayed != 0 ? 0 : 1;
}
