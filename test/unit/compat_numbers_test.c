/* SPDX-License-Identifier: MIT
 *
 * The numbers of arenas and tcaches of jemalloc's interface: none twice, and an end. */
#include "compat/numbers.h"

#include "compat/compat.h"
#include "unit/unit.h"

#include <errno.h>

enum { NUMBERS_MOST = 4096 };

UNIT_TEST(tcaches_get_the_lowest_free_number_each_once) {
    uint64_t tcache = 0;
    assert_false(hak_compat_is_tcache(0));
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(hak_compat_tcache_create(&tcache), 0);
        assert_int_equal(tcache, i);
        assert_true(hak_compat_is_tcache(i));
    }
    hak_compat_tcache_end(70);
    assert_false(hak_compat_is_tcache(70));
    assert_int_equal(hak_compat_tcache_create(&tcache), 0);
    assert_int_equal(tcache, 70);
    unsigned made = 200;
    while (made < NUMBERS_MOST && hak_compat_tcache_create(&tcache) == 0) {
        assert_int_equal(tcache, made++);
    }
    assert_true(made < NUMBERS_MOST);
    assert_int_equal(hak_compat_tcache_create(&tcache), EAGAIN);
    assert_false(hak_compat_is_tcache(made));
    assert_false(hak_compat_is_tcache(UINT32_MAX));
    hak_compat_tcache_end(made - 1);
    assert_int_equal(hak_compat_tcache_create(&tcache), 0);
    assert_int_equal(tcache, made - 1);
}

UNIT_TEST(arenas_are_numbered_and_one_name_stands_for_all) {
    uint64_t arena = 0;
    assert_int_equal(hak_compat_arenas(), 1);
    for (unsigned i = 1; i < 5; i++) {
        assert_false(hak_compat_is_arena(i));
        assert_int_equal(hak_compat_arena_create(&arena), 0);
        assert_int_equal(arena, i);
        assert_true(hak_compat_is_arena(i));
    }
    assert_true(hak_compat_is_heap(0));
    assert_true(hak_compat_is_heap(5)); /* one more than there are: all */
    assert_true(hak_compat_is_heap(MALLCTL_ARENAS_ALL));
    assert_false(hak_compat_is_heap(3));
    assert_true(hak_compat_is_arena_name(5));
    assert_false(hak_compat_is_arena_name(6));
    assert_true(hak_compat_is_arena_name(MALLCTL_ARENAS_DESTROYED));
    while (hak_compat_arena_create(&arena) == 0) {
        assert_true(arena < NUMBERS_MOST);
    }
    assert_int_equal(hak_compat_arena_create(&arena), EAGAIN);
    assert_int_equal(hak_compat_arenas(), arena + 1);
    assert_false(hak_compat_is_arena(SIZE_MAX));
}
