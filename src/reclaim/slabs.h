/* SPDX-License-Identifier: MIT
 *
 * The pool of the holes of slabs. */
#ifndef HAK_RECLAIM_SLABS_H
#define HAK_RECLAIM_SLABS_H

#include "slab/owner.h"

/* Gives so many bytes of large holes back, as far as that does not hurt; SIZE_MAX: all holes.
 * Owners are locked for some slabs each. Returns the bytes. */
size_t hak_slabs_give_back(size_t bytes);
/* [atomic] Bytes of large holes that went lately. After each window half of them may go again. */
extern size_t hak_slabs_spared;

/* The same of the next partial slabs of a class of one owner, which is held. Exposed for tests. */
typedef struct hak_slabs_order {
    size_t wanted, given_back; /* bytes */
    bool is_all;               /* small holes, too, and whatever it costs */
    int64_t work;              /* left */
    uint32_t refused;          /* calls */
} hak_slabs_order_t;
void hak_slabs_take(hak_owner_t *owner, unsigned sc, uint32_t slabs, hak_slabs_order_t *order);

/* Goes on with the round of an owner, which is held, until about so much work is done; returns what
 * was. Exposed for tests. */
uint32_t hak_slabs_decay(hak_owner_t *owner, uint64_t now, uint32_t work);

#endif
