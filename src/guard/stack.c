/* SPDX-License-Identifier: MIT
 *
 * Return addresses by frame pointers, for malloc and signal handlers: no unwinder, no tables, no
 * locks. Programs built without frame pointers show one frame or a few.
 *
 *   frame       | frame pointer of the caller | return address |     two words; higher: callers
 *
 * A register or a stack word may hold any value, even the address of a mapping that must not be
 * touched: a device, or a range whose faults the program serves itself. So only frames in the
 * mapping of the stack are read, and only code that is known to be code. A collected address may
 * still be no code; reports, which know all mappings, drop it.
 *
 * Our own functions have no frame pointers on x86-64, except where they use HAK_FRAME. From there
 * on the frame pointer is the program's, unless a function in between used the register otherwise.
 * The return address out of the library is the first word above that points behind a call and
 * outside the library. */
#include "guard/stack.h"

#include "base/bits.h"
#include "guard/guard.h"
#include "os/cpu.h"
#include "os/libc.h"
#include "os/optional.h"
#include "span/pagemap.h"

#include <string.h>

enum {
    STACK_GAP_BYTES = 1 << 20, /* between two frames */
    STACK_OWN_WORDS = 96,      /* frames of the library below the program's, at most */
    STACK_LEAST_CODE = 4096,   /* lower addresses are no code */
    STACK_ADDRESS_BITS = 48,
};

/* The state of a walk. Both words of a frame are in one OS page. */
typedef struct stack_walk {
    uintptr_t frame;
    uintptr_t floor, page; /* OS pages: the first, and the highest that is known to be readable */
    bool is_report;
} stack_walk_t;

static uintptr_t stack_page_of(uintptr_t at) {
    return hak_align_down(at, hak_os_page_bytes());
}

/* Whether the address lies in the mapping of the stack; `at` never decreases between calls. */
static bool stack_is_readable(stack_walk_t *walk, uintptr_t at) {
    uintptr_t page = stack_page_of(at);
    if (page > walk->page) {
        if (!hak_os_is_same_mapping((const void *)walk->page, (const void *)page) ||
            !hak_os_is_readable((const void *)page)) {
            return false;
        }
        walk->page = page;
    }
    return page >= walk->floor;
}

static uintptr_t stack_word(uintptr_t at) {
    return *(const uintptr_t *)at;
}

static uintptr_t stack_return(uintptr_t frame) {
    return hak_cpu_unsigned(stack_word(frame + sizeof(uintptr_t)));
}

/* Whether it may be an address of code: in the user range, and not in the stack. */
static bool stack_may_be_code(const stack_walk_t *walk, uintptr_t address) {
    uintptr_t end = walk->page + hak_os_page_bytes();
    return address >= STACK_LEAST_CODE && address >> STACK_ADDRESS_BITS == 0 &&
           (address < walk->floor || address >= end);
}

static bool stack_may_follow(uintptr_t frame, uintptr_t next) {
    return next > frame && next - frame <= STACK_GAP_BYTES && next % 16 == 0;
}

/* false: that was the last frame. */
static bool stack_step(stack_walk_t *walk) {
    uintptr_t next = stack_word(walk->frame);
    if (!stack_may_follow(walk->frame, next) || !stack_is_readable(walk, next)) {
        return false;
    }
    walk->frame = next;
    return true;
}

#if defined(__x86_64__)
enum { STACK_HAS_FRAMES = HAK_AUDIT }; /* in our own functions */

/* Whether the bytes there are data, even if they look like code: blocks, and the stack itself. */
static bool stack_is_data(uintptr_t frame, uintptr_t address) {
    return hak_pagemap_get(hak_pagemap_base(), (const void *)address) != 0 ||
           address - (frame - STACK_GAP_BYTES) < 2u * STACK_GAP_BYTES;
}

static bool stack_is_code_byte(const stack_walk_t *walk, uintptr_t address) {
    bool is_code = hak_libc_is_loaded(address);
    if (walk->is_report) {
        (void)hak_guard_find_code(address, &is_code);
    }
    return is_code;
}

/* Whether 8 bytes there are readable as code; the last may be in another mapping. */
static bool stack_is_code(const stack_walk_t *walk, uintptr_t address) {
    uintptr_t last = address + 7;
    return stack_is_code_byte(walk, address) &&
           (stack_page_of(last) == stack_page_of(address) || stack_is_code_byte(walk, last)) &&
           hak_os_is_readable((const void *)address);
}

/* Whether it is an entry of a procedure linkage table: landing marks, a jump through memory. */
static bool stack_is_stub(const stack_walk_t *walk, uintptr_t address) {
    const unsigned char *at = (const unsigned char *)address;
    if (!stack_is_code(walk, address)) {
        return false;
    }
    at += at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e && at[3] == 0xfa ? 4 : 0;
    at += at[0] == 0xf2 ? 1 : 0;
    return at[0] == 0xff && at[1] == 0x25;
}

/* Whether the address follows a call: of ours, as in the archive; of a stub; or through a register
 * or memory in the forms that compilers use. */
static bool stack_is_call(const stack_walk_t *walk, uintptr_t address) {
    const unsigned char *end = (const unsigned char *)address;
    int32_t distance;
    if (!stack_is_code(walk, address - 8)) {
        return false;
    }
    if (end[-5] == 0xe8) {
        memcpy(&distance, end - 4, sizeof distance);
        uintptr_t target = address + (uintptr_t)(intptr_t)distance;
        return hak_os_is_own_code(target) || stack_is_stub(walk, target);
    }
    return (end[-6] == 0xff && (end[-5] == 0x15 || (end[-5] & 0xf8) == 0x90)) ||
           (end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0) ||
           (end[-3] == 0xff && (end[-2] & 0xf8) == 0x50);
}

/* The program's frame pointer: still in the register where HAK_FRAME was used, or saved by one of
 * our functions between there and the return address at `place`. Other registers that they save may
 * point into the stack, too: a frame that leads to code is preferred. 0: none. */
static uintptr_t stack_program_frame(stack_walk_t *walk, uintptr_t place) {
    uintptr_t found = 0, next = stack_word(walk->frame);
    for (uintptr_t at = place;; next = stack_word(at)) {
        if (stack_may_follow(place, next) && stack_is_readable(walk, next)) {
            uintptr_t address = stack_return(next);
            if (stack_may_be_code(walk, address) && stack_is_code_byte(walk, address)) {
                return next;
            }
            found = found == 0 ? next : found;
        }
        if (at <= walk->frame) {
            return found;
        }
        at -= sizeof(uintptr_t);
    }
}

/* The return address into the program, and its frame in *next, without frame pointers of ours. */
static uintptr_t stack_leave_blindly(stack_walk_t *walk, uintptr_t *next) {
    for (uintptr_t i = 1; i < STACK_OWN_WORDS; i++) {
        uintptr_t place = walk->frame + i * sizeof(uintptr_t);
        if (!stack_is_readable(walk, place)) {
            break;
        }
        uintptr_t address = stack_word(place);
        if (stack_may_be_code(walk, address) && !hak_os_is_own_code(address) &&
            !stack_is_data(walk->frame, address) && stack_is_call(walk, address)) {
            *next = stack_program_frame(walk, place);
            return address;
        }
    }
    *next = 0;
    return 0;
}
#else
enum { STACK_HAS_FRAMES = 1 }; /* in our own functions */

static uintptr_t stack_leave_blindly(stack_walk_t *walk, uintptr_t *next) {
    (void)walk;
    *next = 0;
    return 0;
}
#endif

/* The same; aarch64 and audit builds have frame pointers. */
static uintptr_t stack_leave(stack_walk_t *walk, uintptr_t *next) {
    if (!STACK_HAS_FRAMES) {
        return stack_leave_blindly(walk, next);
    }
    while (hak_os_is_own_code(stack_return(walk->frame))) {
        if (!stack_step(walk)) {
            *next = 0;
            return 0;
        }
    }
    *next = stack_word(walk->frame);
    return stack_return(walk->frame);
}

/* Usually without a system call: the walk itself lies there. */
static bool stack_has_floor(const stack_walk_t *walk) {
    return walk->floor == stack_page_of((uintptr_t)walk) ||
           hak_os_is_readable((const void *)walk->floor);
}

unsigned hak_guard_stack(const void *floor, const void *frame, bool is_report, uintptr_t *addresses,
                         unsigned most) {
    uintptr_t page = stack_page_of((uintptr_t)floor), next;
    stack_walk_t walk = {
        .frame = (uintptr_t)frame, .floor = page, .page = page, .is_report = is_report};
    unsigned count = 0;
    if (walk.frame % 16 != 0 || most == 0 || !stack_has_floor(&walk) ||
        !stack_is_readable(&walk, walk.frame)) {
        return 0;
    }
    if (hak_os_is_own_code(stack_return(walk.frame))) {
        addresses[count] = stack_leave(&walk, &next);
        count += addresses[count] != 0;
        if (next == 0 || !stack_may_follow(walk.frame, next) || !stack_is_readable(&walk, next)) {
            return count;
        }
        walk.frame = next;
    }
    while (count < most) {
        uintptr_t address = stack_return(walk.frame);
        if (!stack_may_be_code(&walk, address)) {
            break;
        }
        addresses[count++] = address;
        if (!stack_step(&walk)) {
            break;
        }
    }
    return count;
}

enum { STACK_TRACE_FRAMES = 32 };

void hak_guard_trace(const void *frame) {
    uintptr_t addresses[STACK_TRACE_FRAMES];
    unsigned count = hak_guard_stack(frame, frame, true, addresses, STACK_TRACE_FRAMES);
    hak_guard_stack_print(addresses, count);
}
