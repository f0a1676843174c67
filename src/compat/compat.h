/* SPDX-License-Identifier: MIT
 *
 * jemalloc's interface, for programs that are tied to it: include/hakmem/jemalloc.h has the
 * contracts, names.def the names of mallctl. Nothing here is on a hit path. There is one heap: all
 * arenas name it, and each cache of tcache.create is the thread's own.
 *
 * The functions have the prefix hak_je_ in the core; the libraries export them without it, too. */
#ifndef HAK_COMPAT_COMPAT_H
#define HAK_COMPAT_COMPAT_H

#define HAK_JE(name) hak_je_##name
#include "hakmem/jemalloc.h"

#include "base/compiler.h"
#include "base/version.h"
#include "base/words.h"
#include "slab/slab.h"

#if HAK_OVERRIDE
#define HAK_JE_ALIAS(name)                                                                         \
    HAK_EXPORT __typeof__(hak_je_##name) name __attribute__((alias("hak_je_" #name)));
#else
#define HAK_JE_ALIAS(name)
#endif

#endif
