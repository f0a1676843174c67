/* SPDX-License-Identifier: MIT
 *
 * Allocates by a few functions, known amounts. Says "ready", and then does a bit of work for each
 * line of standard input, until its end. Usage: load
 * sites|pinned|lifetimes|large|moves|idle|apart|leave apart: another thread does, while the main
 * one sleeps; leave: which then ends before the other */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noipa))
#endif

static void *volatile kept[400000];
static size_t kept_count;

static void keep(void *block) {
    kept[kept_count++] = block;
}

APART void *site_many(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

APART void *site_few(size_t size) {
    void *block = malloc(size);
    memset(block, 2, size);
    return block;
}

APART void *site_gone(size_t size) {
    void *block = malloc(size);
    memset(block, 3, size);
    return block;
}

/* 40 MB by the first, 10 MB by the second, none by the third; of 80 bytes asked for 65. */
static void work_sites(void) {
    for (int i = 0; i < 125000; i++) {
        free(site_gone(200));
        keep(site_many(320));
        if (i % 2 == 0) {
            keep(site_few(i % 4 == 0 ? 65 : 240));
        }
    }
}

static void *thread_sites(void *unused) {
    for (int i = 0; i < 20000; i++) {
        keep(site_few(160));
    }
    return unused;
}

/* One block of the second in 100 of the first, which go. */
static void work_pinned(void) {
    static void *gone[200000];
    size_t count = 0;
    for (int i = 0; i < 200000; i++) {
        if (i % 100 == 0) {
            keep(site_few(128));
        } else {
            gone[count++] = site_many(128);
        }
    }
    while (count > 0) {
        free(gone[--count]);
    }
    for (int i = 0; i < 20000; i++) {
        keep(site_gone(512)); /* densely packed, in another class */
    }
}

static void rest(long ms) {
    struct timespec nap = {.tv_nsec = ms * 1000000};
    nanosleep(&nap, NULL);
}

/* The blocks of the first live 60 ms, those of the second no time. */
static void work_lifetimes(void) {
    static void *block[20000];
    for (int i = 0; i < 20000; i++) {
        block[i] = site_many(256);
    }
    rest(60);
    for (int i = 0; i < 20000; i++) {
        free(block[i]);
        free(site_few(256));
    }
}

/* 60 MB in blocks of 3 MB, grown from 1 MB. */
static void work_large(void) {
    for (int i = 0; i < 20; i++) {
        keep(realloc(site_many(1000000), 3000000));
        free(site_few(500000));
    }
}

/* Large blocks that grow in place, move, are copied to less, and go; 25 MB stay. */
static void work_moves(void) {
    for (int i = 0; i < 100; i++) {
        void *block = realloc(site_few(100000), 150000 + (size_t)i * 1000);
        keep(site_many(250000));
        block = realloc(block, 1500000);
        block = realloc(block, 3000000);
        free(realloc(block, 40000));
        free(realloc(site_few(400000), 40000));
    }
}

static void work(const char *name) {
    pthread_t thread;
    if (strcmp(name, "sites") == 0) {
        work_sites();
        pthread_create(&thread, NULL, thread_sites, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(name, "pinned") == 0) {
        work_pinned();
    } else if (strcmp(name, "lifetimes") == 0) {
        work_lifetimes();
    } else if (strcmp(name, "large") == 0) {
        work_large();
    } else if (strcmp(name, "moves") == 0) {
        work_moves();
    }
}

/* Slow paths of the main thread, for events: refills, and frees of large blocks. */
static void tick(void) {
    static void *block[20000];
    for (int i = 0; i < 20000; i++) {
        block[i] = site_gone(64 + (size_t)i % 2000);
    }
    for (int i = 0; i < 20000; i++) {
        free(block[i]);
    }
    for (int i = 0; i < 300; i++) {
        free(site_gone(100000));
    }
}

static int serve(void) {
    char line[16];
    if (write(1, "ready\n", 6) != 6) {
        return 1;
    }
    while (read(0, line, sizeof line) > 0) {
        tick();
        if (write(1, "done\n", 5) != 5) {
            return 1;
        }
    }
    return 0;
}

static int ends[2]; /* of a pipe: where the main thread sleeps */

static void *thread_serve(void *unused) {
    if (serve() != 0 || write(ends[1], "", 1) != 1) {
        exit(1);
    }
    rest(200); /* the last thread, if the main one leaves */
    return unused;
}

static void at_exit(void) {
    puts("flushed");
}

static int serve_apart(bool leaves) {
    char end;
    pthread_t thread;
    atexit(at_exit);
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, thread_serve, NULL) != 0 ||
        read(ends[0], &end, 1) != 1) {
        return 1;
    }
    if (leaves) {
        pthread_detach(thread);
        pthread_exit(NULL);
    }
    return pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "idle";
    bool leaves = strcmp(name, "leave") == 0;
    work(name);
    return leaves || strcmp(name, "apart") == 0 ? serve_apart(leaves) : serve();
}
