/* SPDX-License-Identifier: MIT
 *
 * Whether a block that is freed or checked is free already: the searches that a suspicion is worth.
 */
#ifndef HAK_FRONT_FIND_FREE_H
#define HAK_FRONT_FIND_FREE_H

#include "front/tcache.h"

/* Whether a block that has the tag of a free one, or lies in a slab with purged pages, is free. The
 * work of a call, and of all per time, is bounded; no lock is held. Not found counts as in use. */
HAK_NOINLINE bool hak_find_free_block(const void *block);
/* Fatal if a block that is freed is free already. */
HAK_INLINE void hak_check_not_free(const void *block, uint32_t entry) {
    bool is_suspect =
        hak_link_looks_free(hak_link_word(block)) || hak_slab_entry_has_purged_pages(entry);
    if (HAK_UNLIKELY(is_suspect) && hak_find_free_block(block)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
}
/* Fatal if a block of a list, the second word of which says so, is marked in its slab's bitmap.
 * Takes no lock, in constant time: an owner may be held. */
HAK_COLD void hak_check_not_marked(const void *block);
HAK_INLINE void hak_check_mark(const void *block) {
    if (HAK_UNLIKELY(hak_link_has_mark(block))) {
        hak_check_not_marked(block);
    }
}

#endif
