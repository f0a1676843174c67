/* SPDX-License-Identifier: MIT */
#include "base/fmt.h"
#include "base/knobs.h"
#include "unit/fatal.h"

#define STACKS "for stacks: HAKMEM_OPTIONS=backtrace:1"
#define EARLIER "to catch it earlier: HAKMEM_PROFILE=debug"

static void print_nothing(void) {
}

static void said(hak_fatal_kind_t kind, const char *line) {
    UNIT_EXPECT_FATAL(hak_fatal(kind, (void *)0x10, NULL), "0x10");
    assert_string_equal(unit_fatal.line, line);
}

/* Stacks where there are none; kinds that are noticed late, profile debug unless it is on. */
UNIT_TEST(fatal_line_leads_on_to_what_the_reader_lacks) {
    hak_services_t saved = hak_services;
    hak_knobs_t knobs = hak_knobs;
    hak_services.describe = NULL;
    UNIT_EXPECT_FATAL(hak_fatal(HAK_FATAL_DOUBLE_FREE, (void *)0x1230, "64-byte class"), "");
    assert_string_equal(unit_fatal.line,
                        "hakmem: double free: 0x1230 (64-byte class; " STACKS "; " EARLIER ")\n");
    said(HAK_FATAL_INTERIOR_FREE, "hakmem: free of an address inside a block: 0x10 (" STACKS ")\n");
    hak_services.trace = print_nothing;
    said(HAK_FATAL_OVERFLOW, "hakmem: overflow of a block: 0x10 (" EARLIER ")\n");
    said(HAK_FATAL_INTERIOR_FREE, "hakmem: free of an address inside a block: 0x10\n");
    hak_knobs.guard_rate = 1;
    hak_knobs.bin_max_blocks = 0;
    said(HAK_FATAL_OVERFLOW, "hakmem: overflow of a block: 0x10\n");
    hak_knobs = knobs;
    hak_services = saved;
}

UNIT_TEST(fatal_say_has_the_line_alone) {
    hak_services_t saved = hak_services;
    unit_fatal_begin();
    hak_services.describe = NULL;
    hak_fatal_say(HAK_FATAL_DOUBLE_FREE, (void *)0x10, NULL);
    unit_fatal_end();
    hak_services = saved;
    assert_string_equal(unit_fatal.line, "hakmem: double free: 0x10\n");
}

UNIT_TEST(fatal_without_address_or_detail_leaves_them_out) {
    UNIT_EXPECT_FATAL(hak_fatal(HAK_FATAL_OPTION_STRICT, NULL, NULL), "strict");
    assert_string_equal(unit_fatal.line, "hakmem: bad option in strict mode\n");
}

UNIT_TEST(fatal_text_of_every_kind_is_distinct) {
    for (unsigned i = 0; i < HAK_FATAL_COUNT; i++) {
        const char *text = hak_fatal_text((hak_fatal_kind_t)i);
        assert_true(strlen(text) > 5);
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(text, hak_fatal_text((hak_fatal_kind_t)j));
        }
    }
    assert_string_equal(hak_fatal_text(HAK_FATAL_COUNT), "unknown");
}

UNIT_TEST(fatal_with_endless_detail_is_cut_but_ends_the_line) {
    static char detail[2000];
    memset(detail, 'x', sizeof detail - 1);
    UNIT_EXPECT_FATAL(hak_fatal(HAK_FATAL_INVARIANT, NULL, detail), "xxx");
    assert_int_equal(unit_fatal.length, HAK_LINE_TEXT);
    assert_int_equal(unit_fatal.line[unit_fatal.length - 1], '\n');
    assert_ptr_equal(strchr(unit_fatal.line, '\n'), unit_fatal.line + unit_fatal.length - 1);
}

UNIT_TEST(warning_is_one_line_and_goes_on) {
    unit_fatal_begin();
    hak_warn("something is odd");
    unit_fatal_end();
    assert_false(unit_fatal.is_fatal);
    assert_string_equal(unit_fatal.line, "hakmem: something is odd\n");
}

UNIT_TEST(assertion_is_active_in_audit_builds_only) {
#if HAK_AUDIT
    UNIT_EXPECT_FATAL(HAK_ASSERT(1 + 1 == 3, "SLAB-99"), "(SLAB-99: 1 + 1 == 3)");
#else
    HAK_ASSERT(1 + 1 == 3, "SLAB-99");
#endif
    HAK_ASSERT(1 + 1 == 2, "SLAB-99");
}
