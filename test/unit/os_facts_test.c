/* SPDX-License-Identifier: MIT
 *
 * Services of os.h beside mappings and threads: facts, environment, readability, small calls. */
#include "unit/os.h"

extern char **environ;

UNIT_TEST(facts_equal_what_libc_says) {
    cpu_set_t set;
    hak_os_init();
    hak_os_init();
    assert_int_equal(hak_os_page_bytes(), sysconf(_SC_PAGESIZE));
    assert_false(hak_os_is_secure());
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(hak_os_cpu_count(), CPU_COUNT(&set));
    assert_int_equal(hak_os_thread_id(), syscall(SYS_gettid));
    assert_int_equal(hak_os_data_end(), (uintptr_t)sbrk(0));
}

UNIT_TEST(clock_never_goes_back) {
    uint64_t before = hak_os_now_ns(), now = before;
    for (unsigned i = 0; now == before || i < 1000; i++) { /* and goes on */
        assert_true(hak_os_now_ns() >= now);
        now = hak_os_now_ns();
    }
}

UNIT_TEST(random_of_two_calls_differs) {
    unsigned char a[32] = {0}, b[32] = {0};
    hak_os_random(a, sizeof a);
    hak_os_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
}

UNIT_TEST(readable_tells_mapped_from_not) {
    size_t page = hak_os_page_bytes();
    int on_stack[4] = {0};
    static const char constant[16] = "constant";
    assert_true(hak_os_is_readable(on_stack));
    assert_true(hak_os_is_readable(constant));
    assert_false(hak_os_is_readable(NULL));
    assert_false(hak_os_is_readable((void *)4096));
    assert_false(hak_os_is_readable((void *)0xffff800000000000ull));
    assert_false(hak_os_is_readable((void *)0x8000000000000000ull));
    char *base = hak_os_map(2 * page, page);
    assert_true(hak_os_unmap(base + page, page));
    assert_true(hak_os_is_readable(base + page - 8));
    assert_false(hak_os_is_readable(base + page));
    assert_true(hak_os_unmap(base, page));
    assert_false(hak_os_is_readable(base));
}

UNIT_TEST(env_set_value_is_copied) {
    char text[64];
    setenv("HAK_UNIT_VALUE", "some:value,other=1", 1);
    setenv("HAK_UNIT_VALUE_LONGER", "wrong", 1);
    assert_true(hak_os_env("HAK_UNIT_VALUE", text, sizeof text));
    assert_string_equal(text, "some:value,other=1");
    setenv("HAK_UNIT_VALUE", "", 1);
    assert_true(hak_os_env("HAK_UNIT_VALUE", text, sizeof text));
    assert_string_equal(text, "");
    unsetenv("HAK_UNIT_VALUE");
    assert_false(hak_os_env("HAK_UNIT_VALUE", text, sizeof text));
    assert_false(hak_os_env("HAK_UNIT_VALU", text, sizeof text));
}

UNIT_TEST(env_value_longer_than_the_buffer_is_cut) {
    char text[8] = "#######";
    setenv("HAK_UNIT_VALUE", "0123456789", 1);
    assert_true(hak_os_env("HAK_UNIT_VALUE", text, 5));
    assert_string_equal(text, "0123");
    assert_memory_equal(text + 5, "##", 2);
    assert_true(hak_os_env("HAK_UNIT_VALUE", text, 1));
    assert_string_equal(text, "");
}

/* Before libc is initialised there is no `environ`: the kernel's copy serves. */
UNIT_TEST(env_before_libc_is_read_from_the_kernel) {
    char text[64];
    if (getenv("HAK_UNIT_EARLY") == NULL) {
        print_message("HAK_UNIT_EARLY is not set: run by ctest\n");
        skip();
    }
    char **saved = environ;
    environ = NULL;
    bool is_found = hak_os_env("HAK_UNIT_EARLY", text, sizeof text);
    bool is_absent_found = hak_os_env("HAK_UNIT_ABSENT", text + 32, 16);
    environ = saved;
    assert_true(is_found);
    assert_string_equal(text, "from-the-start");
    assert_false(is_absent_found);
}

/* What is read of an environment ends in the middle of the variable's value. */
static size_t serve_environment(const char *path, char *buffer, size_t capacity) {
    static const char last[] = "\0HAK_UNIT_CUT=64m";
    assert_string_equal(path, "/proc/self/environ");
    memset(buffer, 'x', capacity);
    memcpy(buffer + capacity - (sizeof last - 2), last, sizeof last - 2);
    return capacity + 100;
}

UNIT_TEST(env_before_libc_is_no_half_value) {
    char text[64];
    char **saved = environ;
    environ = NULL;
    hak_os_set_env(NULL);
    hak_os_fault_files(serve_environment);
    bool is_found = hak_os_env("HAK_UNIT_CUT", text, sizeof text);
    hak_os_fault_files(NULL);
    environ = saved;
    assert_false(is_found);
}

UNIT_TEST(read_file_gives_the_head) {
    char text[17] = {0};
    assert_int_equal(hak_os_read_file("/proc/self/status", text, 5), 5);
    assert_string_equal(text, "Name:");
    assert_int_equal(hak_os_read_file("/dev/null", text, 5), 0);
    assert_int_equal(hak_os_read_file("/dev/zero", text, 16), 16);
    assert_int_equal(hak_os_read_file("/no/such/file", text, 16), 0);
}

UNIT_TEST(write_to_a_pipe_arrives_whole) {
    int ends[2];
    char text[32] = {0};
    assert_int_equal(pipe(ends), 0);
    hak_os_write(ends[1], "one line\n", 9);
    assert_int_equal(read(ends[0], text, sizeof text), 9);
    assert_string_equal(text, "one line\n");
    close(ends[0]);
    close(ends[1]);
    hak_os_write(ends[1], "nowhere", 7); /* a closed descriptor: dropped, no hang */
}
