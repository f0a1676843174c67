/* SPDX-License-Identifier: MIT
 *
 * Guards, sealed memory, and the distance to what is mapped already. */
#include "unit/dies.h"
#include "unit/os.h"

#include <sys/mman.h>
#include <sys/prctl.h>

static char *fresh(size_t pages) {
    char *base = hak_os_map(pages * hak_os_page_bytes(), hak_os_page_bytes());
    assert_non_null(base);
    return base;
}

UNIT_TEST(sealed_memory_is_read_only_and_keeps_its_content) {
    size_t page = hak_os_page_bytes();
    char *base = fresh(2);
    base[page] = 7;
    assert_true(hak_os_seal(base + page, page));
    assert_int_equal(base[page], 7);
    assert_int_equal(unit_write_signal(base + page), SIGSEGV);
    assert_int_equal(unit_write_signal(base), 0);
}

/* Where the kernel has mseal, which the call itself tells, and the process no filter. */
UNIT_TEST(sealed_memory_stays_read_only_where_the_kernel_knows_mseal) {
    size_t page = hak_os_page_bytes();
    char *base = fresh(1);
    bool has_mseal = prctl(PR_GET_SECCOMP) == 0 && syscall(462, 0, 0, 0) == 0;
    assert_true(hak_os_seal(base, page));
    assert_int_equal(mprotect(base, page, PROT_READ | PROT_WRITE) != 0, has_mseal);
}

UNIT_TEST(seal_of_a_part_of_an_os_page_is_refused) {
    char *base = fresh(1);
    assert_false(hak_os_seal(base + 16, hak_os_page_bytes()));
    assert_false(hak_os_seal(base, 64));
    assert_int_equal(unit_write_signal(base), 0);
    hak_os_unmap(base, hak_os_page_bytes());
}

UNIT_TEST(scatter_leaves_a_distance) {
    char *before = hak_os_map(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
    hak_os_scatter();
    char *after = hak_os_map(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
    assert_non_null(before);
    assert_non_null(after);
    assert_true(after <= before - 2 * (size_t)HAK_SUPERSLAB_BYTES);
    hak_os_unmap(before, HAK_SUPERSLAB_BYTES);
    hak_os_unmap(after, HAK_SUPERSLAB_BYTES);
}

UNIT_GROUP(os_begin)
