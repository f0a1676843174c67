/* SPDX-License-Identifier: MIT
 *
 * Short forms of mallctl for tests. */
#ifndef HAK_TEST_COMPAT_MALLCTL_H
#define HAK_TEST_COMPAT_MALLCTL_H

#include <hakmem/jemalloc.h>

#include "api/expect.h"

/* Reads a value of the type into `value`, which must work. */
#define READ(name, value)                                                                          \
    do {                                                                                           \
        size_t names_length_ = sizeof(value);                                                      \
        EXPECT_EQ(mallctl(name, &(value), &names_length_, NULL, 0), 0);                            \
        EXPECT_EQ(names_length_, sizeof(value));                                                   \
    } while (0)

#define WRITE(name, value) mallctl(name, NULL, NULL, &(value), sizeof(value))

static inline size_t read_size(const char *name) {
    size_t value = 0;
    READ(name, value);
    return value;
}

static inline void next_epoch(void) {
    uint64_t epoch = 1;
    EXPECT_EQ(WRITE("epoch", epoch), 0);
}

/* Of a bin, for all arenas. */
static inline size_t read_bin(unsigned bin, const char *what) {
    char name[80];
    snprintf(name, sizeof name, "stats.arenas.4096.bins.%u.%s", bin, what);
    return read_size(name);
}

static inline size_t bin_figure(unsigned bin, const char *what) {
    char name[80];
    snprintf(name, sizeof name, "arenas.bin.%u.%s", bin, what);
    return read_size(name);
}

static inline uint32_t bin_regions(unsigned bin) {
    char name[80];
    uint32_t value = 0;
    snprintf(name, sizeof name, "arenas.bin.%u.nregs", bin);
    READ(name, value);
    return value;
}

#endif
