/* SPDX-License-Identifier: MIT
 *
 * The description of the core for an observer outside the process: an ELF note, and the table that
 * it leads to. Nothing here runs.
 *
 *   note "hakmem", type 1, 4-byte words:   version | way to hak_door | way to the list of roots
 *   list of roots, 4-byte words:           way to each, in order
 *
 * A way is the distance from the word itself, so nothing needs the dynamic linker. The table has a
 * row for each constant, structure and member of door.def, in that order. Its text names them: an
 * observer that has the same text reads the rows by their number.
 *
 *   DOOR-1  Of one version, all libraries have the same text. Offsets and sizes may differ. */
#ifndef HAK_DOOR_DOOR_H
#define HAK_DOOR_DOOR_H

#include "base/counters.h"

#define HAK_DOOR_VERSION 8

typedef struct hak_door_row {
    uint32_t offset; /* of a member; the value of a constant */
    uint32_t bytes;  /* of a member, or of all the structure */
} hak_door_row_t;

/* The number of each row. */
enum {
#define HAK_DOOR_CONSTANT(name) HAK_DOOR_AT_##name,
#define HAK_DOOR_STRUCT(name, type) HAK_DOOR_AT_##name,
#define HAK_DOOR_ONE(name, type, key, member, bits) HAK_DOOR_AT_##name##_##key,
#define HAK_DOOR_MANY(name, type, key, member, bits, count) HAK_DOOR_AT_##name##_##key,
#define HAK_DOOR_PLACE(name, type, key, member) HAK_DOOR_AT_##name##_##key,
#define HAK_DOOR_END(name)
#include "door/door.def"
    HAK_DOOR_ROWS
};

enum {
#define HAK_DOOR_ROOT(name, variable) HAK_DOOR_ROOT_##name,
#include "door/door.def"
    HAK_DOOR_ROOTS
};

typedef struct hak_door {
    uint32_t bytes;      /* of all this */
    uint32_t row_count;  /* HAK_DOOR_ROWS */
    uint32_t text_bytes; /* with the zero at the end */
    char library[20];    /* its version */
    hak_door_row_t row[HAK_DOOR_ROWS];
    char text[]; /* door/text.def */
} hak_door_t;

extern const hak_door_t hak_door;

#endif
