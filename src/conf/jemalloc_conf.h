/* SPDX-License-Identifier: MIT
 *
 * The settings that jemalloc would read. */
#ifndef HAK_CONF_JEMALLOC_CONF_H
#define HAK_CONF_JEMALLOC_CONF_H

#include "base/words.h"

/* Reads them, and sets ours; `text` is a buffer to work in, `prefix` that of the names of variable,
 * link and string. Returns the number of mistakes. */
unsigned hak_jemalloc_conf_read(const char *prefix, char *text, size_t capacity);

#endif
