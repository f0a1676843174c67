/* SPDX-License-Identifier: MIT
 *
 * What hak_explain advises, against what would come of it. */
#include "unit/report.h"

/* How often the line names it. */
static unsigned mentions(const char *line, const char *word) {
    unsigned count = 0;
    const char *end = strchr(line, '\n');
    for (const char *at = line; (at = strstr(at, word)) != NULL && at < end; at++) {
        count++;
    }
    return count;
}

/* Of each four blocks of a quarter of an OS page so many stay in use: what is said, without the
 * line of the process. */
static const char *said_of_kept(char **block, size_t count, unsigned every) {
    UNIT_TAKE_ALL(block, count, memset(hak_malloc(1000), 1, 1000));
    hak_malloc_trim(0);
    for (size_t i = 0; i < count; i++) {
        if (((uintptr_t)block[i] / 1024) % every != 0) {
            hak_free(block[i]);
        }
    }
    hak_collect_thread();
    const char *line = strchr(report_take(HAK_REPORT_EXPLAIN), '\n') + 1;
    for (size_t i = 0; i < count; i++) {
        if (((uintptr_t)block[i] / 1024) % every == 0) {
            hak_free(block[i]);
        }
    }
    return line;
}

UNIT_TEST_WITH(trim_is_advised_only_where_it_returns_something, report_begin, NULL) {
    enum { COUNT = 16384 };
    static char *block[COUNT];
    const char *line = said_of_kept(block, COUNT, 4); /* one of each OS page */
    UNIT_EXPECT(mentions(line, "free blocks beside blocks in use") == 1, "%s", line);
    UNIT_EXPECT(mentions(line, "malloc_trim(0) returns nothing") == 1, "%s", line);
    UNIT_EXPECT(mentions(line, "malloc_trim") == 1 && mentions(line, "retain_idle") == 0, "%s",
                line);
    UNIT_EXPECT(strstr(line, "; malloc_trim(0) returns ") == NULL ||
                    mentions(strstr(line, "\nhakmem: slab_free") + 1, "malloc_trim") == 0,
                "%s", line);
    line = said_of_kept(block, COUNT, 16);
    UNIT_EXPECT(mentions(line, "malloc_trim(0) returns nothing") == 0, "%s", line);
    UNIT_EXPECT(mentions(line, "malloc_trim") == 1 && mentions(line, "retain_idle") == 1, "%s",
                line);
    hak_malloc_trim(0);
    hak_free(memset(hak_malloc(16 * MIB), 1, 16 * MIB));
    line = strchr(report_take(HAK_REPORT_EXPLAIN), '\n') + 1; /* all of it */
    UNIT_EXPECT(mentions(line, "unused memory that is kept") == 1, "%s", line);
    UNIT_EXPECT(mentions(line, "malloc_trim(0) returns it at once") == 1, "%s", line);
    UNIT_EXPECT(mentions(line, "malloc_trim") == 1, "%s", line);
    hak_malloc_trim(0);
}
