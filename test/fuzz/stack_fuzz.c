/* SPDX-License-Identifier: MIT
 *
 * Unwind tables of any bytes: rows of them are possible ones, and the walk over a stack of any
 * words by such rows ends, without a fault. The first byte says how; the next three which
 * instruction; the tables end where memory does. */
#include "fuzz/fuzz.h"
#include "os/os.h"
#include "stack/cfi.h"

enum { TABLE_MOST = 1 << 15, CODE_AT = 1 << 20 };

static char *end_of_room; /* inaccessible from there on */

static void room_make(void) {
    size_t page = hak_os_page_bytes();
    size_t bytes = TABLE_MOST < page ? page : TABLE_MOST;
    char *room = hak_os_reserve(bytes + page, page);
    FUZZ_EXPECT(room != NULL && hak_os_commit(room, bytes));
    end_of_room = room + bytes;
}

static void expect_possible(hak_row_t row) {
    const int32_t most = 1 << (HAK_ROW_BITS - 1);
    FUZZ_EXPECT(row.kind <= HAK_ROW_PLT);
    FUZZ_EXPECT(row.cfa >= -most && row.cfa < most && row.frame >= -most && row.frame < most &&
                row.link >= -most && row.link < most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { HEAD = 4 };
    if (end_of_room == NULL) {
        room_make();
    }
    if (size < HEAD || size > TABLE_MOST) {
        return 0;
    }
    unsigned offset = data[1] | (unsigned)data[2] << 8 | (unsigned)data[3] << 16;
    size_t bytes = size - HEAD;
    uintptr_t from = (uintptr_t)end_of_room - bytes;
    memcpy((void *)from, data + HEAD, bytes);
    uint32_t left = HAK_ROW_BYTES;
    hak_tables_t tables = {.os = {.header = from, .from = from, .to = from + bytes},
                           .left = (data[0] & 1) == 0 ? NULL : &left};
    if ((data[0] & 2) != 0) {
        tables.os.header += data[0] >> 2;
    }
    hak_row_t row = hak_cfi_row(&tables, from + offset);
    expect_possible(row);
    for (unsigned i = 0; i < 64; i++) {
        left = HAK_ROW_BYTES;
        hak_row_t next = hak_cfi_row(&tables, from + offset + i);
        expect_possible(next);
        FUZZ_EXPECT(i != 0 || memcmp(&next, &row, sizeof row) == 0);
    }
    return 0;
}
