/* SPDX-License-Identifier: MIT
 *
 * Known amounts of memory from known call sites: with profile_rate:1 each allocation is a sample of
 * these sizes. Writes the profile, followed by a line "---", then waits until standard input ends.
 *
 *   sites */
#include <hakmem/hakmem.h>
#include <hakmem/observe.h>
#include <pthread.h>

#include "api/expect.h"

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noipa))
#endif

enum { KEPT = 1000, KEPT_BYTES = 320, THREAD = 300, GONE = 500, GONE_BYTES = 480, NAMED = 100 };
enum { NAMED_BYTES = 640, LARGE = 20, LARGE_BYTES = 300000, PEAK = 400, PEAK_BYTES = 100000 };

static void *volatile kept[KEPT + THREAD + NAMED + LARGE];
static size_t kept_count;

static void keep(void *block) {
    EXPECT(block != NULL);
    kept[kept_count++] = block;
}

APART void *site_kept(void) {
    void *block = malloc(KEPT_BYTES);
    EXPECT(block != NULL);
    return block;
}

APART void *site_gone(void) {
    void *block = malloc(GONE_BYTES - 30);
    EXPECT(block != NULL);
    return block;
}

APART void *site_named(const void *name) {
    void *block = hak_alloc_at(NAMED_BYTES, name);
    EXPECT(block != NULL);
    return block;
}

APART void *site_large(void) {
    void *block = malloc(LARGE_BYTES);
    EXPECT(block != NULL);
    return block;
}

/* More than is in use later: the peak. */
APART void site_peak(void) {
    static void *block[PEAK];
    for (size_t i = 0; i < PEAK; i++) {
        block[i] = malloc(PEAK_BYTES);
        EXPECT(block[i] != NULL);
    }
    for (size_t i = 0; i < PEAK; i++) {
        free(block[i]);
    }
}

static void *thread(void *unused) {
    for (size_t i = 0; i < THREAD; i++) {
        keep(site_kept());
    }
    return unused;
}

int main(void) {
    static const char names[2][8] = {"one", "other"};
    pthread_t id;
    char c;
    for (size_t i = 0; i < KEPT; i++) {
        keep(site_kept());
        free(i < GONE ? site_gone() : NULL);
    }
    site_peak();
    for (size_t i = 0; i < NAMED; i++) {
        keep(site_named(names[i % 2]));
    }
    for (size_t i = 0; i < LARGE; i++) {
        keep(site_large());
    }
    EXPECT(pthread_create(&id, NULL, thread, NULL) == 0 && pthread_join(id, NULL) == 0);
    hak_profile_json(1);
    EXPECT(write(1, "---\ndone\n", 9) == 9);
    EXPECT(read(0, &c, 1) == 0);
    _exit(0);
}
