/* SPDX-License-Identifier: MIT
 *
 * thread.allocated and its kin; private to this folder. */
#ifndef HAK_COMPAT_THREAD_H
#define HAK_COMPAT_THREAD_H

#include "front/tcache.h"

/* What the calling thread allocated and freed. Unless it is outside of the allocator: by its last
 * question. */
const hak_tally_t *hak_compat_tally(bool is_outside);

#endif
