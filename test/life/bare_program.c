/* SPDX-License-Identifier: MIT
 *
 * A program for surroundings in which something usual is missing (bare_test.sh): blocks of all
 * sizes in two threads, 40 MiB, blocks that grow, memory given back, a forked child that does the
 * same. Prints nothing; `bare_program crime` frees a block twice instead.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVE_COUNT = 4000, STEPS = 40000, HUGE_BYTES = 8 << 20 };

static void *hide(void *block) {
    static void *volatile hidden;
    hidden = block;
    return hidden;
}

static size_t draw_size(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t draw = *state >> 33;
    return 1 + draw % (draw % 64 == 0 ? 300000 : draw % 8 == 0 ? 9000 : 500);
}

/* Each block has its size in the first byte and the last one. */
static int replace(unsigned char **block, size_t *bytes, size_t wanted) {
    unsigned char mark = (unsigned char)*bytes;
    if (*block != NULL && ((*block)[0] != mark || (*block)[*bytes - 1] != mark)) {
        return 1;
    }
    free(*block);
    *block = wanted % 5 == 0 ? calloc(1, wanted) : malloc(wanted);
    if (*block == NULL) {
        return 1;
    }
    (*block)[0] = (*block)[wanted - 1] = (unsigned char)wanted;
    *bytes = wanted;
    return 0;
}

/* From a few bytes to 8 MiB, where pages move, and back. */
static int grow(void) {
    unsigned char *block = NULL;
    for (size_t bytes = 100; bytes <= HUGE_BYTES; bytes *= 2) {
        block = realloc(block, bytes);
        if (block == NULL || (bytes > 100 && block[bytes / 2 - 1] != 7)) {
            return 1;
        }
        block[bytes - 1] = 7;
    }
    free(block);
    return 0;
}

static void *work(void *seed) {
    unsigned char **blocks = calloc(LIVE_COUNT, sizeof *blocks);
    size_t *bytes = calloc(LIVE_COUNT, sizeof *bytes);
    uint64_t state = (uintptr_t)seed;
    uintptr_t failures = blocks == NULL || bytes == NULL;
    for (size_t step = 0; step < STEPS && failures == 0; ++step) {
        size_t i = step * 7919 % LIVE_COUNT;
        failures += (uintptr_t)replace(&blocks[i], &bytes[i], draw_size(&state));
    }
    for (size_t i = 0; i < LIVE_COUNT && failures == 0; ++i) {
        free(blocks[i]);
    }
    free(blocks);
    free(bytes);
    failures += (uintptr_t)grow();
    malloc_trim(0);
    return (void *)failures;
}

static int work_twice(void) {
    pthread_t thread;
    void *failures = NULL;
    if (pthread_create(&thread, NULL, work, (void *)1) != 0 || work((void *)2) != NULL ||
        pthread_join(thread, &failures) != 0) {
        return 1;
    }
    return failures != NULL;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "crime") == 0) {
        void *block = malloc(100);
        free(block);
        free(hide(block));
        return 3;
    }
    if (work_twice() != 0) {
        return 1;
    }
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(work(NULL) != NULL);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}
