/* SPDX-License-Identifier: MIT */
#include "base/fmt.h"
#include "unit/unit.h"

static char buffer[64];
static hak_text_t text;

static void text_begin(size_t capacity) {
    memset(buffer, '#', sizeof buffer);
    text = (hak_text_t){.data = buffer, .capacity = capacity};
}

static void text_expect(const char *expected) {
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(buffer, expected, text.length);
    for (size_t i = text.capacity; i < sizeof buffer; i++) {
        assert_int_equal(buffer[i], '#');
    }
}

UNIT_TEST(text_pieces_fitting_are_joined) {
    text_begin(sizeof buffer);
    hak_text_str(&text, "one");
    hak_text_mem(&text, ", twofold", 5);
    hak_text_str(&text, NULL);
    hak_text_uint(&text, 0);
    hak_text_str(&text, " ");
    hak_text_uint(&text, UINT64_MAX);
    hak_text_hex(&text, 0xdeadbeef);
    text_expect("one, two0 184467440737095516150xdeadbeef");
}

UNIT_TEST(text_of_any_capacity_is_cut_never_overrun) {
    static const char whole[] = "abc 4294967295 0x7fffffffffff end";
    for (size_t capacity = 0; capacity <= sizeof whole; capacity++) {
        text_begin(capacity);
        hak_text_format(&text, "%s %u %p %c%s", "abc", UINT32_MAX, (void *)0x7fffffffffff, 'e',
                        "nd");
        size_t expected = capacity < sizeof whole - 1 ? capacity : sizeof whole - 1;
        assert_int_equal(text.length, expected);
        assert_memory_equal(buffer, whole, expected);
        assert_int_equal(buffer[capacity], '#');
    }
}

UNIT_TEST(format_every_letter_prints_its_type) {
    text_begin(sizeof buffer);
    hak_text_format(&text, "%s|%u|%z|%l|%x|%p|%c|%%", "s", 7u, (size_t)1 << 40, (uint64_t)3,
                    (uint64_t)255, (void *)16, 'c');
    text_expect("s|7|1099511627776|3|0xff|0x10|c|%");
}

static void put_text(void *context, const char *data, size_t length) {
    hak_text_mem(context, data, length);
}

UNIT_TEST(sink_gets_what_is_formatted) {
    const hak_sink_t sink = {.put = put_text, .context = &text};
    text_begin(sizeof buffer);
    hak_sink_format(&sink, "%u of %s, ", 1u, "two");
    hak_sink_format(&sink, "%l", (uint64_t)3);
    text_expect("1 of two, 3");
}

UNIT_TEST(parse_size_good_text_gives_value) {
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {{"0", 0},
                 {"1", 1},
                 {"007", 7},
                 {"1k", 1024},
                 {"1K", 1024},
                 {"3m", 3u << 20},
                 {"3M", 3u << 20},
                 {"2g", 2ull << 30},
                 {"2G", 2ull << 30},
                 {"5t", 5ull << 40},
                 {"5T", 5ull << 40},
                 {"0t", 0},
                 {"18446744073709551615", UINT64_MAX},
                 {"18014398509481983k", UINT64_MAX - 1023},
                 {"16777215t", 16777215ull << 40}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        uint64_t value = 99;
        UNIT_EXPECT(hak_parse_size(cases[i].text, strlen(cases[i].text), &value) &&
                        value == cases[i].value,
                    "%s", cases[i].text);
    }
}

static void expect_refused(const char *text) {
    uint64_t value = 99;
    UNIT_EXPECT(!hak_parse_size(text, strlen(text), &value) && value == 99, "%s", text);
}

UNIT_TEST(parse_size_bad_text_is_refused_and_value_kept) {
    static const char *const cases[] = {"",   "k",   "-1",  "+1",    " 1",   "1 ", "1kk",
                                        "1x", "1k ", "0x1", "1.5m",  "1kb",  "m1", "1+",
                                        "t",  "1,2", "1:",  "1\xcb", "1\x0b"};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        expect_refused(cases[i]);
    }
    expect_refused("18446744073709551616");
    expect_refused("18014398509481984k");
    expect_refused("16777216t");
    expect_refused("99999999999999999999999");
}

UNIT_TEST(parse_size_length_ends_the_text) {
    uint64_t value;
    assert_true(hak_parse_size("12345", 3, &value));
    assert_int_equal(value, 123);
    assert_true(hak_parse_size("12k,rest", 3, &value));
    assert_int_equal(value, 12 << 10);
    assert_false(hak_parse_size("12", 0, &value));
}
