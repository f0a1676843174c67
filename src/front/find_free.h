/* SPDX-License-Identifier: MIT
 *
 * Whether a block that is freed or checked is free already: searches that a suspicion justifies. */
#ifndef HAK_FRONT_FIND_FREE_H
#define HAK_FRONT_FIND_FREE_H

#include "front/tcache.h"

/* Whether a block that has the free marker, or lies in a slab with purged pages, is free. The work
 * per call and per time is bounded; no lock is held. Not found counts as in use. */
HAK_NOINLINE bool hak_find_free_block(const void *block);
/* Fatal if a listed block, whose second word is HAK_LINK_MARK, is marked in its slab's bitmap.
 * Lock-free and in constant time: an owner may be held. */
HAK_COLD void hak_check_not_marked(const void *block);
HAK_INLINE void hak_check_mark(const void *block) {
    if (HAK_UNLIKELY(hak_link_has_mark(block))) {
        hak_check_not_marked(block);
    }
}

#endif
