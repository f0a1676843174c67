/* SPDX-License-Identifier: MIT
 *
 * Options: one table (base/options.def), three sources, the later wins; before them, where the
 * library stands for jemalloc's, its own (jemalloc_conf.c):
 *   1. the string `hak_options` a program may define;
 *   2. HAKMEM_PROFILE=name, a row of presets.def;
 *   3. HAKMEM_OPTIONS=key:value,...   ("help" prints the table, a bare key means 1, = is as good
 *      as a colon; memory:NAME stands for the options of one of the first rows of presets.def)
 * After the start hak_option_set, mallctl and the mailbox change options that base/options.def
 * marks LIVE or ALWAYS, mallopt retain_min and retain_idle; the profile's signal switches sampling.
 * The environment is ignored in set-uid programs. An unknown key gives one warning that names the
 * nearest one, a value out of range one that names the valid ones; both are fatal with strict:1. */
#ifndef HAK_CONF_CONF_H
#define HAK_CONF_CONF_H

#include "base/fmt.h"

/* Reads all sources and writes the knobs. Once, at process start. */
void hak_conf_read(void);
/* Hardened builds: makes the values read-only. */
void hak_conf_seal(void);

/* Parses "key:value,key=value,..."; `source` names it in messages. Returns the number of mistakes.
 * hak_conf_apply puts values in force. */
unsigned hak_conf_parse(const char *text, const char *source);
void hak_conf_apply(void);

/* The value in force; false: no such option. A choice's is an index, a text's its length. */
bool hak_conf_get(const char *name, uint64_t *value);
/* The text, or the name of the choice, constant from then on; NULL: no such option, or a number. */
const char *hak_conf_text(const char *name);
/* Appends the value as in HAKMEM_OPTIONS; false: no such option. */
bool hak_conf_put(hak_text_t *text, const char *name);

enum { HAK_CONF_TEXT_BYTES = 256 }; /* the zero included */

typedef enum hak_conf_result {
    HAK_CONF_DONE,
    HAK_CONF_UNKNOWN, /* no such option */
    HAK_CONF_FIXED,   /* only read at start */
    HAK_CONF_INVALID, /* no value of it */
} hak_conf_result_t;

/* Changes a value in force, also in several threads at a time. Prints nothing. */
hak_conf_result_t hak_conf_set(const char *name, const char *value);

/* What jemalloc's options said, for those who ask by its names; else its defaults. Each is a word,
 * or a text. */
typedef struct hak_jemalloc_conf {
    uint64_t is_profiled, is_active;  /* prof, prof_active */
    uint64_t samples;                 /* both */
    uint64_t sample_log2;             /* lg_prof_sample */
    int64_t decay_ms;                 /* dirty_decay_ms; if it is 0 or less: */
    uint64_t retain_min, retain_idle; /* these options without it */
    char prefix[HAK_CONF_TEXT_BYTES]; /* prof_prefix */
} hak_jemalloc_conf_t;
extern hak_jemalloc_conf_t hak_jemalloc_conf; /* [init] */

#endif
