/* SPDX-License-Identifier: MIT
 *
 * A fuzz target without a fuzzer: every file of the folders named runs once, in the order of names.
 * Arguments: folders. What fails is named before it runs, if HAKMEM_REPLAY is set. */
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
    printf("%u inputs\n", replayed);
    return replayed != 0 ? 0 : 1;
}
