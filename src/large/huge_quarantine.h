/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: a freed huge block gives its memory back at once, and its addresses stay
 * inaccessible until many others were freed. Blocks from 64 KiB to 1 MiB become huge blocks for
 * that, and for their guards.
 *
 * Each such block costs kernel calls, and a page fault for each OS page used again. So there is a
 * budget per step of time, counted in page faults; beyond it blocks are served as in other builds:
 * from spans and from the cache. Other builds call nothing here but the flush, which does nothing
 * there. Private to this folder. */
#ifndef HAK_LARGE_HUGE_QUARANTINE_H
#define HAK_LARGE_HUGE_QUARANTINE_H

#include "base/compiler.h"
#include "large/large.h"

/* Pays for a block with a mapping of its own that would lie in a span elsewhere, all of it written
 * to, and its free. 0: no budget. */
uint32_t hak_huge_quarantine_prepay(size_t bytes);

/* Takes a freed mapping, its guard included. false: no budget, or the kernel refused; the mapping
 * is the caller's as it was. What was paid too much in advance comes back. Without locks. */
bool hak_huge_quarantine_put(char *base, size_t bytes, ptrdiff_t shift, uint32_t paid_faults);

HAK_INLINE bool hak_huge_hold(char *base, size_t bytes, ptrdiff_t shift, uint32_t paid_faults) {
    return HAK_HARDEN && hak_huge_quarantine_put(base, bytes, shift, paid_faults);
}

/* Unmaps all; returns whether there was any. Without locks. */
bool hak_huge_quarantine_flush(void);

/* Addresses held back. Takes the lock. */
size_t hak_huge_quarantine_bytes(void);

/* Whether the address lies in a mapping held back. Takes the lock. */
bool hak_huge_quarantine_covers(const void *address);

#endif
