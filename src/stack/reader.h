/* SPDX-License-Identifier: MIT
 *
 * Reads unwind tables, whatever they hold: a read that leaves their segment, or the bound of bytes,
 * ends the reader, whose reads then give 0. */
#ifndef HAK_STACK_READER_H
#define HAK_STACK_READER_H

#include "os/optional.h"

typedef struct hak_tables {
    hak_os_unwind_t os; /* all reads stay from `from` to `to` */
    uint32_t *left;     /* bytes that may be read, counted down; NULL: any number */
} hak_tables_t;

typedef struct hak_reader {
    const hak_tables_t *tables;
    uintptr_t at, end;
    bool has_failed;
} hak_reader_t;

/* Failed unless `at` to `end` lies in the segment. */
hak_reader_t hak_reader_of(const hak_tables_t *tables, uintptr_t at, uintptr_t end);
/* Numbers of a fixed size, at most 8 bytes. */
uint64_t hak_take(hak_reader_t *reader, unsigned bytes);
uint64_t hak_take_byte(hak_reader_t *reader);
int64_t hak_take_signed_4(hak_reader_t *reader);
/* Numbers in 7 bits a byte; what exceeds 64 bits is dropped. */
uint64_t hak_take_unsigned(hak_reader_t *reader);
int64_t hak_take_signed(hak_reader_t *reader);
void hak_take_nothing(hak_reader_t *reader, uint64_t bytes);

/* Encodings of pointers: size and sign, base. */
enum {
    CFI_SIZE = 0x0f,
    CFI_PLAIN = 0x00,
    CFI_UNSIGNED_4 = 0x03,
    CFI_UNSIGNED_8 = 0x04,
    CFI_SIGNED_4 = 0x0b,
    CFI_SIGNED_8 = 0x0c,
    CFI_BASE = 0x70,
    CFI_FROM_HERE = 0x10,
    CFI_FROM_HEADER = 0x30,
};
/* A pointer in an encoding of them. */
uintptr_t hak_take_pointer(hak_reader_t *reader, unsigned encoding);

#endif
