/* SPDX-License-Identifier: MIT
 *
 * The report of a misused guarded block: the line of every fatal report, then thread and stack of
 * its allocation and free; and the description of any address. Also runs in the signal handler of a
 * trap: no allocation, no lock. */
#include "base/fmt.h"
#include "guard/slot.h"
#include "guard/stack_print.h"
#include "slab/slab_inl.h"
#include "stack/stack.h"

enum { REPORT_DETAIL_BYTES = 160 };

static void event_print(const char *what, const hak_guard_event_t *event) {
    hak_warn("  %s by thread %u:", what, event->thread_id);
    hak_guard_stack_print(event->frame, event->count);
}

static void report_history(const hak_guard_slot_t *slot) {
    if (slot == NULL || slot->block == NULL) {
        return;
    }
    if (slot->freed.thread_id != 0) {
        event_print("freed", &slot->freed);
    }
    event_print("allocated", &slot->allocated);
}

/* "write at 3 bytes into the freed 24-byte block at 0x...": how much was written is not known. */
static void report_place(hak_text_t *text, const char *access, const void *address,
                         const hak_guard_slot_t *slot) {
    const char *at = address, *end = slot->block + slot->bytes;
    bool is_free = hak_load_relaxed(&slot->state) == HAK_GUARD_FREED;
    const char *where = at < slot->block ? "before" : at < end ? "into" : "behind";
    size_t distance = (size_t)(at < slot->block ? slot->block - at
                               : at < end       ? at - slot->block
                                                : at - end);
    hak_text_format(text, "%s%s%z bytes %s the %s%u-byte block at %p", access,
                    access[0] != '\0' ? " at " : "", distance, where, is_free ? "freed " : "",
                    slot->bytes, (const void *)slot->block);
}

static void report_line(hak_fatal_kind_t kind, const char *access, const void *address,
                        const hak_guard_slot_t *slot) {
    HAK_TEXT(text, REPORT_DETAIL_BYTES - 1);
    if (slot != NULL && slot->block != NULL) {
        report_place(&text, access, address, slot);
    }
    hak_fatal_say(kind, address, text.length != 0 ? hak_text_string(&text) : NULL);
}

void hak_guard_report(hak_fatal_kind_t kind, const void *address, const hak_guard_slot_t *slot) {
    hak_guard_event_t found = {.thread_id = hak_os_thread_id()};
    report_line(kind, "", address, slot);
    found.count = hak_stack_walk(found.frame, HAK_GUARD_FRAMES);
    event_print("found", &found);
    report_history(slot);
    hak_guard_stack_hint();
    hak_os_abort();
}

/* --- traps ------------------------------------------------------------------------------------ */

static size_t trap_distance(const hak_guard_slot_t *slot, const char *at) {
    if (slot == NULL || slot->block == NULL) {
        return SIZE_MAX;
    }
    return (size_t)(at < slot->block ? slot->block - at : at - (slot->block + slot->bytes));
}

/* The slot that a guard OS page protects: the nearer of two. */
static const hak_guard_slot_t *trap_nearest(size_t page, const char *at) {
    const hak_guard_slot_t *slots = hak_guard_region.slot;
    const hak_guard_slot_t *left = page > 0 ? &slots[page / 2 - 1] : NULL;
    const hak_guard_slot_t *right =
        page / 2 < hak_guard_region.slot_count ? &slots[page / 2] : NULL;
    const hak_guard_slot_t *nearest =
        trap_distance(left, at) <= trap_distance(right, at) ? left : right;
    return trap_distance(nearest, at) == SIZE_MAX ? NULL : nearest;
}

/* The slot of a wrong access, and its kind; NULL: the address belongs to no guarded block. */
static const hak_guard_slot_t *trap_judge(const char *at, hak_fatal_kind_t *kind) {
    size_t page = hak_guard_page_of(at);
    const hak_guard_slot_t *slot = hak_guard_slot_of(at);
    bool is_inside = slot != NULL;
    if (!is_inside && page != SIZE_MAX) {
        slot = trap_nearest(page, at);
    }
    if (slot == NULL || slot->block == NULL) {
        return NULL;
    }
    if (hak_load_acquire(&slot->state) == HAK_GUARD_FREED) { /* pairs GUARD-6 */
        *kind = HAK_FATAL_USE_AFTER_FREE;
    } else if (is_inside) {
        return NULL; /* the slot is accessible: the fault has another cause */
    } else {
        *kind = at < slot->block ? HAK_FATAL_UNDERFLOW : HAK_FATAL_OVERFLOW;
    }
    return slot;
}

/* Whether an address with a wrong MTE tag, which the kernel does not tell, accessed a block of
 * ours. */
static bool trap_is_wrong_tag(const hak_os_trap_t *trap) {
    return hak_tags_are_on() && trap->is_tag && hak_pagemap_superslab(trap->address) != NULL;
}

static void trap_say_wrong_tag(const hak_os_trap_t *trap) {
    HAK_TEXT(text, REPORT_DETAIL_BYTES - 1);
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), trap->address);
    bool is_free = hak_slab_is_entry(entry) && hak_tag_load(trap->address) == 0;
    hak_text_format(&text, "%s of %s", trap->access,
                    is_free ? "memory that is free, or of an aligned block"
                            : "a block in use by another's address");
    hak_fatal_say(HAK_FATAL_WRONG_TAG, hak_tag_strip(trap->address), hak_text_string(&text));
}

enum { TRAP_NAPS = 1000 }; /* about a second, for another thread's report */
static const uint64_t TRAP_NAP_NS = 1000000;

bool hak_guard_trap(const hak_os_trap_t *trap) {
    hak_guard_event_t access = {.thread_id = hak_os_thread_id(), .frame = {trap->code}};
    hak_stack_at_t at = {.code = trap->code,
                         .stack = (uintptr_t)trap->stack,
                         .frame = (uintptr_t)trap->frame,
                         .link = trap->link,
                         .is_exact = true};
    hak_fatal_kind_t kind;
    const hak_guard_slot_t *slot = trap_judge(trap->address, &kind);
    if (slot == NULL && !trap_is_wrong_tag(trap)) {
        return false;
    }
    /* pairs TELLING */
    for (unsigned i = 0; hak_swap_acquire(&hak_guard_region.is_telling, 1) != 0 && i < TRAP_NAPS;
         i++) {
        hak_os_sleep(TRAP_NAP_NS);
    }
    if (slot != NULL) {
        report_line(kind, trap->access, trap->address, slot);
    } else {
        trap_say_wrong_tag(trap);
    }
    access.count = 1 + hak_stack_walk_from(&at, access.frame + 1, HAK_GUARD_FRAMES - 1);
    event_print("accessed", &access);
    report_history(slot);
    hak_guard_stack_hint();
    hak_store_release(&hak_guard_region.is_telling, 0); /* pairs TELLING */
    return true;
}

/* --- any address ------------------------------------------------------------------------------ */

static void describe_slab(hak_text_t *text, const hak_slab_t *slab, const char *address) {
    size_t offset = (size_t)(address - slab->base);
    size_t block = offset / slab->block_bytes, inside = offset % slab->block_bytes;
    if (inside != 0) {
        hak_text_format(text, "%z bytes into ", inside);
    }
    hak_text_format(text, "%z-byte block %z of the slab at %p", (size_t)slab->block_bytes, block,
                    (void *)slab->base);
    if (block >= slab->capacity) {
        hak_text_str(text, ", behind its last block");
    } else if (block >= hak_single_writer_load(&slab->carved)) {
        hak_text_str(text, ", never handed out");
    }
}

void hak_describe(hak_text_t *text, const void *address) {
    address = hak_tag_strip(address);
    bool is_user = (uintptr_t)address >> 48 == 0; /* the page map ignores those bits */
    uint32_t entry = is_user ? hak_pagemap_get(hak_pagemap_base(), address) : 0;
    uint32_t kind = entry & HAK_KIND_MASK;
    hak_superslab_t *superslab = is_user ? hak_pagemap_superslab(address) : NULL;
    if (hak_slab_is_entry(entry) && superslab != NULL) {
        describe_slab(text, hak_slab_in(superslab, address), address);
    } else if (superslab != NULL) {
        hak_text_str(text, kind != 0 ? "in a large block" : "in memory that is unused now");
    } else if (kind == HAK_KIND_HUGE) {
        hak_text_str(text, "in a huge block");
    } else if (kind == HAK_KIND_GUARD) {
        hak_text_str(text, "watched");
    } else if (kind == HAK_KIND_ZERO_SIZE) {
        hak_text_str(text, "a place of size 0");
    } else {
        hak_text_str(text, "not in memory that we use now");
    }
    hak_text_format(text, "; thread %u", hak_os_thread_id());
}
