/* SPDX-License-Identifier: MIT
 *
 * Rows: runs the programs of a function and of its head up to the instruction. Knows what compilers
 * make of code with or without frame pointers; all else has no row. Each step reads at least a
 * byte, so the length of a record bounds a run. */
#include "stack/cfi.h"

#include "os/cpu.h"
#include "stack/table.h"

enum {
    CFI_SAVED_MOST = 8, /* nested states that a program remembers */
    CFI_PLT_BYTES = 11, /* the expression of a procedure linkage table */
};

/* How a register of the caller is found. */
typedef enum cfi_rule_kind { CFI_SAME, CFI_LOST, CFI_SAVED, CFI_AT_FRAME, CFI_ODD } cfi_rule_kind_t;

typedef struct cfi_rule {
    cfi_rule_kind_t kind;
    int64_t offset; /* bytes from the CFA, or from the frame pointer */
} cfi_rule_t;

typedef struct cfi_state {
    hak_row_kind_t kind;
    int64_t cfa;
    cfi_rule_t frame, link;
} cfi_state_t;

typedef struct cfi_run {
    const hak_function_t *function;
    cfi_state_t now, first; /* after the program of the CIE */
    cfi_state_t saved[CFI_SAVED_MOST];
    unsigned saved_count;
    uintptr_t code; /* the row's */
    bool is_over;
} cfi_run_t;

/* In bytes; what does not fit wraps. */
static int64_t in_units(const cfi_run_t *run, uint64_t count) {
    return (int64_t)(count * (uint64_t)run->function->data_unit);
}

static void run_fail(cfi_run_t *run) {
    run->now.kind = HAK_ROW_NONE;
    run->is_over = true;
}

static void run_set(cfi_run_t *run, uint64_t number, cfi_rule_kind_t kind, int64_t offset) {
    if (number == HAK_CPU_FRAME) {
        run->now.frame = (cfi_rule_t){kind, offset};
    } else if (number == HAK_CPU_LINK) {
        run->now.link = (cfi_rule_t){kind, offset};
    }
}

static void run_restore(cfi_run_t *run, uint64_t number) {
    const cfi_rule_t *rule = number == HAK_CPU_FRAME ? &run->first.frame : &run->first.link;
    run_set(run, number, rule->kind, rule->offset);
}

static void run_cfa(cfi_run_t *run, uint64_t number, int64_t offset) {
    run->now.kind = number == HAK_CPU_STACK   ? HAK_ROW_STACK
                    : number == HAK_CPU_FRAME ? HAK_ROW_FRAME
                                              : HAK_ROW_NONE; /* perhaps only here */
    run->now.cfa = offset;
}

/* The expression of a register plus a constant, perhaps the word there. */
static bool expression_take(hak_reader_t *reader, unsigned *number, int64_t *offset,
                            bool *is_indirect) {
    enum { PLUS_CONSTANT = 0x70, DEREFERENCE = 6 }; /* of the register 0 on */
    uint64_t bytes = hak_take_unsigned(reader);
    if (bytes > reader->end - reader->at) {
        reader->has_failed = true;
        return false;
    }
    hak_reader_t inner = *reader;
    inner.end = reader->at + bytes;
    hak_take_nothing(reader, bytes);
    *number = (unsigned)hak_take_byte(&inner) - PLUS_CONSTANT;
    *offset = hak_take_signed(&inner);
    *is_indirect = inner.at < inner.end && hak_take_byte(&inner) == DEREFERENCE;
    return !inner.has_failed && inner.at == inner.end;
}

/* rsp + 8 + ((rip & 15) >= n) * 8 */
static bool expression_is_plt(hak_reader_t reader, int64_t *from) {
    static const unsigned char wanted[CFI_PLT_BYTES + 1] = {
        CFI_PLT_BYTES, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
    bool is_equal = true;
    for (unsigned i = 0; i <= CFI_PLT_BYTES; i++) {
        uint64_t byte = hak_take_byte(&reader);
        if (wanted[i] == 0) {
            *from = i == 7 ? (int64_t)byte - 0x30 : *from;
        }
        is_equal = is_equal && (byte == wanted[i] || (i == 7 && byte >= 0x30 && byte < 0x40));
    }
    return is_equal && !reader.has_failed && HAK_CPU_STACK == 7;
}

static void run_cfa_expression(cfi_run_t *run, hak_reader_t *reader) {
    unsigned number = 0;
    int64_t offset = 0;
    bool is_indirect = false;
    hak_reader_t copy = *reader;
    if (expression_take(reader, &number, &offset, &is_indirect)) {
        run_cfa(run, number, offset);
        if (is_indirect) {
            run->now.kind = number == HAK_CPU_FRAME ? HAK_ROW_INDIRECT : HAK_ROW_NONE;
        }
    } else {
        run->now.kind = expression_is_plt(copy, &run->now.cfa) ? HAK_ROW_PLT : HAK_ROW_NONE;
    }
}

/* Realigned stacks: the frame pointer is saved where the new one points to. */
static void run_saved_expression(cfi_run_t *run, hak_reader_t *reader, bool is_value) {
    uint64_t saved = hak_take_unsigned(reader);
    unsigned number = 0;
    int64_t offset = 0;
    bool is_indirect = false;
    bool is_known = expression_take(reader, &number, &offset, &is_indirect) && !is_value &&
                    !is_indirect && number == HAK_CPU_FRAME;
    run_set(run, saved, is_known ? CFI_AT_FRAME : CFI_ODD, offset);
}

static void run_advance(cfi_run_t *run, uintptr_t *place, uint64_t units) {
    *place += units * run->function->code_unit;
    run->is_over = run->is_over || *place > run->code;
}

static void run_remember(cfi_run_t *run, bool is_restored) {
    if (is_restored ? run->saved_count == 0 : run->saved_count == CFI_SAVED_MOST) {
        run_fail(run);
    } else if (is_restored) {
        run->now = run->saved[--run->saved_count];
    } else {
        run->saved[run->saved_count++] = run->now;
    }
}

/* Instructions of a register, in the order of their operands. */
static bool run_register(cfi_run_t *run, hak_reader_t *reader, unsigned code) {
    uint64_t number;
    if (code < 5 || (code > 9 && code != 0x11 && code != 0x14 && code != 0x15 && code != 0x2f)) {
        return false;
    }
    number = hak_take_unsigned(reader);
    if (code == 5) { /* offset_extended */
        run_set(run, number, CFI_SAVED, in_units(run, hak_take_unsigned(reader)));
    } else if (code == 6) { /* restore_extended */
        run_restore(run, number);
    } else if (code == 7 || code == 8) { /* undefined, same_value */
        run_set(run, number, code == 7 ? CFI_LOST : CFI_SAME, 0);
    } else if (code == 0x11) { /* offset_extended_sf */
        run_set(run, number, CFI_SAVED, in_units(run, (uint64_t)hak_take_signed(reader)));
    } else if (code == 0x2f) { /* GNU_negative_offset_extended */
        run_set(run, number, CFI_SAVED, in_units(run, 0 - hak_take_unsigned(reader)));
    } else { /* register, val_offset */
        (void)hak_take_unsigned(reader);
        run_set(run, number, CFI_ODD, 0);
    }
    return true;
}

/* Instructions of the CFA. */
static bool run_of_cfa(cfi_run_t *run, hak_reader_t *reader, unsigned code) {
    uint64_t number;
    switch (code) {
    case 0x0c: /* def_cfa */
        number = hak_take_unsigned(reader);
        run_cfa(run, number, (int64_t)hak_take_unsigned(reader));
        return true;
    case 0x0d: /* def_cfa_register */
        run_cfa(run, hak_take_unsigned(reader), run->now.cfa);
        return true;
    case 0x0e: /* def_cfa_offset */
        run->now.cfa = (int64_t)hak_take_unsigned(reader);
        return true;
    case 0x0f: /* def_cfa_expression */
        run_cfa_expression(run, reader);
        return true;
    case 0x12: /* def_cfa_sf */
        number = hak_take_unsigned(reader);
        run_cfa(run, number, in_units(run, (uint64_t)hak_take_signed(reader)));
        return true;
    case 0x13: /* def_cfa_offset_sf */
        run->now.cfa = in_units(run, (uint64_t)hak_take_signed(reader));
        return true;
    default:
        return false;
    }
}

/* All others. */
static void run_other(cfi_run_t *run, hak_reader_t *reader, unsigned code, uintptr_t *place) {
    switch (code) {
    case 0x00: /* nop */
    case 0x2d: /* AARCH64_negate_ra_state: hak_cpu_unsigned strips all */
        break;
    case 0x01: /* set_loc */
        *place = hak_take_pointer(reader, run->function->encoding);
        run_advance(run, place, 0);
        break;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        run_advance(run, place, hak_take(reader, 1u << (code - 2)));
        break;
    case 0x0a: /* remember_state, restore_state */
    case 0x0b:
        run_remember(run, code == 0x0b);
        break;
    case 0x10: /* expression, val_expression */
    case 0x16:
        run_saved_expression(run, reader, code == 0x16);
        break;
    case 0x2e: /* GNU_args_size */
        (void)hak_take_unsigned(reader);
        break;
    default:
        run_fail(run);
    }
}

/* From the function's start up to run->code. */
static void run_program(cfi_run_t *run, hak_reader_t reader) {
    uintptr_t place = run->function->from;
    while (!run->is_over && reader.at < reader.end) {
        unsigned byte = (unsigned)hak_take_byte(&reader), low = byte & 0x3f;
        if (byte >> 6 == 1) {
            run_advance(run, &place, low);
        } else if (byte >> 6 == 2) {
            run_set(run, low, CFI_SAVED, in_units(run, hak_take_unsigned(&reader)));
        } else if (byte >> 6 == 3) {
            run_restore(run, low);
        } else if (!run_register(run, &reader, low) && !run_of_cfa(run, &reader, low)) {
            run_other(run, &reader, low, &place);
        }
    }
    if (reader.has_failed) {
        run_fail(run);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

/* In words; false: it does not fit, or is none. */
static bool words_of(int64_t bytes, int32_t *words) {
    *words = (int32_t)(bytes / 8);
    return bytes % 8 == 0 && bytes / 8 < 1 << (HAK_ROW_BITS - 1) &&
           bytes / 8 >= -(1 << (HAK_ROW_BITS - 1));
}

static hak_row_t row_of(const cfi_state_t *state) {
    hak_row_t row = {.kind = state->kind};
    bool is_indirect = row.kind == HAK_ROW_INDIRECT;
    if (row.kind == HAK_ROW_PLT) {
        row.cfa = (int32_t)state->cfa;
    } else if (!words_of(state->cfa, &row.cfa)) {
        return (hak_row_t){0};
    }
    if (state->link.kind == CFI_LOST) {
        return (hak_row_t){.kind = HAK_ROW_END};
    }
    bool is_at_frame = state->frame.kind == CFI_AT_FRAME;
    if (state->link.kind > CFI_SAVED || state->frame.kind == CFI_ODD ||
        is_at_frame != is_indirect || (is_at_frame && state->frame.offset != 0) ||
        (state->link.kind == CFI_SAVED && !words_of(state->link.offset, &row.link)) ||
        (state->frame.kind == CFI_SAVED && !words_of(state->frame.offset, &row.frame))) {
        return (hak_row_t){0};
    }
    return row;
}

static hak_row_t function_row(const hak_function_t *function, uintptr_t code) {
    cfi_run_t run = {.function = function, .code = code};
    if (function->is_signal) {
        return (hak_row_t){.kind = HAK_ROW_SIGNAL};
    }
    run_program(&run, function->head);
    run.first = run.now;
    run.saved_count = 0;
    run_program(&run, function->program);
    return row_of(&run.now);
}

hak_row_t hak_cfi_row(const hak_tables_t *tables, uintptr_t code) {
    hak_function_t function;
    return hak_table_find(tables, code, &function) ? function_row(&function, code) : (hak_row_t){0};
}
