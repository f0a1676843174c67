/* SPDX-License-Identifier: MIT
 *
 * CPUs that a process came to use after its start: it was started on one, then might use more. */
#include "unit/cpus.h"

static void process_widened_to_two_cpus_has_the_budget_of_two(void **state) {
    (void)state;
    int cpu[CPU_SETSIZE];
    if (!widen(cpu)) {
        print_message("one CPU, or the C library does not tell which\n");
        skip();
    }
    run_on_both(cpu);
    assert_int_equal(hak_os_cpu_count(), 2);
    assert_int_equal(hak_budget_bytes(), 2 * CACHE_BYTES);
}

static void cpus_that_threads_run_on_have_an_owner_each(void **state) {
    (void)state;
    unsigned before = hak_os_cpu_count();
    assert_int_equal(count_homes(CPUS, true), CPUS);
    assert_int_equal(hak_os_cpu_count(), before + CPUS);
    assert_int_equal(hak_budget_bytes(), QUOTA * CACHE_BYTES);
}

static void cpu_known_already_or_not_told_adds_none(void **state) {
    (void)state;
    static const uint32_t cpu[] = {UINT32_MAX, UINT32_MAX - 1, 1u << 13, CPUS_FIRST};
    unsigned before;
    hak_os_fault_run_on(CPUS_FIRST);
    before = hak_os_cpu_count();
    for (unsigned i = 0; i < UNIT_COUNT(cpu); i++) {
        hak_os_fault_run_on(cpu[i]);
        assert_int_equal(hak_os_cpu_count(), before);
    }
    hak_os_init();
    assert_true(hak_os_cpu_count() >= before);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(process_widened_to_two_cpus_has_the_budget_of_two),
    cmocka_unit_test(cpus_that_threads_run_on_have_an_owner_each),
    cmocka_unit_test(cpu_known_already_or_not_told_adds_none),
};

int main(int argc, char **argv) {
    (void)argc;
    unit_cpus_begin(argv);
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
