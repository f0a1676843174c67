/* SPDX-License-Identifier: MIT
 *
 * Does mallctl find every name of the table, by name and by numbers, and answer bad input by the
 * error number that jemalloc's manual says? */
#include "compat/mallctl.h"

#include <dlfcn.h>

static const struct name {
    const char *text;
    size_t bytes;
    const char *access;
} names[] = {
#define HAK_JE_NUMBER(name, type, value) {name, BYTES_##type, "R"},
#define HAK_JE_WORD(name, text) {name, BYTES_TEXT, "R"},
#define HAK_JE_FIGURE(name, type, field) {name, BYTES_##type, "R"},
#define HAK_JE_AT_START(name, type, field) {name, BYTES_##type, "R"},
#define HAK_JE_SETTING(name, type, value) {name, BYTES_##type, "RW"},
#define HAK_JE_VALUE(name, type, access, id) {name, BYTES_##type, #access},
#define BYTES_NONE 0
#define BYTES_BYTES 0
#define BYTES_BOOL sizeof(bool)
#define BYTES_UINT sizeof(unsigned)
#define BYTES_U32 sizeof(uint32_t)
#define BYTES_U64 sizeof(uint64_t)
#define BYTES_SIZE sizeof(size_t)
#define BYTES_SSIZE sizeof(ssize_t)
#define BYTES_POINTER sizeof(void *)
#define BYTES_TEXT sizeof(char *)
#include "compat/names.def"
};
enum { NAMES = sizeof names / sizeof names[0] };

/* With a number for each #. */
static const char *concrete(const char *text, char number) {
    static char name[64];
    size_t i = 0;
    for (; text[i] != '\0'; i++) {
        name[i] = text[i] == '#' ? number : text[i];
    }
    name[i] = '\0';
    return name;
}

static bool is_read(const struct name *name) {
    return strchr(name->access, 'R') != NULL && name->bytes != 0 &&
           strstr(name->text, "extent_hooks") == NULL && strcmp(name->text, "arenas.lookup") != 0;
}

static void every_name_is_found_and_has_its_size(void) {
    for (size_t i = 0; i < NAMES; i++) {
        uint64_t value = 0x7777777777777777u;
        size_t length = names[i].bytes;
        int error = is_read(&names[i])
                        ? mallctl(concrete(names[i].text, '0'), &value, &length, NULL, 0)
                        : 0;
        if (error != 0) {
            expect_say("%s: %d\n", names[i].text, error);
        }
        EXPECT_EQ(error, 0);
        EXPECT_EQ(length, names[i].bytes);
    }
}

static void numbers_stand_for_every_name(void) {
    for (size_t i = 0; i < NAMES; i++) {
        size_t mib[8], length = 8, bytes = names[i].bytes;
        uint64_t by_name = 0, by_number = 0;
        EXPECT_EQ(mallctlnametomib(concrete(names[i].text, '0'), mib, &length), 0);
        if (is_read(&names[i]) && strstr(names[i].text, "create") == NULL) {
            EXPECT_EQ(mallctl(concrete(names[i].text, '0'), &by_name, &bytes, NULL, 0), 0);
            EXPECT_EQ(mallctlbymib(mib, length, &by_number, &bytes, NULL, 0), 0);
            EXPECT_EQ(by_name, by_number);
        }
        for (size_t cut = 0; cut < length; cut++) { /* no whole name */
            EXPECT_EQ(mallctlbymib(mib, cut, NULL, NULL, NULL, 0), ENOENT);
            size_t part[8], some = cut;
            memset(part, 0x5a, sizeof part);
            EXPECT_EQ(mallctlnametomib(concrete(names[i].text, '0'), part, &some), 0);
            EXPECT_EQ(some, cut);
            EXPECT_EQ(memcmp(part, mib, cut * sizeof *mib), 0);
            EXPECT_EQ(part[cut], 0x5a5a5a5a5a5a5a5au); /* nothing is written behind */
        }
    }
}

static void numbers_in_a_name_may_be_replaced(void) {
    size_t mib[4], length = 4;
    unsigned bins = 0;
    READ("arenas.nbins", bins);
    EXPECT_EQ(mallctlnametomib("arenas.bin.0.size", mib, &length), 0);
    EXPECT_EQ(length, 4);
    for (mib[2] = 0; mib[2] < bins; mib[2]++) {
        size_t size = 0, bytes = sizeof size;
        EXPECT_EQ(mallctlbymib(mib, length, &size, &bytes, NULL, 0), 0);
        EXPECT_EQ(size, bin_figure((unsigned)mib[2], "size"));
    }
    for (size_t number = 0; number < 100; number++) {
        size_t size = 0, bytes = sizeof size;
        mib[2] = bins + (number << number % 60);
        EXPECT_EQ(mallctlbymib(mib, length, &size, &bytes, NULL, 0), ENOENT);
        mib[2] = 0;
        mib[number % 2] = SIZE_MAX - number;
        EXPECT_EQ(mallctlbymib(mib, length, &size, &bytes, NULL, 0), ENOENT);
        EXPECT_EQ(mallctlnametomib("arenas.bin.0.size", mib, &length), 0);
    }
}

static void wrong_sizes_copy_what_fits_and_change_nothing(void) {
    for (size_t i = 0; i < NAMES; i++) {
        const char *text = names[i].text;
        if (!is_read(&names[i]) || strchr(names[i].access, 'M') != NULL) {
            continue;
        }
        for (size_t bytes = 0; bytes < 12; bytes++) {
            unsigned char value[16], right[16] = {0};
            size_t length = bytes, whole = names[i].bytes;
            memset(value, 0x33, sizeof value);
            EXPECT_EQ(mallctl(concrete(text, '0'), right, &whole, NULL, 0), 0);
            int wanted = bytes == names[i].bytes ? 0 : EINVAL;
            EXPECT_EQ(mallctl(concrete(text, '0'), value, &length, NULL, 0), wanted);
            EXPECT_EQ(length, bytes < names[i].bytes ? bytes : names[i].bytes);
            EXPECT_EQ(memcmp(value, right, length), 0);
            EXPECT_EQ(value[length], 0x33);
            bool may_write = strchr(names[i].access, 'W') != NULL;
            if (bytes != names[i].bytes) {
                EXPECT_EQ(mallctl(concrete(text, '0'), NULL, NULL, value, bytes),
                          may_write ? EINVAL : EPERM);
            }
        }
    }
}

static void access_is_checked(void) {
    for (size_t i = 0; i < NAMES; i++) {
        uint64_t value = 0;
        size_t length = names[i].bytes;
        const char *name = concrete(names[i].text, '0');
        if (strchr(names[i].access, 'W') == NULL) {
            EXPECT_EQ(mallctl(name, NULL, NULL, &value, length), EPERM);
            EXPECT_EQ(mallctl(name, NULL, NULL, NULL, 8), EPERM);
        }
        if (strchr(names[i].access, 'R') == NULL) {
            EXPECT_EQ(mallctl(name, &value, &length, NULL, 0), EPERM);
            EXPECT_EQ(mallctl(name, NULL, &length, NULL, 0), EPERM);
        }
    }
}

static void unknown_names_are_enoent(void) {
    static char long_name[10001];
    memset(long_name, 'a', sizeof long_name - 1);
    char dots[] = "....", deep[] = "a.b.c.d.e.f.g.h.i.j";
    const char *unknown[] = {"",
                             ".",
                             "epoch.",
                             ".epoch",
                             "epoch.x",
                             "stats",
                             "opt",
                             "arenas.bin",
                             "arenas.bin.0",
                             "arena.0",
                             "arena.x.purge",
                             "arena.-1.purge",
                             "arena.5000.purge",
                             "arena. 1.purge",
                             "arenas.bin.39.size",
                             "arenas.bin.99999999999999999999.size",
                             "arenas.lextent.196.size",
                             "stats.arenas.#.pactive",
                             "Epoch",
                             "opt.dss ",
                             "thread.allocations",
                             "prof.nothing",
                             dots,
                             deep,
                             long_name};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        uint64_t value;
        size_t length = sizeof value, mib[4], parts = 4;
        EXPECT_EQ(mallctl(unknown[i], &value, &length, NULL, 0), ENOENT);
        if (strchr("soa", unknown[i][0]) == NULL || unknown[i] == long_name) {
            EXPECT_EQ(mallctlnametomib(unknown[i], mib, &parts), ENOENT);
        }
    }
    for (size_t i = 0; i + 6 < sizeof long_name; i += 2) {
        memcpy(long_name + i, "a.", 2);
    }
    EXPECT_EQ(mallctl(long_name, NULL, NULL, NULL, 0), ENOENT);
    memcpy(long_name, "stats.", 6);
    EXPECT_EQ(mallctl(long_name, NULL, NULL, NULL, 0), ENOENT);
}

static void null_arguments_are_einval(void) {
    size_t mib[4], length = 4;
    EXPECT_EQ(mallctl(NULL, NULL, NULL, NULL, 0), EINVAL);
    EXPECT_EQ(mallctlnametomib(NULL, mib, &length), EINVAL);
    EXPECT_EQ(mallctlnametomib("epoch", NULL, &length), EINVAL);
    EXPECT_EQ(mallctlnametomib("epoch", mib, NULL), EINVAL);
    EXPECT_EQ(mallctlbymib(NULL, 1, NULL, NULL, NULL, 0), EINVAL);
    EXPECT_EQ(mallctl("epoch", NULL, &length, NULL, 0), 0); /* nothing to read into */
    EXPECT_EQ(mallctl("epoch", mib, NULL, NULL, 0), 0);
}

static void misaligned_arguments_are_served(void) {
    _Alignas(8) unsigned char space[128];
    size_t mib[2], length = 2, bytes = 8;
    EXPECT_EQ(mallctlnametomib("stats.active", mib, &length), 0);
    memcpy(space + 1, mib, sizeof mib);
    EXPECT_EQ(mallctlbymib((const size_t *)(void *)(space + 1), 2, space + 33, &bytes, NULL, 0), 0);
    memcpy(space + 65, &bytes, sizeof bytes);
    EXPECT_EQ(mallctl("stats.active", space + 99, (size_t *)(void *)(space + 65), NULL, 0), 0);
    EXPECT_EQ(memcmp(space + 33, space + 99, 8), 0);
    memcpy(space + 33, &length, sizeof length);
    EXPECT_EQ(mallctlnametomib("stats.active", (size_t *)(void *)(space + 1),
                               (size_t *)(void *)(space + 33)),
              0);
    EXPECT_EQ(memcmp(space + 1, mib, sizeof mib), 0);
}

static void errno_is_left_alone(void) {
    unsigned arena = 0;
    errno = 77;
    next_epoch();
    READ("arenas.narenas", arena);
    EXPECT_EQ(mallctl("nothing", NULL, NULL, NULL, 0), ENOENT);
    EXPECT_EQ(mallctl("arena.0.purge", NULL, NULL, NULL, 0), 0);
    EXPECT_EQ(errno, 77);
}

int main(void) {
    RUN(every_name_is_found_and_has_its_size);
    RUN(numbers_stand_for_every_name);
    RUN(numbers_in_a_name_may_be_replaced);
    RUN(wrong_sizes_copy_what_fits_and_change_nothing);
    RUN(access_is_checked);
    RUN(unknown_names_are_enoent);
    RUN(null_arguments_are_einval);
    RUN(misaligned_arguments_are_served);
    RUN(errno_is_left_alone);
    return expect_status();
}
