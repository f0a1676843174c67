/* SPDX-License-Identifier: MIT
 *
 * Rows by the unwind tables of an object. */
#ifndef HAK_STACK_CFI_H
#define HAK_STACK_CFI_H

#include "stack/reader.h"
#include "stack/row.h"

/* Bounded in time, whatever the tables hold. */
hak_row_t hak_cfi_row(const hak_tables_t *tables, uintptr_t code);

#endif
