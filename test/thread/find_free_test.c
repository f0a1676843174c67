/* SPDX-License-Identifier: MIT
 *
 * Searches (front/find_free.c) while other threads allocate, free and exchange blocks: a search
 * reads their bins and lists, and must neither find a block that is in use nor disturb
 * anybody. Under ThreadSanitizer: nor read what they write but by atomic loads. Arguments: searches
 * (default 4000), other threads (default 3).
 */
#include "front/find_free.h"
#include "front/tcache.h"
#include "thread/mailbox.h"

enum { THREADS_MAX = 16, KEPT = 200, MOST_BYTES = 600 };

static size_t search_count, thread_count;
static atomic_bool stop;

static void *exchange_until_stopped(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    block_t *kept[KEPT] = {NULL};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        size_t i = expect_random(&state) % KEPT;
        block_unmake(kept[i], &state);
        kept[i] = mailbox_swap(block_make(&state), &state);
    }
    blocks_unmake(kept, KEPT, &state);
    return NULL;
}

/* What the program writes looks like the link of a free block. Whether the block is found once it
 * is free, and nobody else has got it. */
static bool search_once(size_t bytes) {
    void *block = family.malloc(bytes);
    EXPECT(block != NULL);
    hak_link_set(block, NULL);
    EXPECT(!hak_find_free_block(block));
    if (!hak_slab_is_entry(hak_pagemap_get(hak_pagemap_base(), block))) {
        family.free(block); /* a watched one: never in a list, and nobody may read it now */
        EXPECT(!hak_find_free_block(block));
        return true;
    }
    hak_check_not_marked(block); /* fatal if it is found */
    hak_link_clear(block);
    family.free(block);
    return hak_find_free_block(block);
}

static void searches_find_what_is_free_and_nothing_else(void) {
    for (size_t bytes = 16; bytes <= MOST_BYTES; bytes += 16) {
        EXPECT(search_once(bytes));
    }
}

static void searches_among_busy_threads_find_what_is_free_and_nothing_else(void) {
    pthread_t threads[THREADS_MAX];
    uint64_t state = 99;
    size_t found = 0;
    threads_start(threads, thread_count, exchange_until_stopped, 0);
    for (size_t i = 0; i < search_count; ++i) {
        block_unmake(mailbox_swap(NULL, &state), &state); /* blocks of others are freed here, too */
        found += search_once(16 + expect_random(&state) % (MOST_BYTES - 16));
    }
    atomic_store(&stop, true);
    threads_join(threads, thread_count);
    mailbox_empty_all(&state);
    EXPECT(found > search_count / 2); /* the others had left this thread, and were used again */
}

int main(int argc, char **argv) {
    search_count = expect_arg(argc, argv, 1, 4000);
    thread_count = expect_arg(argc, argv, 2, 3);
    if (thread_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    family_load();
    expect_watchdog();
    RUN(searches_find_what_is_free_and_nothing_else);
    RUN(searches_among_busy_threads_find_what_is_free_and_nothing_else);
    return expect_status();
}
