/* SPDX-License-Identifier: MIT
 *
 * Runs the tests of one file of a folder: `unit_front bin` those of front_bin_test.c. */
#include "unit/unit.h"

enum { MOST_TESTS = 100 };

static const char WHAT_TO_DO[] =
    "%s SUBJECT: for front_bin_test.c bin; its tests are none, or more than %d\n";

static unit_entry_t *entries, **entries_end = &entries;
uintptr_t unit_main_returns_to;

void unit_register(unit_entry_t *entry) {
    *entries_end = entry;
    entries_end = &entry->next;
}

/* front_bin_test.c in any folder is of "bin". */
static bool is_of(const unit_entry_t *entry, const char *subject) {
    const char *name = strrchr(entry->file, '/');
    name = strchr(name == NULL ? entry->file : name, '_') + 1;
    size_t length = strlen(name) - strlen("_test.c");
    return strlen(subject) == length && strncmp(name, subject, length) == 0;
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[MOST_TESTS];
    unit_main_returns_to = (uintptr_t)__builtin_return_address(0);
    size_t count = 0;
    int (*begin)(void **) = NULL;
    for (unit_entry_t *entry = entries; entry != NULL && argc > 1; entry = entry->next) {
        if (!is_of(entry, argv[1])) {
            continue;
        }
        int status = entry->start == NULL ? UNIT_GO_ON : entry->start(argc, argv);
        if (status != UNIT_GO_ON) {
            return status;
        }
        begin = entry->begin == NULL ? begin : entry->begin;
        if (entry->test.test_func != NULL && count++ < MOST_TESTS) {
            tests[count - 1] = entry->test;
        }
    }
    if (count == 0 || count > MOST_TESTS) {
        fprintf(stderr, WHAT_TO_DO, argv[0], MOST_TESTS);
        return 2;
    }
    return _cmocka_run_group_tests(argv[1], tests, count, begin, NULL) == 0 ? 0 : 1;
}
