/* SPDX-License-Identifier: MIT
 *
 * prof.*; private to this folder. */
#ifndef HAK_COMPAT_PROF_H
#define HAK_COMPAT_PROF_H

#include "base/words.h"

/* The value of a name, by its kind; and a change of it, NULL without a value. */
uint64_t hak_compat_prof_read(unsigned kind);
int hak_compat_prof_change(unsigned kind, const uint64_t *value);

#endif
