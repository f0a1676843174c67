/* SPDX-License-Identifier: MIT
 *
 * Stacks by frame pointers, and the stack of a fatal report. */
#include "base/bits.h"
#include "double/os_fault.h"
#include "guard/guard.h"
#include "guard/stack.h"
#include "os/os.h"
#include "unit/fatal.h"
#include "unit/guard_maps.h"

#include <sys/mman.h>

enum { FRAMES = 40, CODE = 0x10000 };

typedef struct frame {
    _Alignas(16) uintptr_t next;
    uintptr_t address;
} frame_t;

static _Alignas(65536) frame_t frames[FRAMES]; /* in one mapping */

/* Each calls the one before; the last one begins the thread. */
static void frames_reset(void) {
    for (unsigned i = 0; i < FRAMES; i++) {
        frames[i].next = i + 1 < FRAMES ? (uintptr_t)&frames[i + 1] : 0;
        frames[i].address = CODE + i;
    }
}

static unsigned walk(const void *frame, unsigned most) {
    uintptr_t addresses[FRAMES + 1] = {0};
    unsigned count = hak_guard_stack(frame, frame, false, addresses, most);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(addresses[i], CODE + i);
    }
    return count;
}

static void stack_ends_with_the_first_frame_or_the_bound(void **state) {
    (void)state;
    frames_reset();
    assert_int_equal(walk(frames, FRAMES + 1), FRAMES);
    assert_int_equal(walk(frames, 16), 16);
    assert_int_equal(walk(frames, 1), 1);
    assert_int_equal(walk(frames, 0), 0);
}

static void stack_ends_where_no_frame_can_be(void **state) {
    (void)state;
    char *hole = hak_os_reserve(hak_os_page_bytes(), hak_os_page_bytes());
    uintptr_t nexts[] = {
        0,
        8,
        (uintptr_t)&frames[5],              /* itself */
        (uintptr_t)&frames[4],              /* down the stack */
        (uintptr_t)&frames[7] + 8,          /* not aligned */
        (uintptr_t)&frames[5] + (2u << 20), /* too far */
        (uintptr_t)hole,                    /* not readable */
        UINTPTR_MAX - 15,
    };
    for (unsigned i = 0; i < UNIT_COUNT(nexts); i++) {
        frames_reset();
        frames[5].next = nexts[i];
        UNIT_EXPECT(walk(frames, FRAMES) == 6, "next %u", i);
    }
    uintptr_t no_code[] = {0, 1, 4095, (uintptr_t)&frames[9], UINTPTR_MAX, 1ull << 48};
    for (unsigned i = 0; i < UNIT_COUNT(no_code); i++) {
        frames_reset();
        frames[5].address = no_code[i];
        UNIT_EXPECT(walk(frames, FRAMES) == 5, "address %u", i);
    }
    assert_int_equal(walk(NULL, FRAMES), 0);
    assert_int_equal(walk((const char *)frames + 8, FRAMES), 0);
    assert_int_equal(walk(hole, FRAMES), 0);
    assert_true(hak_os_unmap(hole, hak_os_page_bytes()));
}

/* Two OS pages of stack with two frames each, and right above it another mapping, with a frame. */
static frame_t *stack_make(size_t page) {
    char *base = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_ptr_equal(mmap(base + 2 * page, page, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     base + 2 * page);
    frame_t *at[] = {(frame_t *)base, (frame_t *)(base + 16), (frame_t *)(base + page),
                     (frame_t *)(base + 2 * page - 16), (frame_t *)(base + 2 * page)};
    for (unsigned i = 0; i < UNIT_COUNT(at); i++) {
        at[i]->next = i + 1 < UNIT_COUNT(at) ? (uintptr_t)at[i + 1] : 0;
        at[i]->address = CODE + i;
    }
    return at[0];
}

static void stack_stays_in_its_mapping(void **state) {
    (void)state;
    size_t page = hak_os_page_bytes();
    uintptr_t found[FRAMES];
    if (unit_is_emulated()) { /* by an emulator's own mappings */
        return;
    }
    frame_t *stack = stack_make(page);
    char *other = (char *)stack + 2 * page;
    assert_int_equal(walk(stack, FRAMES), 4);
    assert_int_equal(hak_guard_stack(stack, stack, true, found, FRAMES), 4);
    assert_int_equal(hak_guard_stack(stack, stack + 1, true, found, FRAMES), 3);
    assert_int_equal(hak_guard_stack(stack, other, true, found, FRAMES), 0);
    assert_int_equal(hak_guard_stack(other, other, true, found, FRAMES), 1);
    assert_int_equal(hak_guard_stack((char *)stack + page, stack, true, found, FRAMES), 0);
    assert_int_equal(hak_guard_stack(NULL, stack, true, found, FRAMES), 0);
    assert_int_equal(munmap(stack, 3 * page), 0);
}

#if defined(__x86_64__)
/* Where the archive has all of ours. */
__attribute__((section("hak_text"), used, noinline)) static void own_code(void) {
    __asm__ volatile("");
}

/* What a report finds of a return address whose call, through a register, has its last byte in the
 * next OS page, of which the file says these rights. */
static unsigned found_across(const char *rights) {
    static char text[160];
    size_t page = hak_os_page_bytes();
    unsigned char *code = hak_os_map(2 * page, page);
    uintptr_t found[1] = {0};
    snprintf(text, sizeof text, "%lx-%lx r-xp 00000000 00:00 0 \n%lx-%lx %s 00000000 00:00 0 \n",
             (uintptr_t)code, (uintptr_t)code + page, (uintptr_t)code + page,
             (uintptr_t)code + 2 * page, rights);
    memcpy(code + page - 1, "\xff\xd0", 2);
    memset(frames, 0, sizeof frames);
    frames[0].address = (uintptr_t)own_code;
    frames[1].address = (uintptr_t)code + page + 1;
    unit_maps = text;
    hak_os_fault_files(unit_maps_serve);
    unsigned count = hak_guard_stack(frames, frames, true, found, 1);
    hak_os_fault_files(NULL);
    assert_true(count == 0 || found[0] == frames[1].address);
    assert_true(hak_os_unmap(code, 2 * page));
    return count;
}

static void code_that_ends_in_another_mapping_is_looked_up_there(void **state) {
    (void)state;
    if (HAK_AUDIT) {
        skip(); /* frame pointers lead out of the library */
    }
    assert_int_equal(found_across("r-xp"), 1);
    assert_int_equal(found_across("rw-s"), 0);
}
#endif

static void trace_of_this_test_names_its_program(void **state) {
    (void)state;
    unit_fatal_begin();
    hak_guard_trace(HAK_FRAME());
    hak_check_sink = unit_fatal.saved;
    UNIT_EXPECT(strstr(unit_fatal.line, "hakmem:     #0 0x") != NULL, "%s", unit_fatal.line);
    UNIT_EXPECT(strchr(unit_fatal.line, '/') != NULL, "%s", unit_fatal.line);
}

static void fatal_report_with_a_trace_has_more_lines(void **state) {
    (void)state;
    unit_fatal_begin();
    hak_check_sink.trace = hak_guard_trace;
    if (setjmp(unit_fatal.back) == 0) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, (void *)0x1230, NULL);
    }
    hak_check_sink = unit_fatal.saved;
    assert_true(unit_fatal.is_fatal);
    UNIT_EXPECT(strstr(unit_fatal.line, "hakmem: double free: 0x1230\nhakmem:     #0 0x") != NULL,
                "%s", unit_fatal.line);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stack_ends_with_the_first_frame_or_the_bound),
    cmocka_unit_test(stack_ends_where_no_frame_can_be),
    cmocka_unit_test(stack_stays_in_its_mapping),
#if defined(__x86_64__)
    cmocka_unit_test(code_that_ends_in_another_mapping_is_looked_up_there),
#endif
    cmocka_unit_test(trace_of_this_test_names_its_program),
    cmocka_unit_test(fatal_report_with_a_trace_has_more_lines),
};

UNIT_MAIN(tests)
