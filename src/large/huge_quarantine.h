/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: a freed huge block gives its memory back at once, and its addresses stay
 * inaccessible until many others were freed. Smaller blocks: guarded.h.
 *
 * Each such block costs kernel calls, and a page fault for each OS page used again. So there is a
 * budget per step of time, counted in page faults; beyond it blocks are served as in other builds:
 * from spans and from the cache. Other builds call nothing here. Private to this folder. */
#ifndef HAK_LARGE_HUGE_QUARANTINE_H
#define HAK_LARGE_HUGE_QUARANTINE_H

#include "base/compiler.h"
#include "large/large.h"

/* What is held back, the oldest first; under lock HUGE. */
enum { HAK_HOLD_SLOTS = 128 }; /* bounds are lower; more only while several threads free at once */

typedef struct hak_hold {
    char *base;
    size_t bytes;
    ptrdiff_t shift; /* CACHE-3 */
} hak_hold_t;

typedef struct hak_hold_ring {
    uint32_t first, count;
    size_t bytes; /* of all */
    hak_hold_t slot[HAK_HOLD_SLOTS];
} hak_hold_ring_t;

/* Ends the oldest while there are more than `most`, or than so many bytes, without the lock;
 * returns whether there were. */
typedef void hak_hold_end_t(const hak_hold_t *hold);
bool hak_hold_trim(hak_hold_ring_t *ring, uint32_t most, size_t most_bytes, hak_hold_end_t *end);
/* false: no slot. */
bool hak_hold_push(hak_hold_ring_t *ring, hak_hold_t hold);

/* Takes what so many page faults cost out of the budget of blocks with guards, half of which is for
 * guards only. false: there is not so much. */
bool hak_huge_quarantine_pay(size_t faults, bool is_guard);

/* Whether blocks get guards (guarded.h): not where RLIMIT_AS was set at the start, nor after a
 * refusal, as a filter may forbid them, nor near a limit, where what is held back, and the guards'
 * own memory, would be missed. */
bool hak_huge_quarantine_has_guards(void);
void hak_huge_quarantine_end_guards(void);

/* Takes a freed mapping, its guard included. false: no budget, or the kernel refused; the mapping
 * is the caller's as it was. Without locks. */
bool hak_huge_quarantine_put(char *base, size_t bytes, ptrdiff_t shift);

/* Unmaps all, and frees what guarded.c holds back; returns whether there was any. Without locks. */
bool hak_huge_quarantine_flush(void);

/* Addresses held back. Takes the lock. */
size_t hak_huge_quarantine_bytes(void);

/* Whether the address lies in a mapping held back. Takes the lock. */
bool hak_huge_quarantine_covers(const void *address);

#endif
