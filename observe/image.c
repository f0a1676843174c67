/* SPDX-License-Identifier: MIT */
#include "image.h"

#include "base/bits.h"
#include "base/mailbox.h"
#include "front/event.h"
#include "guard/slot.h"
#include "large/huge_record.h"
#include "reclaim/learner.h"

enum {
    NOTE_TYPE = 1,
    NOTE_BYTES = 12,
    TEXT_MOST = 64 << 10,    /* of the door */
    STRUCT_MOST = 16 << 10,  /* what is read of a structure at once */
    STRUCT_WHOLE = 64 << 20, /* the page map is the largest */
};

obs_image_t *obs_current;

static const char door_text[] =
#include "door/text.def"
    ;

typedef enum member_kind {
    MEMBER_CONSTANT,
    MEMBER_STRUCT,
    MEMBER_VALUE,
    MEMBER_PLACE
} member_kind_t;

/* Of each row, what it is here. */
static const struct member {
    member_kind_t kind;
    uint32_t offset, bytes; /* of a constant, its value and whether another may differ */
} members[HAK_DOOR_ROWS] = {
#define HAK_DOOR_CONSTANT(name) {MEMBER_CONSTANT, (uint32_t)(name), 0},
#define HAK_DOOR_STRUCT(name, type) {MEMBER_STRUCT, 0, 0},
#define HAK_DOOR_ONE(name, type, key, member, bits)                                                \
    {MEMBER_VALUE, offsetof(obs_##name##_t, key), (bits) / 8},
#define HAK_DOOR_MANY(name, type, key, member, bits, count)                                        \
    {MEMBER_VALUE, offsetof(obs_##name##_t, key), (bits) / 8 * (count)},
#define HAK_DOOR_PLACE(name, type, key, member) {MEMBER_PLACE, offsetof(obs_##name##_t, key), 0},
#define HAK_DOOR_END(name)
#include "door/door.def"
};

/* --- structures ------------------------------------------------------------------------------- */

/* `from` lacks the first `skip` bytes of the structure. */
static void decode(const obs_image_t *image, unsigned row, uint64_t at, const char *from,
                   uint32_t skip, void *to) {
    for (unsigned i = row + 1; i < HAK_DOOR_ROWS && members[i].kind >= MEMBER_VALUE; i++) {
        char *place = (char *)to + members[i].offset;
        if (members[i].kind == MEMBER_PLACE) {
            *(uint64_t *)(void *)place = at + image->row[i].offset;
        } else {
            memcpy(place, from + (image->row[i].offset - skip), members[i].bytes);
        }
    }
}

void obs_decode_at(const obs_image_t *image, unsigned row, uint64_t at, const void *from,
                   void *to) {
    decode(image, row, at, from, 0, to);
}

bool obs_fetch_at(obs_image_t *image, unsigned row, uint64_t at, void *to) {
    static char raw[STRUCT_MOST]; /* the library runs on small stacks */
    uint32_t from = image->from[row];
    if (!obs_read(image->reader, at + from, raw, image->end[row] - from)) {
        return false;
    }
    decode(image, row, at, raw, from, to);
    return true;
}

uint64_t obs_root_number(obs_image_t *image, unsigned root, size_t bytes) {
    uint64_t number = 0; /* both processors are little-endian */
    return obs_read(image->reader, image->root[root], &number, bytes) ? number : 0;
}

bool obs_is_hardened(const obs_image_t *image) {
    return image->row[HAK_DOOR_AT_HAK_HARDEN].offset != 0;
}

/* --- the door --------------------------------------------------------------------------------- */

/* A member of the structure whose row is `whole`. */
static bool member_check(obs_image_t *image, unsigned whole, unsigned i) {
    const hak_door_row_t *row = &image->row[i];
    uint64_t end = (uint64_t)row->offset + row->bytes;
    if (end > image->row[whole].bytes) {
        return false;
    }
    if (members[i].kind == MEMBER_VALUE) {
        bool is_first = image->end[whole] == 0;
        image->from[whole] =
            (uint32_t)hak_least(is_first ? row->offset : image->from[whole], row->offset);
        image->end[whole] = (uint32_t)hak_most(image->end[whole], end);
        return row->bytes == members[i].bytes &&
               image->end[whole] - image->from[whole] <= STRUCT_MOST;
    }
    return true;
}

/* The sizes and offsets that a library states. */
static bool rows_check(obs_image_t *image) {
    unsigned whole = 0;
    bool is_good = true;
    for (unsigned i = 0; i < HAK_DOOR_ROWS && is_good; i++) {
        const hak_door_row_t *row = &image->row[i];
        if (members[i].kind == MEMBER_CONSTANT) {
            is_good = row->offset == members[i].offset || i == HAK_DOOR_AT_HAK_HARDEN;
        } else if (members[i].kind == MEMBER_STRUCT) {
            whole = i;
            is_good = row->bytes != 0 && row->bytes <= STRUCT_WHOLE;
        } else {
            is_good = member_check(image, whole, i);
        }
    }
    return is_good;
}

/* The table: hak_door_t. */
static bool door_read(obs_image_t *image, uint64_t at) {
    hak_door_t *door = obs_take(TEXT_MOST);
    obs_reader_t *reader = image->reader;
    size_t bytes = sizeof *door + sizeof door_text;
    bool is_good = door != NULL && obs_read(reader, at, door, sizeof *door) &&
                   door->bytes == bytes && door->row_count == HAK_DOOR_ROWS &&
                   door->text_bytes == sizeof door_text && bytes <= TEXT_MOST &&
                   obs_read(reader, at, door, bytes) &&
                   memcmp(door->text, door_text, sizeof door_text) == 0;
    if (is_good) {
        memcpy(image->row, door->row, sizeof image->row);
        memcpy(image->library, door->library, sizeof image->library);
        image->library[sizeof image->library - 1] = '\0';
        obs_tame(image->library);
        is_good = rows_check(image);
    }
    obs_drop(door);
    return is_good;
}

static bool classes_check(obs_image_t *image) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        obs_class_t info;
        if (!obs_fetch(image, class, obs_root(image, classes) + sc * obs_size(image, class),
                       &info) ||
            info.bytes != hak_sc_info[sc].bytes || info.units != hak_sc_info[sc].units ||
            info.blocks != hak_sc_info[sc].blocks) {
            return false;
        }
    }
    return true;
}

typedef enum door_state { DOOR_NONE, DOOR_OTHER, DOOR_BAD, DOOR_UNUSED, DOOR_GOOD } door_state_t;

/* A way leads from its word. */
static uint64_t way_end(uint64_t at, uint32_t way) {
    return at + (uint64_t)(int64_t)(int32_t)way;
}

/* The allocator of the object that begins at `base`. */
static door_state_t door_open(obs_image_t *image, uint64_t base, uint32_t *version) {
    obs_reader_t *reader = image->reader;
    uint32_t word[HAK_DOOR_ROOTS];
    obs_note_t note;
    if (!obs_memory_note(reader, base, "hakmem", NOTE_TYPE, &note) || note.bytes < NOTE_BYTES ||
        !obs_read(reader, note.at, word, NOTE_BYTES)) {
        return DOOR_NONE;
    }
    *version = word[0];
    if (word[0] != HAK_DOOR_VERSION) {
        return DOOR_OTHER;
    }
    uint64_t door = way_end(note.at + 4, word[1]), roots = way_end(note.at + 8, word[2]);
    if (!obs_read(reader, roots, word, sizeof word)) {
        return DOOR_BAD;
    }
    for (unsigned i = 0; i < HAK_DOOR_ROOTS; i++) {
        image->root[i] = way_end(roots + i * sizeof *word, word[i]);
    }
    if (!door_read(image, door) || !classes_check(image) ||
        !obs_fetch(image, knobs, obs_root(image, knobs), &image->knobs)) {
        return DOOR_BAD;
    }
    return obs_root_number(image, HAK_DOOR_ROOT_meta_bytes, 8) != 0 ? DOOR_GOOD : DOOR_UNUSED;
}

static bool open_fail(obs_reader_t *reader, door_state_t best, uint32_t version,
                      const char *error) {
    const char *what = reader->is_core ? "the core file" : "the process";
    if (best == DOOR_OTHER) {
        return obs_fail(reader, "%s has hakmem with description %u, and this program reads %u",
                        what, version, HAK_DOOR_VERSION);
    }
    return obs_fail(reader, "%s %s%s%.300s", what,
                    best == DOOR_BAD ? "has a description of hakmem that cannot be read"
                                     : "does not use hakmem",
                    error[0] != '\0' ? ": " : "", error);
}

/* There may be several: of a program that is linked with one and was started with another. The one
 * that has served is it. */
bool obs_image_open(obs_image_t *image, obs_reader_t *reader) {
    static obs_image_t found;
    char error[sizeof reader->error] = "";
    door_state_t best = DOOR_NONE;
    uint32_t version = 0, other = 0;
    for (size_t i = 0; i < reader->mapping_count && best < DOOR_GOOD; i++) {
        const obs_mapping_t *mapping = &reader->mapping[i];
        if (mapping->is_file && mapping->offset == 0) {
            *image = (obs_image_t){.reader = reader};
            reader->error[0] = '\0';
            door_state_t state = door_open(image, mapping->start, &version);
            other = state == DOOR_OTHER ? version : other;
            if (state > best || error[0] == '\0') { /* what was missing there */
                memcpy(error, reader->error, sizeof error);
            }
            if (state > best) {
                best = state;
                found = *image;
                found.path = mapping->path;
                found.is_used = state == DOOR_GOOD;
            }
        }
    }
    *image = found;
    obs_current = image;
    return best >= DOOR_UNUSED || open_fail(reader, best, other, error);
}
