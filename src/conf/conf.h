/* SPDX-License-Identifier: MIT
 *
 * Options: one table (options.def), three sources, the later wins:
 *   1. the string `hak_options` a program may define;
 *   2. HAKMEM_PROFILE=name, a row of presets.def;
 *   3. HAKMEM_OPTIONS=key:value,...   ("help" prints the table, a bare key means 1)
 * The environment is ignored in set-uid programs. Anything unknown or out of range gives one
 * warning that names what is valid, and is fatal with strict:1. */
#ifndef HAK_CONF_CONF_H
#define HAK_CONF_CONF_H

#include "base/words.h"

/* Reads all sources and writes the knobs. Once, at process start. */
void hak_conf_read(void);

/* Parses "key:value,..." as from source `source` (a name for messages). Returns the number of
 * mistakes found. The values take effect with hak_conf_apply. */
unsigned hak_conf_parse(const char *text, const char *source);
void hak_conf_apply(void);

/* Effective value of an option by name; false if there is no such option. */
bool hak_conf_get(const char *name, uint64_t *value);

/* Prints the table (help) or the effective values (show) on standard error. */
void hak_conf_print_help(void);
void hak_conf_print_values(void);

#endif
