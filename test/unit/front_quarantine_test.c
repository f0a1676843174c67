/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: blocks that are held back, and the random order of blocks. */
#define UNIT_KEEPS_QUARANTINE
#include "unit/fatal.h"
#include "unit/front.h"

enum { SMALL = 64, MOST_SLOTS = 32, MANY = 2000 };

/* Nothing is cached, so that the slabs' counts tell. */
UNIT_AROUND(quarantine_begin) {
    assert_non_null(self()->quarantine);
    hak_collect_thread();
    return 0;
}

#define HELD_TEST(name) UNIT_TEST_WITH(name, quarantine_begin, NULL)

static unsigned held_back(size_t bytes) {
    return hak_quarantine_count(self(), hak_sc_of(bytes));
}

HELD_TEST(freed_block_is_held_back_and_clear) {
    unsigned sc = hak_sc_of(SMALL);
    char *block = hak_malloc(SMALL);
    memset(block, 0xa5, SMALL);
    hak_free(block);
    assert_int_equal(hak_quarantine_count(self(), sc), 1);
    assert_int_equal(hak_quarantine_count(self(), sc + 1), 0);
    assert_true(hak_link_has_free_marker(hak_link_word(block)));
    assert_true(unit_is_filled(block + 8, hak_sc_info[sc].bytes - 8, 0));
    hak_collect_thread();
    assert_int_equal(hak_quarantine_count(self(), sc), 0);
    audit();
}

HELD_TEST(many_frees_hold_back_as_many_as_there_are_slots) {
    static void *block[MANY];
    UNIT_TAKE_ALL(block, MANY, hak_malloc(SMALL));
    UNIT_FREE_ALL(block, MANY);
    assert_int_equal(held_back(SMALL), MOST_SLOTS);
    assert_true(self()->bin[hak_sc_of(SMALL)].head != NULL);
    audit();
}

/* With one slot the second free brings the first block's place back, always. */
HELD_TEST(large_class_holds_back_two_blocks) {
    enum { COUNT = 40, ROUNDS = 200 };
    void *block[COUNT];
    unsigned same = 0;
    UNIT_TAKE_ALL(block, COUNT, hak_malloc(60000));
    UNIT_FREE_ALL(block, COUNT);
    assert_int_equal(held_back(60000), 2);
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *first = hak_malloc(60000), *second = hak_malloc(60000);
        hak_free(first);
        hak_free(second);
        void *next = hak_malloc(60000);
        same += next == first;
        hak_free(next);
    }
    assert_in_range(same, 0, ROUNDS * 4 / 5); /* a half; its generator has another seed each time */
}

/* Many threads, most of which sleep, would keep a large block of each class. */
HELD_TEST(with_many_threads_less_is_held_back_and_nothing_large) {
    enum { LEAST_INITIAL_BYTES = 128 };
    static void *block[MANY]; /* so many that every slot is met */
    static const size_t sizes[] = {SMALL, 4000, 60000};
    static const unsigned held[] = {LEAST_INITIAL_BYTES * 8 / 80, 1, 0}, counts[] = {MANY, 40, 40};
    uint16_t before = self()->initial_bytes;
    self()->initial_bytes = LEAST_INITIAL_BYTES; /* its bins are not those of a crowd */
    hak_quarantine_attach(self());
    self()->initial_bytes = before;
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        UNIT_TAKE_ALL(block, counts[i], hak_malloc(sizes[i]));
        UNIT_FREE_ALL(block, counts[i]);
        assert_int_equal(held_back(sizes[i]), held[i]);
        audit();
    }
    hak_collect_thread();
    hak_quarantine_attach(self());
}

HELD_TEST(flush_gives_every_block_back) {
    size_t free_before = audit().free_blocks, slabs = audit().slabs;
    void *block[100];
    UNIT_TAKE_ALL(block, 100, hak_malloc(1000));
    UNIT_FREE_ALL(block, 100);
    hak_collect_thread();
    assert_int_equal(audit().cached_blocks, 0);
    assert_int_equal(audit().slabs, slabs);
    assert_int_equal(audit().free_blocks, free_before);
}

/* When memory is out, and when a thread ends. */
static void *free_and_end(void *context) {
    void **block = context;
    hak_free(hak_malloc(1)); /* has a tcache from now on */
    UNIT_FREE_ALL(block, 10);
    return held_back(SMALL) != 0 ? context : NULL;
}

HELD_TEST(thread_exit_and_lack_of_memory_give_every_block_back) {
    void *block[10], *held;
    UNIT_TAKE_ALL(block, 10, hak_malloc(SMALL));
    size_t in_use = audit().slabs;
    assert_int_not_equal(in_use, 0);
    held = unit_pthread_create_and_join(free_and_end, block);
    assert_ptr_equal(held, block);
    hak_collect_thread();
    assert_int_equal(audit().slabs, in_use - 1);
    void *last = hak_malloc(SMALL);
    hak_free(last);
    assert_int_equal(held_back(SMALL), 1);
    assert_true(hak_services.memory_out(self(), 0, 0));
    assert_int_equal(held_back(SMALL), 0);
}

HELD_TEST(double_free_of_a_block_that_is_held_back_is_fatal) {
    void *block = hak_malloc(SMALL);
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_free(block), hak_fatal_text(HAK_FATAL_DOUBLE_FREE));
    UNIT_EXPECT_FATAL((void)!hak_realloc(block, 1000), hak_fatal_text(HAK_FATAL_FREED_REALLOC));
}

/* A block of 1000 bytes that was full of data: whether all of it was cleared by its free. */
static bool is_cleared_whole(size_t size) {
    size_t bytes = hak_good_size(size);
    char *block = hak_malloc(size);
    memset(block, 0xa5, bytes);
    hak_free(block);
    return unit_is_filled(block + 16, bytes - 16, 0);
}

HELD_TEST(block_is_cleared_whole_while_there_is_a_budget) {
    unsigned within = 0;
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(1000000000);
    while (is_cleared_whole(1000) && within < 1 << 16) {
        within++; /* 16 MiB, and as much as the time before gave */
    }
    assert_in_range(within, 15000, 1 << 15);
    assert_false(is_cleared_whole(4000));
    assert_true(is_cleared_whole(100));
    void *block[200];
    hak_os_fault_advance_clock(4000000); /* 256 KiB come back, noticed by refills */
    for (unsigned round = 0; round < 20; round++) {
        UNIT_TAKE_ALL(block, UNIT_COUNT(block), hak_malloc(SMALL));
        UNIT_FREE_ALL(block, UNIT_COUNT(block));
        hak_collect_thread();
    }
    assert_true(is_cleared_whole(1000));
    assert_true(is_cleared_whole(4096));
    assert_false(is_cleared_whole(5000));
    audit();
}

/* Until one of them is handed out. No test after it uses the size. */
HELD_TEST(write_to_the_middle_of_freed_blocks_is_fatal) {
    static char *block[64];
    assert_true(is_cleared_whole(1000));
    UNIT_TAKE_ALL(block, UNIT_COUNT(block), hak_malloc(1000));
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        hak_free(block[i]);
        block[i][500] = 1;
    }
    UNIT_EXPECT_FATAL(for (unsigned i = 0; i < 2 * UNIT_COUNT(block); i++) block[0] =
                          hak_malloc(1000),
                      hak_fatal_text(HAK_FATAL_CORRUPT_LINK));
}

HELD_TEST(write_to_the_link_of_a_block_that_is_held_back_is_fatal) {
    uint64_t *block = hak_malloc(SMALL), link;
    hak_free(block);
    link = *block;
    *block = 0x4141414141414141ull;
    UNIT_EXPECT_FATAL(hak_collect_thread(), hak_fatal_text(HAK_FATAL_CORRUPT_LINK));
    *block = link; /* it is in no list any more, and stays in use */
}

HELD_TEST(block_is_not_reused_at_once) {
    unsigned same = 0;
    for (unsigned i = 0; i < 1000; i++) {
        void *block = hak_malloc(SMALL);
        hak_free(block);
        void *next = hak_malloc(SMALL);
        same += next == block;
        hak_free(next);
    }
    assert_in_range(same, 0, 200); /* one of 32, and the bin's first */
}

HELD_TEST(fresh_blocks_come_in_random_order) {
    enum { COUNT = 512 };
    static char *block[COUNT];
    unsigned ascending = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hak_malloc(SMALL);
        ascending += i > 0 && block[i] - block[i - 1] == (ptrdiff_t)hak_good_size(SMALL) + 8;
    }
    assert_in_range(ascending, 0, COUNT / 4);
    UNIT_FREE_ALL(block, COUNT);
    audit();
}

HELD_TEST(shuffled_list_has_the_same_blocks) {
    for (unsigned count = 1; count <= 600; count = count * 3 / 2 + 1) {
        static _Alignas(16) char area[600][16];
        bool is_seen[600] = {false};
        unsigned found = 0;
        hak_blocks_t blocks = {.head = area[0], .count = count, .stride = 16};
        hak_slab_link(&blocks);
        blocks = hak_quarantine_shuffle(self(), blocks);
        assert_int_equal(blocks.count, count);
        for (char *at = blocks.head; at != NULL; at = hak_link_get(at)) {
            unsigned i = (unsigned)((at - area[0]) / 16);
            assert_in_range(i, 0, count - 1);
            assert_false(is_seen[i]);
            is_seen[i] = true;
            found++;
        }
        assert_int_equal(found, count);
    }
}
