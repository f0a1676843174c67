/* SPDX-License-Identifier: MIT
 *
 * The version as text, from the public header. */
#ifndef HAK_BASE_VERSION_H
#define HAK_BASE_VERSION_H

#include "hakmem/hakmem.h"

#define HAK_VERSION_STRING(x) #x
#define HAK_VERSION_STRING_OF(x) HAK_VERSION_STRING(x)
#define HAK_VERSION_DOTTED(a, b, c)                                                                \
    HAK_VERSION_STRING(a) "." HAK_VERSION_STRING(b) "." HAK_VERSION_STRING(c)
#define HAK_VERSION_TEXT HAK_VERSION_DOTTED(HAK_VERSION_MAJOR, HAK_VERSION_MINOR, HAK_VERSION_PATCH)

#endif
