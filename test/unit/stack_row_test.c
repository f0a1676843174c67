/* SPDX-License-Identifier: MIT
 *
 * The cache of rows: how long it holds what it read, how much is read for a row and a walk, and
 * what is read while objects are unloaded. */
#include "stack/row.h"

#include "unit/unit.h"

#include <pthread.h>

/* A function with many unwind instructions before its first call, none of which says anything. */
#define FEW 100
#define MANY 20000
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define FUNCTION(name, count)                                                                      \
    ".text\n.globl " name "\n.hidden " name "\n.type " name ",%function\n" name ":\n"              \
    ".cfi_startproc\n.rept " TEXT(                                                                 \
        count) "\n.cfi_escape 0x2e, 0\n.endr\n"                                                    \
               "nop\n.cfi_escape 0x2e, 0\nnop\nnop\n.cfi_endproc\n.size " name ", .-" name "\n"
__asm__(FUNCTION("row_test_few", FEW) FUNCTION("row_test_many", MANY));
extern const char row_test_few[], row_test_many[];

enum { AT = 2 };
#define CODE_OF(function) ((uintptr_t)(function) + AT)

/* Bytes of tables that were read. */
static uint32_t bytes_read(const char *function, bool is_sure, hak_row_kind_t kind) {
    uint32_t left = HAK_ROW_WALK_BYTES;
    assert_int_equal(hak_row_find(CODE_OF(function), is_sure, &left).kind, kind);
    return HAK_ROW_WALK_BYTES - left;
}

UNIT_TEST(rows_are_kept_until_an_object_is_gone) {
    hak_row_forget();
    uint32_t read = bytes_read(row_test_few, true, HAK_ROW_STACK);
    assert_in_range(read, 2 * FEW, 2 * FEW + 1000);
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), 0);
    assert_true(hak_row_unload_begin()); /* a plugin that something else still uses */
    hak_row_unload_end(false);
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), 0);
    assert_true(hak_row_unload_begin());
    hak_row_unload_end(true);
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), read);
}

UNIT_TEST(rows_that_were_forgotten_never_come_back) {
    enum { WRAPS = 1 << 16 };
    hak_row_forget();
    uint32_t read = bytes_read(row_test_few, true, HAK_ROW_STACK);
    for (unsigned i = 0; i < WRAPS; i++) {
        hak_row_forget();
    }
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), read);
}

UNIT_TEST(row_of_a_long_program_reads_a_bounded_part_of_it_once) {
    hak_row_forget();
    assert_in_range(bytes_read(row_test_many, true, HAK_ROW_NONE), HAK_ROW_BYTES / 2,
                    HAK_ROW_BYTES);
    assert_int_equal(bytes_read(row_test_many, true, HAK_ROW_NONE), 0);
}

/* What the walk had no bytes left for is read in the next one. */
UNIT_TEST(row_without_bytes_left_is_none_but_not_for_long) {
    uint32_t left = FEW;
    hak_row_forget();
    assert_int_equal(hak_row_find(CODE_OF(row_test_few), true, &left).kind, HAK_ROW_NONE);
    assert_int_equal(left, 0);
    assert_int_equal(hak_row_find(CODE_OF(row_test_many), true, &left).kind, HAK_ROW_NONE);
    assert_in_range(bytes_read(row_test_few, true, HAK_ROW_STACK), 2 * FEW, 2 * FEW + 1000);
}

/* A walk that is not sure is not sure either that the object stays. */
UNIT_TEST(unsure_walks_read_nothing_while_an_object_is_unloaded) {
    hak_row_forget();
    assert_true(hak_row_unload_begin());
    assert_int_equal(bytes_read(row_test_few, false, HAK_ROW_NONE), 0);
    assert_true(hak_row_unload_begin()); /* by a destructor */
    hak_row_unload_end(false);
    assert_int_equal(bytes_read(row_test_few, false, HAK_ROW_NONE), 0);
    assert_true(bytes_read(row_test_few, true, HAK_ROW_STACK) != 0);
    hak_row_forget();
    hak_row_unload_end(false);
    assert_true(bytes_read(row_test_few, false, HAK_ROW_STACK) != 0);
}

extern uint64_t hak_row_users;

/* Another thread reads, and sits in a signal handler. */
UNIT_TEST(object_stays_while_an_unsure_walk_reads) {
    hak_row_users++;
    assert_false(hak_row_unload_begin());
    assert_false(hak_row_unload_begin());
    assert_int_equal(hak_row_users, 1);
    hak_row_users--;
    assert_true(hak_row_unload_begin());
    hak_row_unload_end(false);
    hak_row_users++;
    hak_row_after_fork();
    assert_int_equal(hak_row_users, 0);
}

static void *read_all_the_time(void *stop) {
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
        uint32_t left = HAK_ROW_WALK_BYTES;
        hak_row_kind_t kind = hak_row_find(CODE_OF(row_test_few), false, &left).kind;
        assert_true(kind == HAK_ROW_STACK || kind == HAK_ROW_NONE);
    }
    return NULL;
}

UNIT_TEST(object_goes_between_two_reads) {
    enum { ROUNDS = 2000 };
    pthread_t thread;
    bool stop = false;
    assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &stop), 0);
    for (unsigned i = 0; i < unit_rounds(ROUNDS); i++) {
        assert_true(hak_row_unload_begin());
        assert_int_equal((uint32_t)__atomic_load_n(&hak_row_users, __ATOMIC_RELAXED) >> 1, 0);
        hak_row_unload_end(true);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hak_row_users, 0);
}
