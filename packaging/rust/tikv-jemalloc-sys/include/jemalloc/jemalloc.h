/* SPDX-License-Identifier: MIT
 *
 * For C code that is built against this crate (DEP_JEMALLOC_ROOT); with JEMALLOC_NO_PREFIX where the program has the feature
 * unprefixed_malloc_on_supported_platforms. */
#ifndef JEMALLOC_H_
#define JEMALLOC_H_

#ifndef JEMALLOC_NO_PREFIX
#define HAK_JE(name) _rjem_##name
#endif
#include "hakmem/jemalloc.h"

#endif
