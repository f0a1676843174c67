/* SPDX-License-Identifier: MIT
 *
 * Allocates as programs do, by threads and in a child, then prints whether the library is there:
 * "hakmem" or "own malloc". With a number: it lives for so many seconds
 * more. With "crime" it frees a block twice instead. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 2000, THREADS = 3 };

static void *work(void *argument) {
    char *kept[64] = {NULL};
    for (size_t i = 0; i < ROUNDS; i++) {
        char **at = &kept[i % 64];
        size_t bytes = i * 37 % 5000 + (i % 100 == 0 ? 200000 : 1);
        free(*at);
        *at = malloc(bytes);
        if (*at == NULL) {
            abort();
        }
        memset(*at, (int)i, bytes);
    }
    for (size_t i = 0; i < 64; i++) {
        free(kept[i]);
    }
    return argument;
}

static int child_status(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        _exit(7);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int is_mapped(const char *name) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char *line = NULL;
    size_t capacity = 0;
    int found = 0;
    while (maps != NULL && getline(&line, &capacity, maps) > 0) {
        found = found || strstr(line, name) != NULL;
    }
    free(line);
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

/* From a few bytes to 8 MiB, where pages move. */
static int grow(void) {
    char *block = NULL;
    for (size_t bytes = 100; bytes <= 8 << 20; bytes *= 2) {
        block = realloc(block, bytes);
        if (block == NULL || (bytes > 100 && block[bytes / 2 - 1] != 7)) {
            return 1;
        }
        block[bytes - 1] = 7;
    }
    free(block);
    return 0;
}

static int free_twice(void) {
    char *volatile block = malloc(100);
    free(block);
    free(block);
    return 5;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    if (argc > 1 && strcmp(argv[1], "crime") == 0) {
        return free_twice();
    }
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, NULL) != 0) {
            return 2;
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    if (child_status() != 7 || grow() != 0) {
        return 3;
    }
    puts(is_mapped("libhakmem") ? "hakmem" : "own malloc");
    if (argc > 1) {
        sleep((unsigned)atoi(argv[1]));
    }
    return 0;
}
