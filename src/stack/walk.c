/* SPDX-License-Identifier: MIT
 *
 * The walk: rows where there are some, else frame pointers. A register or a stack word may hold any
 * value, even the address of a mapping that must not be touched: a device, or a range whose faults
 * the program serves itself. So only words in the mapping of the stack are read. */
#include "stack/stack.h"

#include "base/bits.h"
#include "os/cpu.h"
#include "os/optional.h"
#include "stack/row.h"

enum {
    WALK_OWN_MOST = 64,       /* functions of the library, which are left out */
    WALK_GAP_BYTES = 1 << 20, /* from a stack pointer to a frame, where only frames are known */
    WALK_LEAST_CODE = 4096,   /* lower addresses are no code */
    WALK_ADDRESS_BITS = 48,
    WALK_WORD = sizeof(uintptr_t),
    WALK_PAIR = 2 * WALK_WORD, /* frame pointer and return address */
};

typedef struct walk {
    hak_stack_at_t at;
    uintptr_t low, high; /* known to be readable: whole OS pages */
    bool is_sure;        /* rows alone led here: the function is loaded */
    uint32_t table_left; /* bytes of unwind tables that may still be read */
} walk_t;

static uintptr_t page_of(uintptr_t at) {
    return hak_align_down(at, hak_os_page_bytes());
}

/* At once up to where the thread's own stack begins: one system call for most walks. */
static void stack_extend(walk_t *walk) {
    uintptr_t end = hak_os_stack_end(walk->low), last = end - hak_os_page_bytes();
    if (end > walk->high && hak_os_is_same_mapping((const void *)walk->low, (const void *)last)) {
        walk->high = end;
    }
}

/* Whether all words from `at` on lie in the mapping of the stack, not below `low`. Of a stack of
 * the program's own making, a frame pointer that no row vouches for may only lead through the OS
 * page where the walk began: behind it another such stack may lie, and be unmapped at any time. */
static bool is_readable(walk_t *walk, uintptr_t at, size_t bytes) {
    uintptr_t last = page_of(at + bytes - 1);
    if (at % WALK_WORD != 0 || at < walk->low || at + bytes < at) {
        return false;
    }
    if (last >= walk->high) {
        stack_extend(walk);
    }
    if (last >= walk->high && walk->is_sure) { /* of frames in use, if the rows are right */
        uintptr_t known = walk->high - hak_os_page_bytes(); /* of the mapping already */
        if (!hak_os_is_same_mapping((const void *)known, (const void *)last) ||
            !hak_os_is_readable((const void *)last)) {
            return false;
        }
        walk->high = last + hak_os_page_bytes();
    }
    return last < walk->high;
}

static uintptr_t word_at(uintptr_t at) {
    return *(const uintptr_t *)at;
}

/* Begins on the stack of a stack pointer. Usually without a system call: the walk itself lies in
 * that OS page, or in the one below, whose next is asked for when it is read. */
static bool stack_enter(walk_t *walk) {
    uintptr_t own = page_of((uintptr_t)walk), page = page_of(walk->at.stack);
    bool is_own = page - own <= hak_os_page_bytes();
    walk->low = is_own ? own : page;
    walk->high = walk->low + hak_os_page_bytes();
    return is_own || hak_os_is_readable((const void *)page);
}

/* Whether it may be an address of code: in the user range, and not in the stack. */
static bool may_be_code(const walk_t *walk, uintptr_t address) {
    return address >= WALK_LEAST_CODE && address >> WALK_ADDRESS_BITS == 0 &&
           (address < walk->low || address >= walk->high);
}

/* Goes on with a caller on the same stack. */
static bool walk_to(walk_t *walk, uintptr_t stack, uintptr_t code, uintptr_t frame) {
    uintptr_t before = walk->at.stack;
    bool is_leaf = walk->at.is_exact && stack == before; /* aarch64 */
    walk->at = (hak_stack_at_t){.code = hak_cpu_unsigned(code), .stack = stack, .frame = frame};
    return (stack > before || is_leaf) && may_be_code(walk, walk->at.code);
}

static bool step_by_frame(walk_t *walk) {
    uintptr_t frame = walk->at.frame;
    walk->is_sure = false;
    return frame - walk->at.stack <= WALK_GAP_BYTES && frame % WALK_PAIR == 0 &&
           is_readable(walk, frame, WALK_PAIR) &&
           walk_to(walk, frame + WALK_PAIR, word_at(frame + WALK_WORD), word_at(frame));
}

/* The kernel's record of the registers lies at the stack pointer. */
static bool step_by_signal(walk_t *walk) {
    uintptr_t record = walk->at.stack;
    if (!is_readable(walk, record, hak_os_signal_bytes)) {
        return false;
    }
    hak_os_registers_t saved = hak_os_signal_registers(record);
    walk->at = (hak_stack_at_t){.code = saved.code,
                                .stack = saved.stack,
                                .frame = saved.frame,
                                .link = saved.link,
                                .is_exact = true};
    bool is_same = saved.stack > record && saved.stack < walk->high;
    return (is_same || stack_enter(walk)) && may_be_code(walk, saved.code);
}

/* The CFA; false: not readable. */
static bool find_cfa(walk_t *walk, const hak_row_t *row, uintptr_t *cfa) {
    uintptr_t offset = (uintptr_t)(intptr_t)row->cfa * WALK_WORD;
    switch (row->kind) {
    case HAK_ROW_STACK:
        *cfa = walk->at.stack + offset;
        return true;
    case HAK_ROW_FRAME:
        *cfa = walk->at.frame + offset;
        return true;
    case HAK_ROW_PLT:
        *cfa = walk->at.stack + (walk->at.code % 16 >= (uintptr_t)row->cfa ? WALK_PAIR : WALK_WORD);
        return true;
    default:
        if (!is_readable(walk, walk->at.frame + offset, WALK_WORD)) {
            return false;
        }
        *cfa = word_at(walk->at.frame + offset);
        return true;
    }
}

/* A register that the function saved, else `kept`. */
static bool find_saved(walk_t *walk, uintptr_t cfa, int32_t words, uintptr_t *kept) {
    uintptr_t at = cfa + (uintptr_t)(intptr_t)words * WALK_WORD;
    if (words != 0) {
        if (!is_readable(walk, at, WALK_WORD)) {
            return false;
        }
        *kept = word_at(at);
    }
    return true;
}

static bool step_by_row(walk_t *walk, const hak_row_t *row) {
    uintptr_t cfa, frame = walk->at.frame, link = walk->at.is_exact ? walk->at.link : 0;
    if (!find_cfa(walk, row, &cfa) || !find_saved(walk, cfa, row->link, &link)) {
        return false;
    }
    bool is_at_frame = row->kind == HAK_ROW_INDIRECT;
    return find_saved(walk, is_at_frame ? frame : cfa, row->frame, &frame) &&
           (!is_at_frame || is_readable(walk, frame, WALK_WORD)) &&
           walk_to(walk, cfa, link, is_at_frame ? word_at(frame) : frame);
}

/* false: that was the last function. */
static bool walk_step(walk_t *walk) {
    /* Behind a call that does not return another function may begin. */
    hak_row_t row =
        hak_row_find(walk->at.code - !walk->at.is_exact, walk->is_sure, &walk->table_left);
    if (row.kind == HAK_ROW_NONE && walk->is_sure) {
        row = hak_row_of_return(walk->at.code);
    }
    switch (row.kind) {
    case HAK_ROW_END:
        return false;
    case HAK_ROW_NONE:
        return step_by_frame(walk);
    case HAK_ROW_SIGNAL:
        return step_by_signal(walk);
    default:
        return step_by_row(walk, &row);
    }
}

unsigned hak_stack_walk_from(const hak_stack_at_t *at, uintptr_t *addresses, unsigned most) {
    walk_t walk = {.at = *at, .is_sure = true, .table_left = HAK_ROW_WALK_BYTES};
    unsigned count = 0, left = most + WALK_OWN_MOST;
    if (!may_be_code(&walk, walk.at.code) || !stack_enter(&walk)) {
        return 0;
    }
    while (count < most && left-- > 0 && walk_step(&walk) && (walk.is_sure || !at->ends_unsure)) {
        if (!hak_os_is_own_code(walk.at.code)) {
            addresses[count++] = walk.at.code;
        }
    }
    return count;
}

unsigned hak_stack_walk(uintptr_t *addresses, unsigned most) {
    hak_stack_at_t here = {.is_exact = true};
    hak_cpu_registers(&here.code, &here.stack, &here.frame);
    return hak_stack_walk_from(&here, addresses, most);
}
