/* SPDX-License-Identifier: MIT
 *
 * The numbers that stand for names of mallctl: found word by word, and refused wherever they are no
 * name's. */
#include "compat/names.h"

#include "unit/unit.h"

#include <errno.h>
#include <string.h>

enum { MIB_MOST = 8 };

static const hak_je_row_t *row_of(const char *name) {
    const hak_je_row_t *row = hak_je_rows;
    while (row->name[0] != '\0' && strcmp(row->name, name) != 0) {
        row++;
    }
    return row->name[0] != '\0' ? row : NULL;
}

/* The name of the row, with a number in the place of each #. */
static void numbered(const char *name, char to[2 * HAK_NAME_BYTES]) {
    for (; *name != '\0'; name++) {
        *to++ = *name == '#' ? '1' : *name;
    }
    *to = '\0';
}

UNIT_TEST(every_name_has_numbers_that_lead_back_to_it) {
    unsigned rows = 0;
    for (const hak_je_row_t *row = hak_je_rows; row->name[0] != '\0'; row++, rows++) {
        char name[2 * HAK_NAME_BYTES];
        numbered(row->name, name);
        if (strncmp(name, "arena.1", 7) == 0 || strstr(name, "arenas.1") != NULL) {
            name[strcspn(name, "1")] = '0'; /* the one arena that there always is */
        }
        size_t mib[MIB_MOST], length = MIB_MOST, number[HAK_NAME_NUMBERS] = {7, 7};
        assert_int_equal(hak_je_mallctlnametomib(name, mib, &length), 0);
        assert_ptr_equal(hak_je_row_find(mib, length, number), row);
        bool has_number = strchr(row->name, '#') != NULL;
        assert_int_equal(number[0] == 7, !has_number);
    }
    assert_true(rows > 100);
}

UNIT_TEST(names_that_are_none_are_refused) {
    static const char *const none[] = {
        "",
        ".",
        "stat",
        "statss",
        "stats.",
        ".stats",
        "stats..allocated",
        "stats.allocated.",
        "arena.x.decay",
        "arena.-1.decay",
        "arena.01x.decay",
        "arenas.bin.99999.size",
        "arenas.bin.18446744073709551616.size",
        "thread.tcache.flush.more",
        "a.very.long.name.of.many.parts.that.nobody.knows",
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        size_t mib[MIB_MOST], length = MIB_MOST;
        assert_int_equal(hak_je_mallctlnametomib(none[i], mib, &length), ENOENT);
        assert_int_equal(length, MIB_MOST);
    }
    size_t mib[1], length = 1;
    assert_int_equal(hak_je_mallctlnametomib(NULL, mib, &length), EINVAL);
    assert_int_equal(hak_je_mallctlnametomib("epoch", NULL, &length), EINVAL);
    assert_int_equal(hak_je_mallctlnametomib("epoch", mib, NULL), EINVAL);
}

/* As jemalloc does: the first numbers of a name, which a program completes itself. */
UNIT_TEST(short_room_gets_the_first_numbers) {
    size_t mib[MIB_MOST], first[2], length = MIB_MOST, part = 2;
    assert_int_equal(hak_je_mallctlnametomib("arenas.bin.3.size", mib, &length), 0);
    assert_int_equal(length, 4);
    assert_int_equal(mib[2], 3);
    assert_int_equal(hak_je_mallctlnametomib("arenas.bin.3.size", first, &part), 0);
    assert_int_equal(part, 2);
    size_t number[HAK_NAME_NUMBERS];
    assert_null(hak_je_row_find(first, part, number)); /* no whole name */
    mib[2] = 5;
    assert_ptr_equal(hak_je_row_find(mib, length, number), row_of("arenas.bin.#.size"));
    assert_int_equal(number[0], 5);
}

UNIT_TEST(numbers_that_are_no_name_s_find_nothing) {
    size_t mib[MIB_MOST], length = MIB_MOST, number[HAK_NAME_NUMBERS];
    assert_int_equal(hak_je_mallctlnametomib("arenas.bin.3.size", mib, &length), 0);
    assert_null(hak_je_row_find(mib, 0, number));
    assert_null(hak_je_row_find(mib, SIZE_MAX, number));
    assert_null(hak_je_row_find(mib, length - 1, number));
    assert_null(
        hak_je_row_find(mib, length + 1, number)); /* the part behind it is not set, or none */
    for (size_t i = 0; i < length; i++) {
        static const size_t wrong[] = {SIZE_MAX, SIZE_MAX / 2, 1u << 20, 100000};
        for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
            size_t right = mib[i];
            mib[i] = wrong[w];
            assert_null(hak_je_row_find(mib, length, number));
            mib[i] = right;
        }
    }
    size_t other = MIB_MOST, mixed[MIB_MOST];
    assert_int_equal(hak_je_mallctlnametomib("stats.allocated", mixed, &other), 0);
    mixed[0] = mib[0]; /* arenas.allocated */
    assert_null(hak_je_row_find(mixed, other, number));
}

UNIT_TEST(misaligned_numbers_are_read_and_written) {
    char room[MIB_MOST * sizeof(size_t) + 2], size[sizeof(size_t) + 1];
    size_t most = MIB_MOST, length, number[HAK_NAME_NUMBERS];
    memcpy(size + 1, &most, sizeof most);
    assert_int_equal(hak_je_mallctlnametomib("stats.resident", (size_t *)(void *)(room + 1),
                                             (size_t *)(void *)(size + 1)),
                     0);
    memcpy(&length, size + 1, sizeof length);
    assert_int_equal(length, 2);
    assert_ptr_equal(hak_je_row_find((size_t *)(void *)(room + 1), length, number),
                     row_of("stats.resident"));
}
