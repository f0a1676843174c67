/* SPDX-License-Identifier: MIT
 *
 * What an address is in: the program and its libraries, the mapping of another address. */
#include "os/libc.h"
#include "os/optional.h"
#include "unit/unit.h"

#include <gnu/libc-version.h>
#include <sys/mman.h>

enum { PAGES = 8 };

/* Anonymous, readable and writable, but for OS page 4, another mapping, and 6 and 7, which are
 * nobody's. */
static char *pages_make(void) {
    size_t page = hak_os_page_bytes();
    char *base =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_ptr_equal(mmap(base + 4 * page, page, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     base + 4 * page);
    assert_int_equal(munmap(base + 6 * page, 2 * page), 0);
    return base;
}

static void mapping_of_two_addresses_is_told_apart(void **state) {
    (void)state;
    size_t page = hak_os_page_bytes();
    if (unit_is_emulated()) { /* by an emulator's own mappings */
        return;
    }
    char *base = pages_make();
    assert_true(hak_os_is_same_mapping(base, base));
    assert_true(hak_os_is_same_mapping(base + 8, base + page - 1));
    assert_true(hak_os_is_same_mapping(base, base + 4 * page - 1));
    assert_false(hak_os_is_same_mapping(base, base + 4 * page));
    assert_false(hak_os_is_same_mapping(base + 3 * page, base + 5 * page));
    assert_true(hak_os_is_same_mapping(base + 4 * page, base + 4 * page + 1));
    assert_false(hak_os_is_same_mapping(base + 4 * page, base + 5 * page));
    assert_true(hak_os_is_same_mapping(base + 5 * page, base + 6 * page - 1));
    assert_false(hak_os_is_same_mapping(base + 5 * page, base + 6 * page));
    assert_false(hak_os_is_same_mapping(base + 6 * page, base + 6 * page));
    assert_false(hak_os_is_same_mapping(base + page, base));
    assert_false(hak_os_is_readable(base + 6 * page)); /* nothing grew */
    assert_int_equal(mprotect(base + page, page, PROT_READ), 0);
    assert_false(hak_os_is_same_mapping(base, base + page));
    assert_int_equal(munmap(base, 6 * page), 0);
}

static void mapping_of_the_stack_is_one(void **state) {
    char here = 0;
    (void)state;
    assert_true(hak_os_is_same_mapping(&here, &here + 1));
    assert_true(hak_os_is_same_mapping(&here, getenv("PATH"))); /* far up */
}

static bool is_told(void) {
    const char *version = gnu_get_libc_version();
    return strtoul(version, NULL, 10) > 2 || strtoul(version + 2, NULL, 10) >= 35;
}

static void what_is_loaded_is_told_from_what_is_not(void **state) {
    (void)state;
    static const char constant[] = "constant";
    size_t page = hak_os_page_bytes();
    void *base = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(hak_libc_is_loaded((uintptr_t)what_is_loaded_is_told_from_what_is_not));
    assert_true(hak_libc_is_loaded((uintptr_t)constant));
    assert_true(hak_libc_is_loaded((uintptr_t)gnu_get_libc_version));
    assert_int_equal(!hak_libc_is_loaded((uintptr_t)base), is_told());
    assert_int_equal(!hak_libc_is_loaded((uintptr_t)&page), is_told());
    assert_int_equal(!hak_libc_is_loaded(4096), is_told());
    assert_int_equal(!hak_libc_is_loaded(UINTPTR_MAX), is_told());
    assert_int_equal(munmap(base, page), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mapping_of_two_addresses_is_told_apart),
    cmocka_unit_test(mapping_of_the_stack_is_one),
    cmocka_unit_test(what_is_loaded_is_told_from_what_is_not),
};

UNIT_MAIN(tests)
