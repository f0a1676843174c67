/* SPDX-License-Identifier: MIT
 *
 * Past the bins; private to this folder. */
#ifndef HAK_COMPAT_PACKED_H
#define HAK_COMPAT_PACKED_H

#include "compat/compat.h"

/* A block of the class from the fullest slab; NULL: the bins have to serve it. */
void *hak_compat_take(unsigned sc);
/* Frees a block of any kind; one of a slab goes to it at once. */
void hak_compat_give(void *block);

#endif
