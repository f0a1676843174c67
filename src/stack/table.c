/* SPDX-License-Identifier: MIT
 *
 * Reads the table and the records, up to the programs that cfi.c runs. */
#include "stack/table.h"

#include "os/cpu.h"

enum {
    TABLE_ENCODING = CFI_FROM_HEADER | CFI_SIGNED_4, /* what all linkers write */
    TABLE_NO_COUNT = 0xff,
    TABLE_RECORD_MOST = 1 << 20, /* bytes */
};

/* A record from its length on, at its second word. Empty behind the last one. */
static hak_reader_t record_at(const hak_tables_t *tables, uintptr_t at) {
    hak_reader_t reader = hak_reader_of(tables, at, tables->os.to);
    uint64_t bytes = hak_take(&reader, 4);
    if (reader.has_failed || bytes < 4 || bytes > TABLE_RECORD_MOST ||
        bytes > reader.end - reader.at) {
        return (hak_reader_t){.tables = tables, .has_failed = true};
    }
    reader.end = reader.at + bytes;
    return reader;
}

/* The letters of the augmentation, each with its data. */
static void head_augment(hak_function_t *function, hak_reader_t letters) {
    hak_reader_t *head = &function->head;
    for (uint64_t letter; (letter = hak_take_byte(&letters)) != 0;) {
        if (letter == 'z') {
            uint64_t bytes = hak_take_unsigned(head);
            function->has_sizes = true;
            head->has_failed = head->has_failed || bytes > head->end - head->at;
        } else if (letter == 'R') {
            function->encoding = (unsigned)hak_take_byte(head);
        } else if (letter == 'P') {
            unsigned encoding = (unsigned)hak_take_byte(head);
            (void)hak_take_pointer(head, encoding & CFI_SIZE);
        } else if (letter == 'L') {
            (void)hak_take_byte(head);
        } else if (letter == 'S') {
            function->is_signal = true;
        } else if (letter != 'B' && letter != 'G') { /* of aarch64, without data */
            head->has_failed = true;
            return;
        }
    }
}

static bool head_read(hak_function_t *function, const hak_tables_t *tables, uintptr_t at) {
    hak_reader_t *head = &function->head;
    *head = record_at(tables, at);
    if (hak_take(head, 4) != 0) {
        return false;
    }
    uint64_t version = hak_take_byte(head);
    hak_reader_t letters = *head;
    while (hak_take_byte(head) != 0) {
    }
    function->code_unit = hak_take_unsigned(head);
    function->data_unit = hak_take_signed(head);
    uint64_t link = version == 1 ? hak_take_byte(head) : hak_take_unsigned(head);
    head_augment(function, letters);
    return !head->has_failed && (version == 1 || version == 3) && link == HAK_CPU_LINK;
}

/* The function whose record begins there. */
static bool function_read(hak_function_t *function, const hak_tables_t *tables, uintptr_t at) {
    hak_reader_t *program = &function->program;
    *function = (hak_function_t){.program = record_at(tables, at)};
    uintptr_t place = program->at;
    uint64_t back = hak_take(program, 4);
    if (program->has_failed || back == 0 || back > place ||
        !head_read(function, tables, place - back)) {
        return false;
    }
    function->from = hak_take_pointer(program, function->encoding);
    function->bytes = hak_take_pointer(program, function->encoding & CFI_SIZE);
    if (function->has_sizes) {
        hak_take_nothing(program, hak_take_unsigned(program));
    }
    return !program->has_failed;
}

/* The record of the last function that begins not behind the instruction; 0: none. */
static uintptr_t table_find(const hak_tables_t *tables, uintptr_t code) {
    uintptr_t header = tables->os.header;
    hak_reader_t reader = hak_reader_of(tables, header, tables->os.to);
    uint64_t version = hak_take_byte(&reader);
    unsigned records = (unsigned)hak_take_byte(&reader), size = (unsigned)hak_take_byte(&reader);
    uint64_t encoding = hak_take_byte(&reader);
    if (version != 1 || encoding != TABLE_ENCODING || size == TABLE_NO_COUNT) {
        return 0;
    }
    (void)hak_take_pointer(&reader, records);
    uint64_t count = hak_take_pointer(&reader, size & CFI_SIZE);
    uintptr_t base = reader.at;
    if (reader.has_failed || count > (reader.end - base) / 8) {
        return 0;
    }
    uint64_t low = 0, high = count; /* the entries below `low` begin not behind it */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        reader.at = base + middle * 8;
        bool is_behind = header + (uintptr_t)hak_take_signed_4(&reader) > code;
        low = is_behind ? low : middle + 1;
        high = is_behind ? middle : high;
    }
    reader.at = base + low * 8 - 4;
    uintptr_t found = low == 0 ? 0 : header + (uintptr_t)hak_take_signed_4(&reader);
    return reader.has_failed ? 0 : found;
}

bool hak_table_find(const hak_tables_t *tables, uintptr_t code, hak_function_t *function) {
    uintptr_t record = table_find(tables, code);
    return record != 0 && function_read(function, tables, record) &&
           code - function->from < function->bytes;
}
