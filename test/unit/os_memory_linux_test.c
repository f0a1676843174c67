/* SPDX-License-Identifier: MIT
 *
 * Memory: what os.h promises about mappings, against the kernel itself. */
#include "unit/os.h"

#include <sys/prctl.h>

UNIT_TEST(map_of_any_alignment_is_aligned_zero_and_writable) {
    size_t page = hak_os_page_bytes();
    for (size_t align = page; align <= 256u * MIB; align *= 4) {
        for (size_t bytes = page; bytes <= 5u * MIB; bytes = bytes * 3 / page * page) {
            char *base = hak_os_map(bytes, align);
            assert_non_null(base);
            UNIT_EXPECT((uintptr_t)base % align == 0, "%zu at %zu", bytes, align);
            assert_true(unit_is_filled(base, bytes, 0));
            memset(base, 0x5a, bytes);
            assert_true(hak_os_unmap(base, bytes));
            assert_false(hak_os_is_readable(base));
        }
    }
}

UNIT_TEST(map_of_impossible_size_is_null) {
    assert_null(hak_os_map((size_t)1 << 62, HAK_UNIT_BYTES));
    assert_null(hak_os_map(SIZE_MAX - 65535, HAK_UNIT_BYTES));
    assert_null(hak_os_map(SIZE_MAX - 65535, (size_t)1 << 32));
    assert_null(hak_os_map((size_t)PTRDIFF_MAX + 1, HAK_UNIT_BYTES));
}

UNIT_TEST(reserve_then_commit_opens_that_part_only) {
    size_t page = hak_os_page_bytes();
    char *base = hak_os_reserve(8 * page, page);
    assert_non_null(base);
    assert_false(hak_os_is_readable(base));
    assert_true(hak_os_commit(base + 2 * page, 3 * page));
    memset(base + 2 * page, 1, 3 * page);
    assert_false(hak_os_is_readable(base + 2 * page - 8));
    assert_true(hak_os_is_readable(base + 5 * page - 8));
    assert_false(hak_os_is_readable(base + 5 * page));
    assert_true(hak_os_conceal(base + 3 * page, page));
    assert_true(hak_os_is_readable(base + 3 * page - 8));
    assert_false(hak_os_is_readable(base + 3 * page));
    assert_true(hak_os_is_readable(base + 4 * page));
    assert_true(hak_os_commit(base + 3 * page, page));
    assert_int_equal(base[3 * page], 1); /* concealed, not gone */
    assert_true(hak_os_unmap(base, 8 * page));
}

UNIT_TEST(purge_keeps_the_address_and_reads_as_zero) {
    char *base = hak_os_map(4u * HAK_UNIT_BYTES, HAK_UNIT_BYTES);
    memset(base, 7, 4u * HAK_UNIT_BYTES);
    assert_true(hak_os_purge(base + HAK_UNIT_BYTES, 2u * HAK_UNIT_BYTES));
    assert_true(unit_is_filled(base, HAK_UNIT_BYTES, 7));
    assert_true(unit_is_filled(base + HAK_UNIT_BYTES, 2u * HAK_UNIT_BYTES, 0));
    assert_true(unit_is_filled(base + 3u * HAK_UNIT_BYTES, HAK_UNIT_BYTES, 7));
    base[HAK_UNIT_BYTES] = 1;
    assert_true(hak_os_unmap(base, 4u * HAK_UNIT_BYTES));
}

UNIT_TEST(resize_in_place_keeps_contents_and_new_part_is_zero) {
    char *base = hak_os_map(4u * MIB, HAK_UNIT_BYTES);
    memset(base, 3, 4u * MIB);
    assert_true(hak_os_resize(base, 4u * MIB, MIB));
    assert_false(hak_os_is_readable(base + MIB));
    assert_true(hak_os_resize(base, MIB, 3u * MIB));
    assert_true(unit_is_filled(base, MIB, 3));
    assert_true(unit_is_filled(base + MIB, 2u * MIB, 0));
    assert_true(hak_os_unmap(base, 3u * MIB));
}

UNIT_TEST(resize_into_a_neighbour_fails_and_changes_nothing) {
    char *base = hak_os_map(2u * MIB, HAK_UNIT_BYTES);
    memset(base, 3, 2u * MIB);
    assert_false(hak_os_resize(base, MIB, MIB + HAK_UNIT_BYTES));
    assert_true(unit_is_filled(base, 2u * MIB, 3));
    assert_true(hak_os_unmap(base, 2u * MIB));
}

UNIT_TEST(move_of_a_whole_mapping_takes_contents_along) {
    char *base = hak_os_map(MIB, HAK_UNIT_BYTES);
    char *target = hak_os_reserve(3u * MIB, HAK_UNIT_BYTES);
    memset(base, 9, MIB);
    assert_true(hak_os_move(base, MIB, target, 3u * MIB, false));
    assert_false(hak_os_is_readable(base));
    assert_true(unit_is_filled(target, MIB, 9));
    assert_true(unit_is_filled(target + MIB, 2u * MIB, 0));
    memset(target, 1, 3u * MIB);
    assert_true(hak_os_unmap(target, 3u * MIB));
}

UNIT_TEST(move_out_of_the_middle_leaves_zero_and_neighbours) {
    char *base = hak_os_map(4u * MIB, 4u * MIB);
    char *target = hak_os_reserve(3u * MIB, HAK_UNIT_BYTES);
    memset(base, 9, 4u * MIB);
    if (!hak_os_move(base + MIB, MIB, target, 3u * MIB, true)) {
        print_message("this kernel cannot move pages out of a mapping; contents must be intact\n");
        assert_true(unit_is_filled(base, 4u * MIB, 9));
        return;
    }
    assert_true(unit_is_filled(base, MIB, 9));
    assert_true(unit_is_filled(base + MIB, MIB, 0));
    assert_true(unit_is_filled(base + 2u * MIB, 2u * MIB, 9));
    assert_true(unit_is_filled(target, MIB, 9));
    assert_true(unit_is_filled(target + MIB, 2u * MIB, 0));
    memset(base + MIB, 8, MIB); /* both stay writable and apart */
    assert_true(unit_is_filled(target, MIB, 9));
    /* one mapping in the end: it can be moved again */
    char *again = hak_os_reserve(4u * MIB, HAK_UNIT_BYTES);
    assert_true(hak_os_move(target, 3u * MIB, again, 4u * MIB, false));
    assert_true(unit_is_filled(again, MIB, 9));
    assert_true(hak_os_unmap(again, 4u * MIB));
    /* An emulator that forgets the range says 0 to madvise and leaves the bytes. */
    memset(base, 8, 4u * MIB);
    assert_true(hak_os_purge(base + MIB, MIB));
    assert_true(unit_is_filled(base + MIB, MIB, 0));
    memset(base, 7, 4u * MIB);
    assert_true(hak_os_purge(base, 4u * MIB));
    assert_true(unit_is_filled(base, 4u * MIB, 0));
    assert_true(hak_os_unmap(base, 4u * MIB));
}

/* Position 1 of the remap calls is the growth after the pages have gone: they are put back. */
UNIT_TEST(move_out_failing_at_any_step_leaves_contents) {
    char *base = hak_os_map(4u * MIB, 4u * MIB);
    for (uint64_t position = 0; position < 2; position++) {
        char *target = hak_os_reserve(3u * MIB, HAK_UNIT_BYTES);
        memset(base, 9, 4u * MIB);
        hak_os_fault_plan(HAK_OS_CALL_REMAP, position, 1);
        assert_false(hak_os_move(base + MIB, MIB, target, 3u * MIB, true));
        hak_os_fault_clear();
        assert_true(unit_is_filled(base, 4u * MIB, 9));
        assert_false(hak_os_is_readable(target));
    }
    assert_true(hak_os_purge(base, 4u * MIB));
    assert_true(unit_is_filled(base, 4u * MIB, 0));
    assert_true(hak_os_unmap(base, 4u * MIB));
}

UNIT_TEST(resident_counts_touched_os_pages) {
    size_t page = hak_os_page_bytes();
    char *base = hak_os_map(600 * page, page);
    assert_int_equal(hak_os_resident(base, 600 * page), 0);
    base[0] = base[300 * page] = base[599 * page] = 1;
    assert_int_equal(hak_os_resident(base, 600 * page), 3 * page);
    assert_int_equal(hak_os_resident(base + page, 598 * page), page);
    assert_true(hak_os_purge(base, 600 * page));
    assert_int_equal(hak_os_resident(base, 600 * page), 0);
    assert_true(hak_os_unmap(base + 299 * page, page));
    assert_int_equal(hak_os_resident(base, 600 * page), 0);
    assert_true(hak_os_unmap(base, 299 * page));
    assert_true(hak_os_unmap(base + 300 * page, 300 * page));
}

UNIT_TEST(failing_calls_leave_errno_alone) {
    errno = 4321;
    assert_null(hak_os_map((size_t)1 << 62, HAK_UNIT_BYTES));
    assert_false(hak_os_commit((void *)1, 4096));
    assert_false(hak_os_unmap((void *)1, 4096));
    assert_false(hak_os_purge((void *)1, 4096));
    assert_false(hak_os_resize((void *)1, 4096, 8192));
    assert_false(hak_os_is_readable(NULL));
    char text[8];
    assert_int_equal(hak_os_read_file("/no/such/file", text, sizeof text), 0);
    assert_false(hak_os_env("HAK_UNIT_ABSENT", text, sizeof text));
    assert_int_equal(errno, 4321);
}

UNIT_TEST(huge_pages_of_unadvised_memory_stay_when_the_kernel_refuses) {
    int was = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    hak_os_fault_plan(HAK_OS_CALL_ADVISE, 0, 1);
    assert_false(hak_os_huge_only_advised());
    hak_os_fault_clear();
    assert_true(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == was);
    bool is_done = hak_os_huge_only_advised(); /* or a kernel before 6.18 */
    assert_true(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == (is_done ? 3 : was));
}

UNIT_GROUP(os_begin)
