/* SPDX-License-Identifier: MIT
 *
 * The table of mallctl's names, and the numbers that stand for a name (its "mib"): for a word, a
 * row that begins like the name up to there; for a number, itself. The last word's row is the
 * name's. Private to this folder. */
#ifndef HAK_COMPAT_NAMES_H
#define HAK_COMPAT_NAMES_H

#include "compat/usage.h"

enum { HAK_NAME_BYTES = 48, HAK_NAME_TEXT = 16, HAK_NAME_NUMBERS = 2 };

/* Bytes of a value, by its type; BYTES: of any length. */
enum { HAK_JE_NONE = 0, HAK_JE_BYTES = 0, HAK_JE_BOOL = sizeof(bool) };
enum { HAK_JE_UINT = 4, HAK_JE_U32 = 4, HAK_JE_U64 = 8, HAK_JE_SIZE = 8, HAK_JE_SSIZE = 8 };
enum { HAK_JE_POINTER = sizeof(void *), HAK_JE_TEXT = sizeof(const char *) };

/* Bits; a value that must be read is made by that. */
enum { HAK_JE_N = 0, HAK_JE_R = 1, HAK_JE_W = 2, HAK_JE_RW = 3, HAK_JE_MUST_READ = 4 };
enum { HAK_JE_MR = 5, HAK_JE_MRW = 7, HAK_JE_MUST_WRITE = 8, HAK_JE_MW = 10, HAK_JE_RMW = 11 };

/* What a row stands for; from HAK_JE_VERSION on a case of control.c. */
typedef enum hak_je_kind {
    HAK_JE_KIND_NUMBER,
    HAK_JE_KIND_TEXT,
    HAK_JE_KIND_FIGURE,
    HAK_JE_KIND_SETTING,
    HAK_JE_KIND_AT_START,
    HAK_JE_VERSION,
    HAK_JE_EPOCH,
    HAK_JE_FIRST_PREFIX,
    HAK_JE_BACKGROUND,
    HAK_JE_THREAD_ARENA,
    HAK_JE_TCACHE_ENABLED,
    HAK_JE_TCACHE_FLUSH,
    HAK_JE_TCACHE_FLUSH_ONE,
    HAK_JE_TCACHE_CREATE,
    HAK_JE_TCACHE_DESTROY,
    HAK_JE_PAGE,
    HAK_JE_NARENAS,
    HAK_JE_CREATE,
    HAK_JE_LOOKUP,
    HAK_JE_DECAY,
    HAK_JE_MAINTAIN,
    HAK_JE_PURGE,
    HAK_JE_RESET,
    HAK_JE_DSS,
    HAK_JE_HOOKS,
    HAK_JE_BIN_SIZE,
    HAK_JE_BIN_REGIONS,
    HAK_JE_BIN_SLAB,
    HAK_JE_LEXTENT_SIZE,
    HAK_JE_CURREGS,
    HAK_JE_CURSLABS,
    HAK_JE_NONFULL,
    HAK_JE_QUERY,
    HAK_JE_BATCH_QUERY,
    HAK_JE_ALLOCATED, /* thread.c: the figure, and its address */
    HAK_JE_DEALLOCATED,
    HAK_JE_ALLOCATEDP,
    HAK_JE_DEALLOCATEDP,
    HAK_JE_PROF_ACTIVE, /* prof.c */
    HAK_JE_PROF_LG_SAMPLE,
    HAK_JE_PROF_PREFIX,
    HAK_JE_PROF_DUMP, /* the last two act without a new value, too */
    HAK_JE_PROF_RESET
} hak_je_kind_t;

/* No pointers: the dynamic linker would have to write the table. */
typedef struct hak_je_row {
    char name[HAK_NAME_BYTES];
    char text[HAK_NAME_TEXT];
    int64_t value; /* or the offset of a figure */
    uint8_t bytes, access, kind;
} hak_je_row_t;

extern const hak_je_row_t hak_je_rows[]; /* the last one has no name */

/* The row of such numbers, and those of them that are numbers of the name; NULL: there is none. */
const hak_je_row_t *hak_je_row_find(const size_t *mib, size_t length,
                                    size_t number[HAK_NAME_NUMBERS]);

#endif
