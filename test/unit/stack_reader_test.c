/* SPDX-License-Identifier: MIT
 *
 * Numbers of unwind tables, and reads that leave their segment or the bound of bytes. */
#include "stack/reader.h"

#include "unit/unit.h"

#include <string.h>

enum { READER_BYTES = 32 };

static unsigned char segment[READER_BYTES];

static hak_tables_t tables_of(uint32_t *left) {
    uintptr_t from = (uintptr_t)segment;
    return (hak_tables_t){.os = {.from = from, .to = from + READER_BYTES, .header = from},
                          .left = left};
}

static hak_reader_t reader_at(const hak_tables_t *tables, const unsigned char *bytes,
                              unsigned count) {
    memset(segment, 0x55, sizeof segment);
    memcpy(segment, bytes, count);
    return hak_reader_of(tables, (uintptr_t)segment, (uintptr_t)segment + count);
}

UNIT_TEST(reader_outside_of_its_segment_has_failed) {
    hak_tables_t tables = tables_of(NULL);
    uintptr_t from = tables.os.from, to = tables.os.to;
    const struct {
        uintptr_t at, end;
        bool has_failed;
    } rows[] = {{from, to, false},    {to, to, false},  {from - 1, to, true},
                {from, to + 1, true}, {to, from, true}, {0, UINTPTR_MAX, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hak_reader_t reader = hak_reader_of(&tables, rows[i].at, rows[i].end);
        assert_int_equal(reader.has_failed, rows[i].has_failed);
        if (rows[i].has_failed) {
            assert_int_equal(hak_take_byte(&reader), 0);
        }
    }
}

UNIT_TEST(numbers_are_read_as_they_stand) {
    static const unsigned char bytes[] = {0xff, 0xfe, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8};
    hak_tables_t tables = tables_of(NULL);
    hak_reader_t reader = reader_at(&tables, bytes, sizeof bytes);
    assert_int_equal(hak_take_byte(&reader), 0xff);
    assert_int_equal(hak_take_signed_4(&reader), -2);
    assert_true(hak_take(&reader, 8) == 0x0807060504030201);
    assert_false(reader.has_failed);
    assert_int_equal(hak_take_byte(&reader), 0); /* behind the end */
    assert_true(reader.has_failed);
}

UNIT_TEST(numbers_of_7_bits_a_byte) {
    static const struct {
        unsigned char bytes[12];
        unsigned count;
        uint64_t plain;
        int64_t with_sign;
    } rows[] = {
        {{0x02}, 1, 2, 2},
        {{0x7f}, 1, 127, -1},
        {{0xff, 0x00}, 2, 127, 127},
        {{0x80, 0x7f}, 2, 0x3f80, -128},
        {{0xe5, 0x8e, 0x26}, 3, 624485, 624485},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, UINT64_MAX, -1},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 11, 0, 0},
    };
    hak_tables_t tables = tables_of(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hak_reader_t reader = reader_at(&tables, rows[i].bytes, rows[i].count);
        assert_true(hak_take_unsigned(&reader) == rows[i].plain);
        assert_int_equal(reader.at - (uintptr_t)segment, rows[i].count);
        reader = reader_at(&tables, rows[i].bytes, rows[i].count);
        assert_true(hak_take_signed(&reader) == rows[i].with_sign);
        assert_false(reader.has_failed);
    }
    static const unsigned char endless[] = {0x80, 0x80, 0x80};
    hak_reader_t reader = reader_at(&tables, endless, sizeof endless);
    (void)hak_take_unsigned(&reader);
    assert_true(reader.has_failed);
}

UNIT_TEST(bound_of_bytes_ends_all_reads) {
    static const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint32_t left = 5;
    hak_tables_t tables = tables_of(&left);
    hak_reader_t reader = reader_at(&tables, bytes, sizeof bytes);
    assert_int_equal(hak_take(&reader, 4), 0x04030201);
    assert_int_equal(left, 1);
    assert_int_equal(hak_take(&reader, 2), 0); /* too much, and none is left then */
    assert_true(reader.has_failed);
    assert_int_equal(left, 0);
    assert_int_equal(hak_take_byte(&reader), 0);
}

UNIT_TEST(skips_stay_inside) {
    static const unsigned char bytes[] = {1, 2, 3};
    hak_tables_t tables = tables_of(NULL);
    hak_reader_t reader = reader_at(&tables, bytes, sizeof bytes);
    hak_take_nothing(&reader, 2);
    assert_int_equal(hak_take_byte(&reader), 3);
    reader = reader_at(&tables, bytes, sizeof bytes);
    hak_take_nothing(&reader, UINT64_MAX);
    assert_true(reader.has_failed);
    assert_int_equal(reader.at, reader.end);
}

UNIT_TEST(pointers_of_every_encoding) {
    static const unsigned char bytes[] = {0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    hak_tables_t tables = tables_of(NULL);
    tables.os.header = 1 << 20;
    uintptr_t here = (uintptr_t)segment;
    const struct {
        unsigned encoding;
        uintptr_t value;
        bool has_failed;
    } rows[] = {
        {CFI_PLAIN, (uintptr_t)-16, false},
        {CFI_UNSIGNED_8, (uintptr_t)-16, false},
        {CFI_SIGNED_8 | CFI_FROM_HERE, here - 16, false},
        {CFI_UNSIGNED_4, 0xfffffff0, false},
        {CFI_SIGNED_4, (uintptr_t)-16, false},
        {CFI_SIGNED_4 | CFI_FROM_HERE, here - 16, false},
        {CFI_SIGNED_4 | CFI_FROM_HEADER, (1 << 20) - 16, false},
        {0x01, 0, true},                /* a number in 7 bits a byte */
        {CFI_SIGNED_4 | 0x20, 0, true}, /* from the start of the code */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hak_reader_t reader = reader_at(&tables, bytes, sizeof bytes);
        assert_true(hak_take_pointer(&reader, rows[i].encoding) == rows[i].value);
        assert_int_equal(reader.has_failed, rows[i].has_failed);
    }
}
