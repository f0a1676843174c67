/* SPDX-License-Identifier: MIT
 *
 * The pool of idle pages of slabs. */
#ifndef HAK_RECLAIM_SLABS_H
#define HAK_RECLAIM_SLABS_H

#include "slab/owner.h"

/* Purges so many bytes of long runs of idle pages, within a budget of work; SIZE_MAX: all of them.
 * Owners are locked for some slabs each. Returns the bytes. */
size_t hak_slabs_give_back(size_t bytes);
/* [atomic] Bytes that were given back lately. After each window half of them may go again. */
extern size_t hak_slabs_given_back;

/* The same of the next partial slabs of a class of one owner, which is held. Exposed for tests. */
typedef struct hak_slabs_order {
    size_t wanted, given_back; /* bytes */
    bool is_all;               /* short runs, too, without a budget */
    int64_t work;              /* left */
    uint32_t refused;          /* calls */
} hak_slabs_order_t;
void hak_slabs_take(hak_owner_t *owner, unsigned sc, uint32_t slabs, hak_slabs_order_t *order);

/* Goes on with the pass of an owner, which is held, until about so much work is done; returns what
 * was. Exposed for tests. */
uint32_t hak_slabs_decay(hak_owner_t *owner, uint64_t now, uint32_t work);

#endif
