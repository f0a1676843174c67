/* SPDX-License-Identifier: MIT
 *
 * Slots, shared by the files of this folder. */
#ifndef HAK_GUARD_SLOT_H
#define HAK_GUARD_SLOT_H

#include "base/atomics.h"
#include "base/check.h"
#include "base/fmt.h"
#include "guard/guard.h"
#include "os/optional.h"
#include "span/span.h"

enum { HAK_GUARD_FRAMES = 16 };

typedef enum hak_guard_state {
    HAK_GUARD_UNUSED, /* never in use, or being filled */
    HAK_GUARD_LIVE,
    HAK_GUARD_FREED,
} hak_guard_state_t;

/* The thread and the stack of an allocation or a free. */
typedef struct hak_guard_event {
    uint32_t thread_id; /* 0: none yet */
    uint32_t count;
    uintptr_t frame[HAK_GUARD_FRAMES];
} hak_guard_event_t;

/* Fields that are not atomic belong to the thread that takes the slot to use or free it (GUARD-2);
 * reports read them unordered. */
typedef struct hak_guard_slot {
    uint32_t state;              /* [atomic] */
    uint32_t bytes;              /* as requested, but at least 1 */
    char *block;                 /* NULL: none so far */
    hak_guard_event_t allocated; /* of the block, also once it is free */
    hak_guard_event_t freed;
} hak_guard_slot_t;

typedef struct hak_guard_region {
    char *base;             /* [atomic] NULL: none yet */
    hak_guard_slot_t *slot; /* [lock GUARD] set once, before the base */
    uint32_t slot_count;    /* [lock GUARD] set once, before the base */
    uint32_t slot_most;     /* [lock GUARD] number of records, and of places in the queue */
    uint16_t *queue;        /* [lock GUARD] ring of free slots, oldest first */
    uint32_t queue_first;   /* [lock GUARD] */
    uint32_t queue_count;   /* [lock GUARD] */
    hak_region_t region;    /* [lock GUARD] for statistics */
    bool keeps_pages;       /* [lock GUARD] set once, before the base; free slots stay resident */
    uint32_t is_telling;    /* [atomic] a thread reports a trap */
    bool is_on;             /* [init] the option, once read */
    bool is_stopped;        /* [atomic] sampling ended: GUARD-2 may not hold */
} hak_guard_region_t;

extern hak_guard_region_t hak_guard_region;

/* Number of the OS page in the region (odd for slots); SIZE_MAX: outside. */
HAK_INLINE size_t hak_guard_page_of(const void *address) {
    const char *base = hak_load_acquire(&hak_guard_region.base); /* pairs GUARD-5 */
    size_t page = ((size_t)((uintptr_t)address - (uintptr_t)base)) / hak_os_page_bytes();
    return base == NULL || page > 2 * (size_t)hak_guard_region.slot_count ? SIZE_MAX : page;
}

/* NULL: the address is in no slot. */
HAK_INLINE hak_guard_slot_t *hak_guard_slot_of(const void *address) {
    size_t page = hak_guard_page_of(address);
    return page == SIZE_MAX || page % 2 == 0 ? NULL : &hak_guard_region.slot[page / 2];
}

/* Ends the process with a report of `kind`, found at `frame`. `slot` may be NULL. */
HAK_COLD HAK_NORETURN void hak_guard_report(hak_fatal_kind_t kind, const void *address,
                                            const hak_guard_slot_t *slot);

/* Appends the description of an address to a fatal report. No allocation, no lock; reads no memory
 * of the program. */
void hak_describe(hak_text_t *text, const void *address);

/* Called for every trap of the process. */
bool hak_guard_trap(const hak_os_trap_t *trap);

#endif
