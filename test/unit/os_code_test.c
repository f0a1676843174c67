/* SPDX-License-Identifier: MIT
 *
 * What an address is in: the program and its libraries, the mapping of another address. */
#include "os/libc.h"
#include "unit/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

UNIT_TEST(mapping_of_two_addresses_is_told_apart) {
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

/* In a process to which the kernel answers `call` so. */
static int told_apart_under(unsigned call, unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = UNIT_COUNT(code), .filter = code};
    size_t page = hak_os_page_bytes();
    char *base = pages_make();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return 0;
    }
    return hak_os_is_same_mapping(base, base + 4 * page) ||
                   hak_os_is_same_mapping(base + 5 * page, base + 6 * page) ||
                   hak_os_is_one_mapping(base, 6 * page) || hak_os_is_readable(base + 6 * page)
               ? 1
               : 0;
}

/* Else a stack walk reads into holes. */
UNIT_TEST(answer_of_a_filter_is_no_mapping) {
    static const unsigned calls[] = {SYS_mremap, SYS_futex};
    static const unsigned errors[] = {EPERM, ENOSYS, ENOMEM, EAGAIN, EINVAL, EACCES, EFAULT};
    for (unsigned i = 0; i < UNIT_COUNT(calls) * UNIT_COUNT(errors) && !unit_is_emulated(); i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            _exit(told_apart_under(calls[i % 2], errors[i / 2]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        UNIT_EXPECT(status == 0, "call %u, error %u", calls[i % 2], errors[i / 2]);
    }
}

UNIT_TEST(mapping_of_the_stack_is_one) {
    char here = 0;
    assert_true(hak_os_is_same_mapping(&here, &here + 1));
    assert_true(hak_os_is_same_mapping(&here, getenv("PATH"))); /* far up */
}

static bool is_told(void) {
    const char *version = gnu_get_libc_version();
    return strtoul(version, NULL, 10) > 2 || strtoul(version + 2, NULL, 10) >= 35;
}

static bool has_object(const void *address) {
    uintptr_t start = 0;
    bool is_found = hak_libc_find_start((uintptr_t)address, &start);
    return is_found && start <= (uintptr_t)address && memcmp((void *)start, "\177ELF", 4) == 0;
}

UNIT_TEST(object_of_an_address_begins_with_its_header) {
    static const char constant[] = "constant";
    size_t page = hak_os_page_bytes();
    uintptr_t start;
    void *base = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(has_object((const void *)object_of_an_address_begins_with_its_header),
                     is_told());
    assert_int_equal(has_object(constant), is_told());
    assert_int_equal(has_object((const void *)gnu_get_libc_version), is_told());
    assert_false(hak_libc_find_start((uintptr_t)base, &start));
    assert_false(hak_libc_find_start((uintptr_t)&page, &start));
    assert_false(hak_libc_find_start(4096, &start));
    assert_false(hak_libc_find_start(UINTPTR_MAX, &start));
    assert_int_equal(munmap(base, page), 0);
}

UNIT_TEST(tables_of_code_lie_in_its_object) {
    hak_os_unwind_t tables;
    uintptr_t code = (uintptr_t)tables_of_code_lie_in_its_object;
    assert_true(hak_os_unwind_tables(code, true, &tables)); /* of the program, known everywhere */
    assert_true(tables.from <= tables.header && tables.header < tables.to);
    assert_false(hak_os_unwind_tables((uintptr_t)&tables, true, &tables));
    assert_false(hak_os_unwind_tables(4096, true, &tables));
    assert_int_equal(hak_os_unwind_tables((uintptr_t)gnu_get_libc_version, true, &tables),
                     is_told());
}

/* The C library's return from handlers, found where a handler returns to. */
static void *handler_returns_to;

static void on_signal(int number) {
    (void)number;
    handler_returns_to = __builtin_return_address(0);
}

UNIT_TEST(return_from_a_handler_is_told_from_other_code) {
    assert_false(hak_os_is_signal_return((uintptr_t)return_from_a_handler_is_told_from_other_code));
    assert_false(hak_os_is_signal_return(4096));
    if (unit_is_emulated() || UNIT_IS_TSAN) { /* handlers are called by others */
        return;
    }
    signal(SIGUSR2, on_signal);
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_DFL);
    assert_true(hak_os_is_signal_return((uintptr_t)handler_returns_to));
    assert_true(hak_os_is_signal_return((uintptr_t)handler_returns_to - 1));
    assert_false(hak_os_is_signal_return((uintptr_t)handler_returns_to + 1));
}

static void *mapping_of_thread(void *result) {
    char here = 0;
    *(bool *)result = hak_os_is_same_mapping(&here, getenv("PATH"));
    return NULL;
}

/* What lies above the initial stack is not above that of every thread. */
UNIT_TEST(mapping_of_a_threads_stack_ends_below_the_initial_one) {
    if (unit_is_emulated()) {
        skip();
    }
    bool is_same = true;
    unit_pthread_create_and_join(mapping_of_thread, &is_same);
    assert_false(is_same);
}

/* --- what the file of an object imports ------------------------------------------------------- */

static unsigned import_count, object_count;

static bool import_count_up(const char *name, bool is_object) {
    (void)name;
    object_count += is_object;
    import_count += !is_object;
    return true;
}

static bool import_is_not_free(const char *name, bool is_object) {
    return is_object || strcmp(name, "free") != 0;
}

/* The file of cmocka, which allocates; NULL: it is a part of the program. */
static const char *imports_file(void) {
    static Dl_info info;
    const void *function = dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
    bool is_library = function != NULL && dladdr(function, &info) != 0 &&
                      strstr(info.dli_fname, "cmocka") != NULL;
    return is_library ? info.dli_fname : NULL;
}

UNIT_TEST(imports_of_a_library_are_told_by_its_file) {
    const char *file = imports_file();
    if (file == NULL) {
        skip();
    }
    import_count = object_count = 0;
    assert_true(hak_os_visit_imports(file, import_count_up));
    assert_true(import_count > 10 && object_count >= 1);
    assert_false(hak_os_visit_imports(file, import_is_not_free));
    assert_false(hak_os_visit_imports("/dev/null", import_count_up));
    assert_false(hak_os_visit_imports("/nowhere/nothing", import_count_up));
    assert_false(hak_os_visit_imports("/", import_count_up));
}

/* Cut off anywhere, or with other bytes in its headers and tables. */
UNIT_TEST(imports_of_a_broken_file_are_not_told_and_harm_nobody) {
    static char bytes[1 << 16];
    char path[] = "/tmp/hakmem_imports_XXXXXX";
    const char *file = imports_file();
    if (file == NULL) {
        skip();
    }
    int whole = open(file, O_RDONLY | O_CLOEXEC), cut = mkstemp(path);
    ssize_t length = read(whole, bytes, sizeof bytes);
    assert_true(whole >= 0 && cut >= 0 && length > 4096);
    assert_int_equal(pwrite(cut, bytes, (size_t)length, 0), length);
    for (size_t at = 0; at < 4096; at++) {
        bytes[at] ^= (char)0xff;
        assert_int_equal(pwrite(cut, bytes + at, 1, (off_t)at), 1);
        (void)hak_os_visit_imports(path, import_count_up);
        bytes[at] ^= (char)0xff;
        assert_int_equal(pwrite(cut, bytes + at, 1, (off_t)at), 1);
    }
    for (off_t end = 4096; end >= 0; end -= 16) {
        assert_int_equal(ftruncate(cut, end), 0);
        assert_false(hak_os_visit_imports(path, import_count_up));
    }
    close(whole);
    close(cut);
    unlink(path);
}
