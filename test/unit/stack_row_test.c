/* SPDX-License-Identifier: MIT
 *
 * The cache of rows: how long it holds what it read, how much is read for a row and a walk, and
 * what is read of objects that may be unloaded. */
#include "os/libc.h"
#include "os/optional.h"
#include "stack/row.h"
#include "unit/unit.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

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

static uint64_t unloads = 100;

enum { AT = 2 };
#define CODE_OF(function) ((uintptr_t)(function) + AT)

/* Bytes of tables that were read. */
static uint32_t bytes_read(const char *function, bool is_sure, hak_row_kind_t kind) {
    uint32_t left = HAK_ROW_WALK_BYTES;
    assert_int_equal(hak_row_find(CODE_OF(function), is_sure, &left).kind, kind);
    return HAK_ROW_WALK_BYTES - left;
}

UNIT_TEST(rows_are_kept_until_an_object_is_gone) {
    hak_row_follow(1);
    uint32_t read = bytes_read(row_test_few, true, HAK_ROW_STACK);
    assert_in_range(read, 2 * FEW, 2 * FEW + 1000);
    hak_row_follow(1); /* another dlopen */
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), 0);
    hak_row_follow(2);
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), read);
}

/* However often: no count of them comes round. */
UNIT_TEST(rows_that_were_forgotten_never_come_back) {
    enum { WRAPS = 1 << 16 };
    hak_row_follow(0);
    hak_row_follow(1);
    uint32_t read = bytes_read(row_test_few, true, HAK_ROW_STACK);
    for (unsigned i = 2; i <= WRAPS + 1; i++) {
        hak_row_follow(i);
    }
    assert_int_equal(bytes_read(row_test_few, true, HAK_ROW_STACK), read);
}

UNIT_TEST(row_of_a_long_program_reads_a_bounded_part_of_it_once) {
    hak_row_follow(++unloads);
    assert_in_range(bytes_read(row_test_many, true, HAK_ROW_NONE), HAK_ROW_BYTES / 2,
                    HAK_ROW_BYTES);
    assert_int_equal(bytes_read(row_test_many, true, HAK_ROW_NONE), 0);
}

/* What the walk had no bytes left for is read in the next one. */
UNIT_TEST(row_without_bytes_left_is_none_but_not_for_long) {
    uint32_t left = FEW;
    hak_row_follow(++unloads);
    assert_int_equal(hak_row_find(CODE_OF(row_test_few), true, &left).kind, HAK_ROW_NONE);
    assert_int_equal(left, 0);
    assert_int_equal(hak_row_find(CODE_OF(row_test_many), true, &left).kind, HAK_ROW_NONE);
    assert_in_range(bytes_read(row_test_few, true, HAK_ROW_STACK), 2 * FEW, 2 * FEW + 1000);
}

/* A walk that is not sure reads nothing of an object that may be unloaded. */
UNIT_TEST(tables_of_a_plugin_are_read_by_sure_walks_only) {
    uintptr_t start;
    void *plugin = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    uintptr_t code = plugin != NULL ? (uintptr_t)dlsym(plugin, "__b64_ntop") : 0;
    if (code == 0 || !hak_libc_find_start(code, &start)) {
        skip(); /* not that C library */
    }
    uint32_t left = HAK_ROW_WALK_BYTES;
    hak_row_follow(3);
    assert_int_equal(hak_row_find(code, false, &left).kind, HAK_ROW_NONE);
    assert_int_equal(left, HAK_ROW_WALK_BYTES);
    assert_int_equal(hak_row_find(code, true, &left).kind, HAK_ROW_STACK);
    assert_true(left < HAK_ROW_WALK_BYTES);
    left = HAK_ROW_WALK_BYTES;
    assert_int_equal(hak_row_find((uintptr_t)getauxval, false, &left).kind, HAK_ROW_STACK);
    assert_true(left < HAK_ROW_WALK_BYTES); /* of the C library itself */
    assert_true(bytes_read(row_test_few, false, HAK_ROW_STACK) != 0);
    assert_int_equal(dlclose(plugin), 0);
}

/* The C library's own plugins come and go without a dlopen of the program's. Marks have 16 bits, so
 * two objects may share one; four do not. */
UNIT_TEST(mark_of_an_object_is_its_own) {
    static const char *const names[] = {"libresolv.so.2", "libm.so.6", "libutil.so.1"};
    uintptr_t mark = hak_os_object_mark((uintptr_t)getauxval), differ = 0, found = 0;
    assert_int_equal(hak_os_object_mark((uintptr_t)getauxval), mark);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct link_map *plugin = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        found += plugin != NULL;
        differ |= plugin != NULL ? hak_os_object_mark((uintptr_t)plugin->l_ld) ^ mark : 0;
    }
    if (mark == 0 || found < 3) {
        skip(); /* not that C library */
    }
    assert_int_not_equal(differ, 0);
}
