/* SPDX-License-Identifier: MIT
 *
 * Sorting of free blocks: where they end up, and what is noticed on the way. */
#include "unit/fatal.h"
#include "unit/front.h"

enum { MANY = 5000, FOREIGN = 300 };

UNIT_AROUND(flush_begin) {
    hak_free(unit_malloc(1));
    hak_collect_thread();
    return 0;
}

/* An order without neighbours: 2003 has no factor in common with COUNT. */
static unsigned shuffled(unsigned i) {
    return (unsigned)((uint64_t)i * 2003 % MANY);
}

UNIT_TEST(blocks_of_many_slabs_go_back_to_each) {
    static void *block[MANY];
    size_t before = audit().slabs;
    UNIT_TAKE_ALL(block, MANY, unit_malloc(64));
    assert_true(audit().slabs >= before + MANY * 64 / HAK_UNIT_BYTES);
    for (unsigned i = 0; i < MANY; i++) {
        hak_free(block[shuffled(i)]);
    }
    audit();
    hak_collect_thread();
    assert_int_equal(audit().cached_blocks, 0);
    assert_true(audit().slabs <= before);
}

/* The first one since a refill; then the thread only frees, and all goes, `most` at a time. */
static void overflow_by_part(size_t size, int64_t most) {
    static void *block[MANY];
    unsigned sc = hak_sc_of(size);
    UNIT_TAKE_ALL(block, MANY, unit_malloc(size));
    for (unsigned i = 0; i < MANY; i++) {
        hak_bin_t *bin = &self()->bin[sc];
        hak_bin_side_t *side = &self()->side[sc];
        bool is_full = bin->slots_left == 0;
        int64_t cached = side->total - bin->slots_left;
        uint64_t before = side->counters.overflow;
        bool is_again = side->overflows != 0;
        int64_t leaving = is_again ? cached + 1 : cached / 2 + 1;
        int64_t bound = is_again ? most : 32;
        hak_free(block[i]);
        bool is_over = side->counters.overflow != before;
        /* hardened: until the quarantine is full, no block gets to the bin */
        assert_true(is_over == is_full || (HAK_HARDEN && !is_over));
        assert_int_equal(side->counters.overflow, before + is_over);
        assert_int_equal(side->overflows != 0, is_again || is_over);
        if (is_over) {
            leaving = leaving < bound ? leaving : bound;
            assert_int_equal(side->total - bin->slots_left, cached + 1 - leaving);
        }
    }
    audit();
    hak_collect_thread();
}

UNIT_TEST(overflow_lets_a_part_go_and_keeps_the_rest) {
    overflow_by_part(16, 64);
    overflow_by_part(64 - HAK_CANARY_BYTES, 64);
    overflow_by_part(80 - HAK_CANARY_BYTES, 32);
}

/* Sixteen overflows without a refill: then it doubles at each, up to 32 blocks or 8 KiB. */
UNIT_TEST(bin_grows_in_a_long_run_of_frees) {
    static const size_t bytes[] = {256 - HAK_CANARY_BYTES, 1024 - HAK_CANARY_BYTES};
    static const int32_t most[] = {32, 8};
    for (unsigned i = 0; i < UNIT_COUNT(bytes); i++) {
        static void *block[MANY];
        const hak_bin_side_t *side = hak_bin_side(self(), hak_sc_of(bytes[i]));
        UNIT_TAKE_ALL(block, MANY, unit_malloc(bytes[i]));
        uint64_t before = side->counters.overflow;
        assert_true(side->capacity * 2 <= most[i]);
        for (unsigned j = 0; j < MANY; j++) {
            int32_t capacity = side->capacity;
            uint64_t overflows = side->counters.overflow;
            hak_free(block[j]);
            bool may_grow = side->counters.overflow > overflows && overflows - before >= 16;
            int32_t grown = capacity * 2 <= most[i] ? capacity * 2 : capacity;
            assert_int_equal(side->capacity, may_grow ? grown : capacity);
        }
        assert_int_equal(side->capacity, most[i]);
        audit();
        hak_collect_thread();
    }
}

static void *make_foreign(void *context) {
    void **block = context;
    for (unsigned i = 0; i < FOREIGN; i++) {
        block[i] = unit_malloc(64 * (1 + i % 3)); /* 64, 128, 192 */
    }
    return NULL;
}

/* Messages of all classes. */
static uint64_t messages_out(void) {
    uint64_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        sum += hak_bin_side(self(), sc)->counters.remote_out;
    }
    return sum;
}

UNIT_TEST(blocks_of_others_go_out_as_one_message_a_slab) {
    static void *block[FOREIGN];
    unit_pthread_create_and_join(make_foreign, block);
    hak_collect_thread();
    uint64_t before = messages_out();
    unsigned slabs = 0;
    for (unsigned i = 0; i < FOREIGN; i++) {
        bool is_new = true;
        for (unsigned j = 0; j < i && is_new; j++) {
            is_new = hak_slab_of(block[j]) != hak_slab_of(block[i]);
        }
        slabs += is_new;
        hak_free(block[i]);
    }
    hak_collect_thread();
    assert_in_range(messages_out() - before, slabs, FOREIGN / 4);
    audit();
}

static void *make_many(void *block) {
    UNIT_TAKE_ALL((void **)block, MANY, unit_malloc(64));
    return NULL;
}

/* Upwards, downwards, and with gaps; rows end with words of bitmaps, messages and slabs. */
UNIT_TEST(rows_of_others_go_home_whole) {
    static void *block[MANY];
    for (unsigned order = 0; order < 3; order++) {
        size_t before = audit().slabs;
        unit_pthread_create_and_join(make_many, block);
        for (unsigned i = 0; i < MANY; i++) {
            unsigned at[] = {i, MANY - 1 - i, i * 2 % MANY + (i >= MANY / 2)};
            hak_free(block[at[order]]);
        }
        hak_collect_thread();
        audit();
        hak_owner_collect();
        assert_true(audit().slabs <= before);
    }
}

extern uint32_t hak_search_steps;
extern uint64_t hak_search_period;

/* A free sees no more than the newest blocks of a bin, until the test ends. */
static void search_few(bool is_on) {
    hak_search_steps = 0;
    hak_search_period = is_on ? UINT64_MAX : 0;
}

/* In the middle of a row, and twice in one. */
UNIT_TEST(double_free_of_a_block_of_others_is_noticed) {
    static void *block[MANY];
    if (HAK_HARDEN) {
        return; /* there it is noticed at once */
    }
    unit_pthread_create_and_join(make_many, block);
    for (unsigned i = 0; i < 24; i++) { /* the first of them begin the class */
        hak_free(block[i]);
    }
    search_few(true);
    hak_free(block[10]);
    search_few(false);
    UNIT_EXPECT_FATAL(hak_collect_thread(), "double free");
}

UNIT_TEST(double_free_in_a_bin_is_noticed) {
    void *block[12];
    UNIT_TAKE_ALL(block, UNIT_COUNT(block), unit_malloc(40));
    UNIT_FREE_ALL(block, UNIT_COUNT(block));
    UNIT_EXPECT_FATAL(hak_free(block[11]), "double free");
    UNIT_EXPECT_FATAL(hak_free(block[1]), "double free");
}

/* Freed in rows upwards and downwards, with gaps, and all over: what comes back ascends. */
UNIT_TEST(sorted_blocks_come_back_in_address_order) {
    static char *block[MANY];
    for (unsigned order = 0; order < 4; order++) {
        UNIT_TAKE_ALL(block, MANY, unit_malloc(64));
        for (unsigned i = 0; i < MANY; i++) {
            unsigned at[] = {i, MANY - 1 - i, i * 2 % MANY + (i >= MANY / 2), shuffled(i)};
            hak_free(block[at[order]]);
        }
        hak_collect_thread();
        audit();
        unsigned descents = 0;
        for (unsigned i = 0; i < MANY; i++) {
            block[i] = unit_malloc(64);
            descents += i != 0 && block[i] < block[i - 1];
        }
        assert_true(descents <= MANY * 64 / HAK_UNIT_BYTES + 1); /* between slabs */
        UNIT_FREE_ALL(block, MANY);
        hak_collect_thread();
    }
}

UNIT_TEST(double_free_of_a_sorted_block_is_noticed) {
    char *block[3] = {unit_malloc(896), unit_malloc(896), unit_malloc(896)};
    hak_free(block[1]);
    hak_collect_thread();
    UNIT_EXPECT_FATAL(hak_free(block[1]), "double free");
}

UNIT_TEST(more_blocks_than_a_slab_gave_are_noticed) {
    void *block = unit_malloc(1536);
    hak_slab_t *slab = hak_slab_of(block);
    uint32_t count = slab->free_count;
    slab->free_count = slab->carved;
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_collect_thread(), "double free");
    slab->free_count = count;
}

UNIT_TEST(block_freed_just_now_is_noticed_at_once) {
    char *block = unit_malloc(768);
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_free(block), "double free");
    hak_collect_thread();
}

/* A block that is in its slab's bitmap already, and whose marker was written over, so that free
 * finds none. */
static void with_written_block_freed_again(void (*check)(void)) {
    char *block[3] = {unit_malloc(896), unit_malloc(896), unit_malloc(896)};
    hak_free(block[1]);
    hak_collect_thread();
    memset(block[1], 0, 8);
    hak_free(block[1]);
    check();
    self()->bin[hak_sc_of(896)].head = NULL;
    self()->bin[hak_sc_of(896)].slots_left++;
    hak_free(block[0]);
    hak_free(block[2]);
}

static void expect_notice_by_malloc(void) {
    UNIT_EXPECT_FATAL((void)!unit_malloc(896), "double free");
}

static void expect_notice_by_flush(void) {
    UNIT_EXPECT_FATAL(hak_collect_thread(), "double free");
}

UNIT_TEST(double_free_of_a_sorted_block_is_noticed_when_handed_out_or_flushed) {
    if (HAK_HARDEN) {
        return; /* there it is noticed at once */
    }
    with_written_block_freed_again(expect_notice_by_malloc);
    with_written_block_freed_again(expect_notice_by_flush);
}

/* What a program writes may look like a mark; the bitmap tells. */
UNIT_TEST(block_that_looks_marked_is_handed_out) {
    if (HAK_HARDEN) {
        return; /* nothing is left of what a program wrote */
    }
    uint32_t *block = unit_malloc(896);
    block[2] = HAK_LINK_MARK;
    hak_free(block);
    assert_ptr_equal(unit_malloc(896), block);
    hak_free(block);
}

UNIT_TEST(overwritten_link_is_noticed) {
    uint64_t *a = unit_malloc(48), *b = unit_malloc(48);
    hak_free(a);
    hak_free(b);
    *(volatile uint64_t *)b = 0x4141414141414140u;
    UNIT_EXPECT_FATAL(hak_collect_thread(), "write to a freed block");
}

UNIT_GROUP(flush_begin)
