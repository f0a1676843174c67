/* SPDX-License-Identifier: MIT
 *
 * The first word of a free block: the address of the next one, and the free marker.
 *
 *   63                               16 15      0
 *   |  address of the next, or 0       | marker |
 *
 * A block is handed out only with the marker, and that clears it. A block that was freed twice, or
 * written to after its free, lacks the marker when it is reached, and the process aborts. Only a
 * free sets the marker; code that moves blocks between lists checks it first, and so does `free`.
 *
 * A block marked in its slab's bitmap is in no list; a second free would put it into one. Its
 * second word is HAK_LINK_MARK then, which no free changes and every hand-out checks. A program may
 * write the same value; then the bitmap decides.
 *
 * The marker is odd, no pointer ends in it, and no text begins with it. Hardened builds encode the
 * whole first word with a secret and its address, and have no second words. */
#ifndef HAK_SLAB_LINK_H
#define HAK_SLAB_LINK_H

#include "base/check.h"
#include "base/words.h"

enum {
    HAK_LINK_MARKER = 0xa7f9,
    HAK_LINK_MARKER_BITS = 16,
};
#define HAK_LINK_MARK 0xd1b70000u /* one instruction of aarch64 */

/* Random numbers of the process; used by hardened builds. */
typedef struct hak_secret {
    uintptr_t link;          /* [init] low 4 bits 0: no cleared word has the marker */
    uint64_t canary, factor; /* [init] harden.h; the second is odd */
    bool has_tags;           /* [init] tags.h; here because every hand-out loads the line */
} HAK_SEALED hak_secret_t;

extern hak_secret_t hak_secret;

HAK_INLINE uintptr_t hak_link_mask(const void *block) {
    return HAK_HARDEN ? hak_secret.link ^ (uintptr_t)block : 0;
}

/* The first word of a block, free or not, as a link. */
HAK_INLINE uintptr_t hak_link_word(const void *block) {
    return *(const uintptr_t *)block ^ hak_link_mask(block);
}

HAK_INLINE bool hak_link_has_free_marker(uintptr_t word) {
    return (uint16_t)word == HAK_LINK_MARKER;
}

HAK_INLINE void *hak_link_next(uintptr_t word) {
    return (void *)(word >> HAK_LINK_MARKER_BITS);
}

/* The first word of a block before `next`, not encoded. */
HAK_INLINE uintptr_t hak_link_plain(const void *next) {
    return (uintptr_t)next << HAK_LINK_MARKER_BITS | HAK_LINK_MARKER;
}

HAK_INLINE void hak_link_set(void *block, const void *next) {
    *(uintptr_t *)block = hak_link_plain(next) ^ hak_link_mask(block);
}

/* The block is handed out. */
HAK_INLINE void hak_link_clear(void *block) {
    *(uintptr_t *)block = 0;
}

typedef uint32_t HAK_MAY_ALIAS hak_link_mark_t;

/* Whether the second word says that the block is marked in its slab's bitmap. */
HAK_INLINE bool hak_link_has_mark(const void *block) {
    return !HAK_HARDEN && ((const hak_link_mark_t *)block)[2] == HAK_LINK_MARK;
}

HAK_INLINE void hak_link_set_mark(void *block, uint32_t mark) {
    if (!HAK_HARDEN) {
        ((hak_link_mark_t *)block)[2] = mark;
    }
}

/* The first link of a block that was in no list. */
HAK_INLINE void hak_link_begin_plain(void *block, uintptr_t word) {
    *(uintptr_t *)block = word ^ hak_link_mask(block);
    hak_link_set_mark(block, 0);
}

HAK_INLINE void hak_link_begin(void *block, const void *next) {
    hak_link_begin_plain(block, hak_link_plain(next));
}

/* The next block of the list; fatal if the free marker is gone. */
HAK_INLINE void *hak_link_get(const void *block) {
    uintptr_t word = hak_link_word(block);
    hak_require(hak_link_has_free_marker(word), HAK_FATAL_CORRUPT_LINK, block);
    return hak_link_next(word);
}

#endif
