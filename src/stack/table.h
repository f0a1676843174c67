/* SPDX-License-Identifier: MIT
 *
 * Functions in .eh_frame, found through the sorted table of .eh_frame_hdr: a record of each (FDE),
 * which has a head (CIE) that it shares with others. */
#ifndef HAK_STACK_TABLE_H
#define HAK_STACK_TABLE_H

#include "stack/reader.h"

typedef struct hak_function {
    hak_reader_t head, program; /* instructions of the CIE and of the FDE */
    uintptr_t from, bytes;      /* its code */
    uint64_t code_unit;
    int64_t data_unit;
    unsigned encoding;
    bool is_signal, has_sizes; /* augmentations "S", "z" */
} hak_function_t;

/* The function that an instruction belongs to. */
bool hak_table_find(const hak_tables_t *tables, uintptr_t code, hak_function_t *function);

#endif
