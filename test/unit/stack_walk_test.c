/* SPDX-License-Identifier: MIT
 *
 * Walks by frame pointers over stacks of the test's making, whose code is nowhere, so that it has
 * no rows. stack_chain_test.c walks real ones. */
#include "os/os.h"
#include "stack/stack.h"
#include "unit/unit.h"

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

/* From a function whose stack pointer and frame pointer these are. */
static unsigned walk_between(const void *stack, const void *frame, unsigned most) {
    uintptr_t addresses[FRAMES + 1] = {0};
    hak_stack_at_t at = {.code = CODE - 1, .stack = (uintptr_t)stack, .frame = (uintptr_t)frame};
    unsigned count = hak_stack_walk_from(&at, addresses, most);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(addresses[i], ((const frame_t *)frame)->address + i);
    }
    return count;
}

static unsigned walk(const void *frame, unsigned most) {
    return walk_between(frame, frame, most);
}

UNIT_TEST(walk_ends_with_the_first_frame_or_the_bound) {
    frames_reset();
    assert_int_equal(walk(frames, FRAMES + 1), FRAMES);
    assert_int_equal(walk(frames, 16), 16);
    assert_int_equal(walk(frames, 1), 1);
    assert_int_equal(walk(frames, 0), 0);
}

/* STACK-2: loops end, too. */
UNIT_TEST(walk_ends_where_no_frame_can_be) {
    char *hole = hak_os_reserve(hak_os_page_bytes(), hak_os_page_bytes());
    uintptr_t nexts[] = {0,
                         8,
                         (uintptr_t)&frames[5],              /* itself */
                         (uintptr_t)&frames[4],              /* down the stack */
                         (uintptr_t)&frames[7] + 8,          /* not aligned */
                         (uintptr_t)&frames[5] + (2u << 20), /* too far */
                         (uintptr_t)hole,                    /* not readable */
                         UINTPTR_MAX - 15};
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
    assert_int_equal(walk_between(frames, NULL, FRAMES), 0);
    assert_int_equal(walk_between(NULL, frames, FRAMES), 0);
    assert_int_equal(walk_between(&frames[1], frames, FRAMES), 0);
    assert_int_equal(walk((const char *)frames + 8, FRAMES), 0);
    assert_int_equal(walk(hole, FRAMES), 0);
    assert_true(hak_os_unmap(hole, hak_os_page_bytes()));
}

UNIT_TEST(walk_begins_nowhere_but_in_code) {
    uintptr_t addresses[FRAMES], none[] = {0, 4095, 1ull << 48, UINTPTR_MAX};
    frames_reset();
    for (unsigned i = 0; i < UNIT_COUNT(none); i++) {
        hak_stack_at_t at = {
            .code = none[i], .stack = (uintptr_t)frames, .frame = (uintptr_t)frames};
        UNIT_EXPECT(hak_stack_walk_from(&at, addresses, FRAMES) == 0, "code %u", i);
    }
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

/* STACK-1. Without rows it stays in the OS page where it began: other stacks may share the mapping,
 * and be unmapped meanwhile. */
UNIT_TEST(walk_stays_in_the_part_of_the_mapping_that_is_surely_its_stack) {
    size_t page = hak_os_page_bytes();
    if (unit_is_emulated()) { /* by an emulator's own mappings */
        return;
    }
    frame_t *stack = stack_make(page);
    char *other = (char *)stack + 2 * page;
    assert_int_equal(walk(stack, FRAMES), 2);
    assert_int_equal(walk_between(stack, stack + 1, FRAMES), 1);
    assert_int_equal(walk((char *)stack + page, FRAMES), 2);
    assert_int_equal(walk_between(stack, other, FRAMES), 0);
    assert_int_equal(walk(other, FRAMES), 1);
    assert_int_equal(walk_between((char *)stack + page, stack, FRAMES), 0);
    assert_int_equal(munmap(stack, 3 * page), 0);
}
