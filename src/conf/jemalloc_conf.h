/* SPDX-License-Identifier: MIT
 *
 * What jemalloc would read. */
#ifndef HAK_CONF_JEMALLOC_CONF_H
#define HAK_CONF_JEMALLOC_CONF_H

#include "base/words.h"

/* Reads it through the buffer, where its names have the prefix. Returns the number of mistakes. */
unsigned hak_jemalloc_conf_read(const char *prefix, char *text, size_t capacity);

#endif
