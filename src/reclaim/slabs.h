/* SPDX-License-Identifier: MIT
 *
 * The pool of idle pages of slabs. */
#ifndef HAK_RECLAIM_SLABS_H
#define HAK_RECLAIM_SLABS_H

#include "slab/owner.h"

/* Purges so many bytes of long runs of idle pages, within a budget of work; is_all: of all runs,
 * whatever it costs. Locks owners for a few slabs at a time. Returns the bytes. */
size_t hak_slabs_give_back(size_t bytes, bool is_all);
/* [atomic] Bytes given back lately; each window halves them. */
extern size_t hak_slabs_given_back;

/* The same for partial slabs of a class of one owner, which is held. Exposed for tests. */
typedef struct hak_slabs_order {
    size_t wanted, given_back; /* bytes */
    bool is_all;               /* short runs, too, whatever it costs */
    int64_t work;              /* left */
    uint32_t refused;          /* calls */
} hak_slabs_order_t;
void hak_slabs_take(hak_owner_t *owner, unsigned sc, uint32_t slabs, hak_slabs_order_t *order);

/* Continues the pass of a held owner for about `work`; returns the work done. Exposed for tests. */
uint32_t hak_slabs_decay(hak_owner_t *owner, uint64_t now, uint32_t work);

#endif
