/* SPDX-License-Identifier: MIT
 *
 * What is printed of options. */
#ifndef HAK_CONF_SHOW_H
#define HAK_CONF_SHOW_H

#include "conf/table.h"

/* Prints the table (help) or what is in force (show) on standard error. */
void hak_conf_print_help(void);
void hak_conf_print_values(void);
/* Appends a value as it is written in HAKMEM_OPTIONS. */
void hak_conf_put_value(hak_text_t *text, const hak_conf_option_t *option, uint64_t value);
/* One line on standard error: the mistake, and the valid values. */
void hak_conf_complain(const char *source, const char *value, size_t length,
                       const hak_conf_option_t *option);
/* No option has the name: the line gives the most similar one. */
void hak_conf_complain_name(const char *source, const char *name, size_t length);
/* No row has the name, or none of the knob `memory`. */
void hak_conf_complain_profile(const char *source, const char *name, size_t length, bool is_memory);

#endif
