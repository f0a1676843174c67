/* SPDX-License-Identifier: MIT
 *
 * Are the rows of src/door/door.def those of the committed list, as long as its version is
 * (DOOR-1)? Else observers of that version read something else than libraries of it have.
 *
 *   door_test LIST          compares
 *   door_test LIST write    writes it, with the present version */
#include <stdio.h>
#include <string.h>

#include "base/mailbox.h"
#include "door/door.h"
#include "front/event.h"
#include "front/quarantine.h"
#include "guard/slot.h"
#include "large/huge_record.h"
#include "profile/store.h"
#include "reclaim/learner.h"
#include "slab/slab.h"

#define WITHOUT_VALUE "HAK_HARDEN" /* the two libraries differ in it */

static char text[1 << 16];
static size_t length;

static void put(const char *line) {
    length += (size_t)snprintf(text + length, sizeof text - length, "%s\n", line);
}

static void put_constant(const char *name, unsigned value) {
    char line[128];
    snprintf(line, sizeof line, "constant %s %u", name, value);
    line[strcmp(name, WITHOUT_VALUE) == 0 ? strlen("constant " WITHOUT_VALUE) : strlen(line)] =
        '\0';
    put(line);
}

static void put_many(const char *name, unsigned bits, size_t count) {
    char line[128];
    snprintf(line, sizeof line, "%s %u[%zu]", name, bits, count);
    put(line);
}

static void describe(void) {
#define HAK_DOOR_ROOT(name, variable) put("root " #name);
#include "door/door.def"
#define HAK_DOOR_CONSTANT(name) put_constant(#name, (unsigned)(name));
#define HAK_DOOR_STRUCT(name, type) put("struct " #name);
#define HAK_DOOR_ONE(name, type, key, member, bits) put(#name " " #key " " #bits);
#define HAK_DOOR_MANY(name, type, key, member, bits, count) put_many(#name " " #key, bits, count);
#define HAK_DOOR_PLACE(name, type, key, member) put(#name " " #key);
#define HAK_DOOR_END(name)
#include "door/door.def"
}

static int compare(FILE *list) {
    static char known[sizeof text];
    unsigned version = 0;
    if (fscanf(list, "version %u\n", &version) != 1) {
        fprintf(stderr, "door_test: the list begins with no version\n");
        return 1;
    }
    known[fread(known, 1, sizeof known - 1, list)] = '\0';
    bool is_same = strcmp(known, text) == 0;
    if (is_same && version == HAK_DOOR_VERSION) {
        printf("the door has version %u and %zu bytes of rows, as listed\n", version, length);
        return 0;
    }
    size_t at = 0;
    while (text[at] != '\0' && text[at] == known[at]) {
        at++;
    }
    while (at > 0 && text[at - 1] != '\n') {
        at--;
    }
    fprintf(stderr, "door_test: %s\n  listed: %.*s\n  is:     %.*s\n",
            is_same || version != HAK_DOOR_VERSION
                ? "write the list anew for the new HAK_DOOR_VERSION"
                : "rows changed: raise HAK_DOOR_VERSION (src/door/door.h), and write the list anew",
            (int)strcspn(known + at, "\n"), known + at, (int)strcspn(text + at, "\n"), text + at);
    return 1;
}

int main(int argc, char **argv) {
    bool is_write = argc == 3 && strcmp(argv[2], "write") == 0;
    FILE *list = argc > 1 ? fopen(argv[1], is_write ? "w" : "r") : NULL;
    if (list == NULL) {
        fprintf(stderr, "door_test: which list?\n");
        return 1;
    }
    describe();
    if (is_write) {
        fprintf(list, "version %u\n%s", HAK_DOOR_VERSION, text);
    }
    int status = is_write ? 0 : compare(list);
    fclose(list);
    return status;
}
