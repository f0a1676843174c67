/* SPDX-License-Identifier: MIT
 *
 * How many files are open: descriptors that were left are noticed by comparing. */
#ifndef HAK_TEST_UNIT_OPEN_FILES_H
#define HAK_TEST_UNIT_OPEN_FILES_H

#include "unit/unit.h"

#include <dirent.h>

static inline unsigned open_files(void) {
    unsigned count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (all != NULL && readdir(all) != NULL) {
        count++;
    }
    assert_true(all != NULL && closedir(all) == 0);
    return count;
}

#endif
