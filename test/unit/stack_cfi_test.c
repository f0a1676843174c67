/* SPDX-License-Identifier: MIT
 *
 * Rows of tables that the test writes: every kind of instruction, and tables that are cut off. They
 * end right before memory that cannot be read (STACK-1). */
#include "stack/cfi.h"

#include "os/os.h"
#include "unit/unit.h"

#if defined(__x86_64__)
enum { STACK = 7, FRAME = 6, LINK = 16 };
#else
enum { STACK = 31, FRAME = 29, LINK = 30 };
#endif

enum { BYTES_MOST = 256, CODE_AT = 1 << 20, CODE_BYTES = 64, HEADER_BYTES = 20 };

static unsigned char bytes[BYTES_MOST];
static unsigned count;
static char *room; /* of an OS page; the next one is inaccessible */

static void put(unsigned size, uint64_t value) {
    assert_true(count + size <= BYTES_MOST);
    memcpy(bytes + count, &value, size);
    count += size;
}

static void put_all(const unsigned char *from, unsigned size) {
    assert_true(count + size <= BYTES_MOST);
    memcpy(bytes + count, from, size);
    count += size;
}

static void record_end(unsigned begin) {
    while (count % 4 != 0) {
        put(1, 0);
    }
    uint32_t length = count - begin - 4;
    memcpy(bytes + begin, &length, 4);
}

/* A table of one function, at its place in the file as in memory: CODE_AT behind its start. */
static void table_make(const char *letters, const unsigned char *program, unsigned size) {
    count = 0;
    put(4, 0x3b031b01); /* version; encodings of pointers, of the count, of entries */
    put(4, HEADER_BYTES - 4);
    put(4, 1);
    put(4, CODE_AT);
    unsigned entry = count;
    put(4, 0);
    unsigned head = count;
    put(8, 0);
    put(1, 1);
    put_all((const unsigned char *)letters, (unsigned)strlen(letters) + 1);
    put(1, 1);    /* bytes of a code unit */
    put(1, 0x78); /* bytes of a data unit: -8 */
    put(1, LINK);
    put(1, 1); /* bytes of the letters' data: of "R" */
    put(1, 0x1b);
    unsigned char first[] = {0x0c, STACK, 8, 0x80 | LINK, 1};
    put_all(first, sizeof first);
    record_end(head);
    unsigned function = count;
    memcpy(bytes + entry, &function, 4);
    put(4, 0);
    put(4, count - head);
    put(4, CODE_AT - count);
    put(4, CODE_BYTES);
    put(1, 0);
    put_all(program, size);
    record_end(function);
}

/* The first `length` bytes of the table. */
static hak_row_t row_at(unsigned offset, unsigned length) {
    size_t page = hak_os_page_bytes();
    if (room == NULL) {
        room = hak_os_reserve(2 * page, page);
        assert_true(room != NULL && hak_os_commit(room, page));
    }
    uintptr_t from = (uintptr_t)room + page - length;
    memcpy((void *)from, bytes, length);
    hak_tables_t tables = {.os = {.header = from, .from = from, .to = from + length}};
    return hak_cfi_row(&tables, from + CODE_AT + offset);
}

static void expect_row(unsigned offset, hak_row_t wanted) {
    hak_row_t row = row_at(offset, count);
    UNIT_EXPECT(row.kind == wanted.kind, "at %u: kind %u", offset, row.kind);
    if (row.kind >= HAK_ROW_STACK) {
        UNIT_EXPECT(row.cfa == wanted.cfa && row.frame == wanted.frame && row.link == wanted.link,
                    "at %u: %d %d %d", offset, row.cfa, row.frame, row.link);
    }
}

static hak_row_t row(hak_row_kind_t kind, int32_t cfa, int32_t frame, int32_t link) {
    return (hak_row_t){.kind = kind, .cfa = cfa, .frame = frame, .link = link};
}

/* push; move; ...; pop, in the middle of the function; and behind it goes on. */
UNIT_TEST(rows_of_a_function_with_a_frame_follow_its_instructions) {
    unsigned char program[] = {
        0x41, 0x0e,  16,   0x80 | FRAME, 2,    0x02, 3, 0x0d, FRAME, 0x0a, 0x44,
        0x0c, STACK, 8,    0xc0 | FRAME, 0x03, 1,    0, 0x0b, 0x04,  1,    0,
        0,    0,     0x06, FRAME};
    table_make("zR", program, sizeof program);
    expect_row(0, row(HAK_ROW_STACK, 1, 0, -1));
    expect_row(1, row(HAK_ROW_STACK, 2, -2, -1));
    expect_row(3, row(HAK_ROW_STACK, 2, -2, -1));
    expect_row(4, row(HAK_ROW_FRAME, 2, -2, -1));
    expect_row(8, row(HAK_ROW_STACK, 1, 0, -1));
    expect_row(9, row(HAK_ROW_FRAME, 2, -2, -1));
    expect_row(10, row(HAK_ROW_FRAME, 2, 0, -1));
    expect_row(CODE_BYTES - 1, row(HAK_ROW_FRAME, 2, 0, -1));
    expect_row(CODE_BYTES, row(HAK_ROW_NONE, 0, 0, 0));
    expect_row(-1u, row(HAK_ROW_NONE, 0, 0, 0));
}

typedef struct {
    const char *what;
    unsigned char program[16];
    hak_row_t wanted;
} cfi_case_t;

static const cfi_case_t cases[] = {
    {"undefined return", {0x07, LINK}, {HAK_ROW_END, 0, 0, 0}},
    {"same return", {0x08, LINK}, {HAK_ROW_STACK, 1, 0, 0}},
    {"far frame", {0x0e, 0x80, 0x80, 0x80, 1}, {HAK_ROW_STACK, 1 << 18, 0, -1}},
    {"too far", {0x0e, 0x80, 0x80, 0x80, 2}, {HAK_ROW_NONE, 0, 0, 0}},
    {"no whole words", {0x0e, 12}, {HAK_ROW_NONE, 0, 0, 0}},
    {"signed offsets", {0x13, 0x7e, 0x11, FRAME, 3, 0x2e, 9}, {HAK_ROW_STACK, 2, -3, -1}},
    {"signed CFA", {0x12, FRAME, 0x7d}, {HAK_ROW_FRAME, 3, 0, -1}},
    {"extended", {0x05, FRAME, 4, 0x2d}, {HAK_ROW_STACK, 1, -4, -1}},
    {"negative", {0x2f, FRAME, 4}, {HAK_ROW_STACK, 1, 4, -1}},
    {"other register", {0x0c, 3, 8}, {HAK_ROW_NONE, 0, 0, 0}},
    {"saved in a register", {0x09, FRAME, 3}, {HAK_ROW_NONE, 0, 0, 0}},
    {"value", {0x14, FRAME, 2}, {HAK_ROW_NONE, 0, 0, 0}},
    {"other's value", {0x14, 3, 2}, {HAK_ROW_STACK, 1, 0, -1}},
    {"realigned",
     {0x10, FRAME, 2, 0x70 + FRAME, 0, 0x0f, 3, 0x70 + FRAME, 0x78, 6},
     {HAK_ROW_INDIRECT, -1, 0, -1}},
    {"realigned, frame elsewhere",
     {0x10, FRAME, 2, 0x70 + FRAME, 8, 0x0f, 3, 0x70 + FRAME, 0x78, 6},
     {HAK_ROW_NONE, 0, 0, 0}},
    {"expression plain", {0x0f, 2, 0x70 + STACK, 16}, {HAK_ROW_STACK, 2, 0, -1}},
    {"expression other", {0x0f, 2, 0x30, 0x22}, {HAK_ROW_NONE, 0, 0, 0}},
    {"expression too long", {0x0f, 200, 0x70 + STACK, 16}, {HAK_ROW_NONE, 0, 0, 0}},
    {"nothing remembered", {0x0b}, {HAK_ROW_NONE, 0, 0, 0}},
    {"too much remembered", {10, 10, 10, 10, 10, 10, 10, 10, 10}, {HAK_ROW_NONE, 0, 0, 0}},
    {"unknown", {0x3c}, {HAK_ROW_NONE, 0, 0, 0}},
    {"endless number",
     {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0xff},
     {HAK_ROW_NONE, 0, 0, 0}}};

UNIT_TEST(rows_of_each_instruction_are_right_or_none) {
    for (unsigned i = 0; i < UNIT_COUNT(cases); i++) {
        table_make("zR", cases[i].program, sizeof cases[i].program);
        hak_row_t found = row_at(5, count);
        UNIT_EXPECT(memcmp(&found, &cases[i].wanted, sizeof found) == 0 ||
                        (found.kind == HAK_ROW_NONE && cases[i].wanted.kind == HAK_ROW_NONE),
                    "%s: %u %d %d %d", cases[i].what, found.kind, found.cfa, found.frame,
                    found.link);
    }
    table_make("zRS", cases[0].program, 0);
    assert_int_equal(row_at(5, count).kind, HAK_ROW_SIGNAL);
    table_make("zRQ", cases[0].program, 0);
    assert_int_equal(row_at(5, count).kind, HAK_ROW_NONE);
}

#if defined(__x86_64__)
UNIT_TEST(rows_of_linkage_tables_depend_on_the_instruction) {
    unsigned char program[] = {0x0f, 11,   0x77, 8,    0x80, 0,   0x3f,
                               0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    table_make("zR", program, sizeof program);
    expect_row(5, row(HAK_ROW_PLT, 11, 0, -1));
    program[8] = 0x40;
    table_make("zR", program, sizeof program);
    expect_row(5, row(HAK_ROW_NONE, 0, 0, 0));
}
#endif

UNIT_TEST(tables_that_are_cut_off_have_no_rows) {
    table_make("zR", cases[5].program, sizeof cases[5].program);
    assert_int_equal(row_at(5, count).kind, HAK_ROW_STACK);
    for (unsigned length = 0; length < count; length++) {
        UNIT_EXPECT(row_at(5, length).kind == HAK_ROW_NONE, "%u bytes", length);
    }
    for (unsigned at = 0; at < count; at++) { /* any other byte anywhere, within the page */
        unsigned char was = bytes[at];
        for (unsigned value = 0; value < 256; value++) {
            bytes[at] = (unsigned char)value;
            hak_row_t found = row_at(5, count);
            assert_true(found.kind <= HAK_ROW_PLT);
        }
        bytes[at] = was;
    }
}

/* Of any number that may be read, down to none. */
UNIT_TEST(tables_are_read_up_to_a_bound) {
    table_make("zR", cases[5].program, sizeof cases[5].program);
    uintptr_t from = (uintptr_t)bytes;
    uint32_t most = 1 << 20, left = most;
    hak_tables_t tables = {.os = {.header = from, .from = from, .to = from + count}, .left = &left};
    assert_int_equal(hak_cfi_row(&tables, from + CODE_AT + 5).kind, HAK_ROW_STACK);
    most -= left;
    for (uint32_t bound = 0; bound <= most; bound++) {
        left = bound;
        hak_row_t row = hak_cfi_row(&tables, from + CODE_AT + 5);
        UNIT_EXPECT((row.kind == HAK_ROW_STACK) == (bound == most) && left == 0, "%u bytes", bound);
    }
}
