/* SPDX-License-Identifier: MIT
 *
 * Rows: how the registers of a function's caller are found. row.c keeps
 * those of hot code. */
#ifndef HAK_STACK_ROW_H
#define HAK_STACK_ROW_H

#include "base/compiler.h"
#include "base/words.h"

/* The canonical frame address (CFA): the stack pointer of the caller. */
typedef enum hak_row_kind {
    HAK_ROW_NONE,     /* not known */
    HAK_ROW_END,      /* there is no caller: the start of a thread */
    HAK_ROW_SIGNAL,   /* the return from a signal handler: the kernel saved all registers */
    HAK_ROW_STACK,    /* CFA = stack pointer + cfa */
    HAK_ROW_FRAME,    /* CFA = frame pointer + cfa */
    HAK_ROW_INDIRECT, /* CFA = the word at frame pointer + cfa, where the caller's is saved */
    HAK_ROW_PLT       /* CFA = stack pointer + 8, and 8 more from byte `cfa` of 16 on */
} hak_row_kind_t;

/* Offsets are in words. Those of saved registers are from the CFA; 0: not saved. */
typedef struct hak_row {
    hak_row_kind_t kind;
    int32_t cfa, frame, link;
} hak_row_t;

enum {
    HAK_ROW_BITS = 20, /* of an offset: 4 MiB */
    /* Bytes of tables that are read for a row; a longer program has none. Compilers write up to
     * some KiB for a function. */
    HAK_ROW_BYTES = 16 << 10,
    HAK_ROW_WALK_BYTES = 64 << 10, /* for all rows of a walk */
};

/* The row of an instruction. `is_sure`: its object stays loaded, as a function of it runs; else
 * only tables of objects that always do are read. At most *left bytes of tables are read, and
 * counted down. */
hak_row_t hak_row_find(uintptr_t code, bool is_sure, uint32_t *left);
/* The row behind a call in code that belongs to no object, if the instructions there tell it: those
 * of a function that returns at once. Reads them: `code` is where a running function returns to. */
hak_row_t hak_row_of_return(uintptr_t code);
/* Before an object is loaded: forgets all rows if others may have been where it will be, as the
 * count of objects that were unloaded tells. */
void hak_row_follow(uint64_t unload_count);

#endif
