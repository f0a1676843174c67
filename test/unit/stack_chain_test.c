/* SPDX-License-Identifier: MIT
 *
 * Walks of real stacks, of code without frame pointers: each function notes where it returns to,
 * and the walk has to find these addresses in their order, up to the thread's start. */
#include "stack/stack.h"

#include "stack/row.h"
#include "unit/unit.h"

#include <alloca.h>
#include <sys/mman.h>

enum { MOST = 128, RETURNS_MOST = 64 };

static uintptr_t returns[RETURNS_MOST];     /* outermost first */
static unsigned return_count, return_first; /* of this stack: from the first on */

#define ENTER() (returns[return_count++] = (uintptr_t)__builtin_return_address(0))
#define LEAVE() (return_count--)
#define APART __attribute__((noinline))

/* Keeps the call before it from becoming a jump. */
static inline void stay(const void *value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}

/* The noted addresses in the walk, in their order; others, of the C library, may lie between. */
static void walk_and_check(void) {
    uintptr_t found[MOST];
    unsigned count = hak_stack_walk(found, MOST), at = 0;
    UNIT_EXPECT(count > return_count - return_first && count < MOST, "%u of more than %u", count,
                return_count - return_first);
    for (unsigned i = return_count; i-- > return_first; at++) {
        while (at < count && found[at] != returns[i]) {
            at++;
        }
        UNIT_EXPECT(at < count, "return %u of %u, to %#lx, among %u", i, return_count, returns[i],
                    count);
    }
    hak_row_t last = hak_row_find(found[count - 1] - 1, true, &(uint32_t){HAK_ROW_BYTES});
    UNIT_EXPECT(last.kind == HAK_ROW_END, "%#lx has a caller", found[count - 1]);
}

static APART void plain(void) {
    ENTER();
    walk_and_check();
    LEAVE();
    stay(returns);
}

static APART void with_variable_frame(size_t bytes) {
    ENTER();
    char *room = alloca(bytes);
    stay(room);
    plain();
    stay(room);
    LEAVE();
}

/* Its stack is realigned: the CFA is a word in memory. */
static APART void with_aligned_frame(size_t bytes) {
    ENTER();
    _Alignas(128) char room[128];
    stay(room);
    with_variable_frame(bytes);
    stay(room);
    LEAVE();
}

/* The same with a variable frame: all three kinds of pointers. */
static APART void with_both(size_t bytes) {
    ENTER();
    _Alignas(128) char room[128];
    char *more = alloca(bytes);
    stay(room);
    stay(more);
    with_aligned_frame(bytes / 2);
    stay(room);
    LEAVE();
}

static APART void with_large_frame(size_t bytes) {
    ENTER();
    char room[300000];
    stay(room);
    with_both(bytes);
    stay(room);
    LEAVE();
}

/* So many values that all registers are saved, the one of frame pointers, too. */
static APART long with_all_registers(const long *v, size_t bytes) {
    ENTER();
    long a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
    with_large_frame(bytes);
    LEAVE();
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

static APART int compare(const void *left, const void *right) {
    static const long values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ENTER();
    long sum = with_all_registers(values, 1000);
    LEAVE();
    return sum == 204 ? *(const char *)left - *(const char *)right : 0;
}

/* Through the C library, and back by its pointer to a function. */
static APART void chain(void) {
    char two[2] = {2, 1};
    ENTER();
    qsort(two, 2, 1, compare);
    LEAVE();
    assert_int_equal(two[0], 1);
}

UNIT_TEST(chain_without_frame_pointers_is_found_whole) {
    chain();
    chain(); /* by the rows that were kept */
    hak_row_follow(UINT64_MAX);
    chain();
}

/* Code without rows: what CPython's perf trampolines are, which call their fourth argument. */
#if defined(__x86_64__)
static const unsigned char trampolines[][20] = {
    {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3}, /* until 3.14 */
    {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},             /* with a frame pointer */
    {0x48, 0x83, 0xec, 0x78, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x78, 0xc3}};
#else
static const uint32_t trampolines[][5] = {
    {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0}};
#endif

typedef void trampoline_t(void *state, void *frame, int has_failed, void (*evaluate)(void));
static trampoline_t *trampoline; /* the one of this round */

static APART void evaluate(void) {
    ENTER(); /* into the trampoline */
    chain();
    LEAVE();
    stay(returns);
}

static APART void call_trampoline(void) {
    ENTER();
    trampoline(NULL, NULL, 0, evaluate);
    LEAVE();
    stay(returns);
}

UNIT_TEST(chain_through_trampolines_without_rows_is_found_whole) {
    for (unsigned i = 0; i < UNIT_COUNT(trampolines); i++) {
        char *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(code != MAP_FAILED);
        memcpy(code, trampolines[i], sizeof trampolines[i]);
        __builtin___clear_cache(code, code + sizeof trampolines[i]);
        assert_int_equal(mprotect(code, 65536, PROT_READ | PROT_EXEC), 0);
        memcpy(&trampoline, &(char *){code}, sizeof trampoline);
        call_trampoline();
        call_trampoline();
        assert_int_equal(munmap(code, 65536), 0);
    }
}

static void *thread_run(void *unused) {
    return_first = return_count;
    chain();
    return_first = 0;
    return unused;
}

UNIT_TEST(chain_of_a_thread_is_found_up_to_its_start) {
    unit_pthread_create_and_join(thread_run, NULL);
}

static void on_signal(int number) {
    (void)number;
    chain();
}

/* A leaf, interrupted at any instruction: `number` is sent by itself. */
static APART void interrupted(int number) {
    ENTER();
    if (number == SIGILL) {
        __builtin_trap();
    }
    raise(number);
    LEAVE();
}

static sigjmp_buf jump;

static void on_trap(int number) {
    on_signal(number);
    siglongjmp(jump, 1);
}

static void signal_with(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;
    assert_int_equal(sigaction(number, &action, &before), 0);
    unsigned depth = return_count;
    if (sigsetjmp(jump, 1) == 0) {
        interrupted(number);
    }
    return_count = depth;
    assert_int_equal(sigaction(number, &before, NULL), 0);
}

UNIT_TEST(chain_of_a_signal_handler_leads_to_what_it_interrupted) {
    static _Alignas(4096) char room[1 << 20];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, before;
    signal_with(SIGUSR1, on_signal, 0);
    if (unit_is_emulated() || UNIT_IS_TSAN) { /* signals are theirs */
        return;
    }
    signal_with(SIGILL, on_trap, SA_NODEFER);
    assert_int_equal(sigaltstack(&stack, &before), 0);
    signal_with(SIGUSR1, on_signal, SA_ONSTACK);
    signal_with(SIGILL, on_trap, SA_ONSTACK | SA_NODEFER);
    assert_int_equal(sigaltstack(&before, NULL), 0);
}

static int start(int argc, char **argv) {
    (void)argc;
    (void)argv;
    returns[return_count++] = unit_main_returns_to;
    return UNIT_GO_ON;
}

UNIT_START(start)
