/* SPDX-License-Identifier: MIT
 *
 * The table of options and their values, for the files of this folder. */
#ifndef HAK_CONF_TABLE_H
#define HAK_CONF_TABLE_H

#include "base/compiler.h"
#include "base/fmt.h"
#include "base/words.h"
#include "conf/conf.h"

typedef enum hak_conf_type {
    HAK_CONF_BOOL,
    HAK_CONF_COUNT,
    HAK_CONF_PERCENT,
    HAK_CONF_BYTES,
    HAK_CONF_CHOICE,
    HAK_CONF_TEXT,
} hak_conf_type_t;

enum { HAK_CONF_NAME_BYTES = 16, HAK_CONF_CHOICES = 8, HAK_CONF_POINTS = 5 /* of `memory` */ };

/* No pointers: the dynamic linker would have to write the table. */
typedef struct hak_conf_option {
    char name[HAK_CONF_NAME_BYTES];
    uint64_t initial, least, most; /* a choice's is an index of its names, a text's a length */
    hak_conf_type_t type : 8;
    uint32_t knob_offset : 24; /* in hak_knobs; sealed ones fill an OS page, of 64 KiB at most */
    uint8_t knob_bytes;        /* 0: no knob */
    bool is_live;              /* may change at any time */
} hak_conf_option_t;

typedef struct hak_conf_preset {
    const char *name, *options, *text;
} hak_conf_preset_t;

#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) HAK_CONF_OPTION_##name,
enum {
#include "base/options.def"
    HAK_CONF_OPTIONS,
    HAK_CONF_FIRST_TEXT = HAK_CONF_OPTION_report_file,
    HAK_CONF_TEXTS = HAK_CONF_OPTIONS - HAK_CONF_FIRST_TEXT,
};
#undef HAK_OPTION

/* As the sources said; later changes of hak_option_set are in the knobs alone. */
typedef struct hak_conf_state {
    uint64_t value[HAK_CONF_OPTIONS];
    const char *source[HAK_CONF_OPTIONS];
    const char *profile, *profile_source;
    char text[HAK_CONF_TEXTS][HAK_CONF_TEXT_BYTES];
    bool wants_help;
} HAK_SEALED hak_conf_state_t;

extern const hak_conf_option_t hak_conf_options[HAK_CONF_OPTIONS];
extern const hak_conf_preset_t hak_conf_presets[]; /* the last one has no name */
extern hak_conf_state_t hak_conf_state;            /* [init] */

/* NULL: there is none of that name. */
const hak_conf_option_t *hak_conf_find(const char *name, size_t length);
/* A name of a choice; NULL: it has no so many, or is none. */
const char *hak_conf_choice(const hak_conf_option_t *option, uint64_t index);
/* The value in force. */
uint64_t hak_conf_value(const hak_conf_option_t *option);
/* Where the value of a text is kept. */
char *hak_conf_text_of(const hak_conf_option_t *option);

#endif
