/* SPDX-License-Identifier: MIT
 *
 * Threads that call the allocator for the first time when they are about to end: in a destructor of
 * thread-specific data, or later still, in the C library, which frees the books of other threads'
 * stacks in a detached thread's last moments. Is what they were given, and what they freed, back
 * when they are gone?
 */
#include "api/figure.h"
#include "thread/block.h"

enum { THREADS = 2000, CACHES_ALLOWED = 100, RSS_ALLOWED = 6 << 20, BLOCK_BYTES = 3000 };

typedef struct level {
    size_t caches;
    size_t rss;
} level_t;

static level_t level_now(void) {
    return (level_t){figure("tcache_count"), expect_rss_bytes()};
}

static void level_check(const level_t *before) {
    figure_at_most("tcache_count", before->caches, CACHES_ALLOWED);
    expect_rss_at_most(before->rss, RSS_ALLOWED);
}

static pthread_key_t key;

/* A thread that does nothing but leave `argument` to the destructor of `key`. */
static void *leave_to_destructor(void *argument) {
    EXPECT_EQ(pthread_setspecific(key, argument), 0);
    return NULL;
}

static void destructor_frees_one(void *block) {
    family.free(block);
}

static void one_by_one(void (*destructor)(void *), void *(*make)(void)) {
    EXPECT_EQ(pthread_key_create(&key, destructor), 0);
    level_t before = level_now();
    for (size_t i = 0; i < THREADS; ++i) {
        pthread_t thread = thread_start(leave_to_destructor, make());
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    }
    level_check(&before);
    EXPECT_EQ(pthread_key_delete(key), 0);
}

static void *make_block(void) {
    void *block = family.malloc(BLOCK_BYTES);
    EXPECT(block != NULL);
    return memset(block, 1, BLOCK_BYTES);
}

static void late_free_in_a_destructor_leaves_nothing(void) {
    one_by_one(destructor_frees_one, make_block);
}

/* So many that the thread may have been given a cache for its frees. */
enum { MANY = 200 };

static void *make_many(void) {
    static void *many[MANY];
    for (size_t i = 0; i < MANY; ++i) {
        many[i] = family.malloc(BLOCK_BYTES / 10);
        EXPECT(many[i] != NULL);
    }
    return many;
}

static void destructor_frees_many(void *argument) {
    void **many = argument;
    for (size_t i = 0; i < MANY; ++i) {
        family.free(many[i]);
    }
}

static void late_free_of_many_in_a_destructor_leaves_nothing(void) {
    one_by_one(destructor_frees_many, make_many);
}

static void destructor_allocates(void *argument) {
    (void)argument;
    void *block = make_block();
    family.free(block);
}

static void *make_nothing(void) {
    return &key;
}

static void late_malloc_in_a_destructor_leaves_nothing(void) {
    one_by_one(destructor_allocates, make_nothing);
}

static void *idle(void *argument) {
    (void)argument;
    usleep(3000);
    return NULL;
}

/* More stacks at a time than the C library keeps, so that dying threads free some. */
static void late_free_by_the_c_library_leaves_nothing(void) {
    enum { BATCH = 32, BATCHES = 60, STACK_BYTES = 8 << 20 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    level_t before = level_now();
    long tasks = expect_task_count();
    for (size_t batch = 0; batch < BATCHES; ++batch) {
        for (size_t i = 0; i < BATCH; ++i) {
            pthread_t thread;
            EXPECT_EQ(pthread_create(&thread, &attributes, idle, NULL), 0);
        }
        while (expect_task_count() > tasks) { /* or the rest of their ends would pile up */
            usleep(500);
        }
    }
    pthread_attr_destroy(&attributes);
    level_check(&before);
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(late_free_in_a_destructor_leaves_nothing);
    RUN(late_free_of_many_in_a_destructor_leaves_nothing);
    RUN(late_malloc_in_a_destructor_leaves_nothing);
    RUN(late_free_by_the_c_library_leaves_nothing);
    return expect_status();
}
