/* SPDX-License-Identifier: MIT */
#include "fuzz/shadow.h"

#include "double/audit.h"
#include "hakmem/hakmem.h"
#include "stat/stat.h"

model_block_t shadow_slots[SLOTS];
model_block_t shadow_groups[GROUPS][GROUP_BLOCKS];
size_t shadow_live_bytes;
uint64_t shadow_next_id;

/* --- input ------------------------------------------------------------------------------------ */

model_block_t *shadow_take_slot(fuzz_tape_t *tape) {
    return &shadow_slots[fuzz_byte(tape) % SLOTS];
}

size_t shadow_take_size(fuzz_tape_t *tape) {
    unsigned kind = fuzz_byte(tape), value = fuzz_pair(tape);
    size_t size;
    switch (kind % 8) {
    case 4:
        size = value;
        break;
    case 5:
        size = (size_t)value * 16 + kind / 8;
        break;
    case 6:
        size = ((size_t)1 << kind / 8 % 23) + value % 9;
        size = size < 4 ? size : size - 4;
        break;
    case 7:
        size = (size_t)value * 40 + kind / 8;
        break;
    default:
        size = value % 1100;
        break;
    }
    return shadow_live_bytes + size > LIVE_MOST ? size % 1100 : size;
}

/* --- what holds after every operation --------------------------------------------------------- */

static void expect_apart(const model_block_t *block) {
    for (const model_block_t *other = shadow_slots; other < shadow_slots + SLOTS; other++) {
        FUZZ_EXPECT(other == block || other->at == NULL || block->at + block->usable <= other->at ||
                    other->at + other->usable <= block->at);
    }
}

bool shadow_is_served(const void *at) {
    FUZZ_EXPECT(errno == (at == NULL ? ENOMEM : ERRNO_BEFORE));
    FUZZ_EXPECT(at != NULL || fuzz_may_refuse);
    errno = ERRNO_BEFORE;
    return at != NULL;
}

void shadow_note(model_block_t *block, void *at, size_t bytes, size_t filled) {
    shadow_live_bytes += bytes - (block->at == NULL ? 0 : block->bytes);
    block->at = at;
    block->bytes = bytes;
    block->usable = hak_malloc_usable_size(at);
    FUZZ_EXPECT(block->usable >= bytes);
    FUZZ_EXPECT((uintptr_t)at % 16 == 0 && (uintptr_t)at % block->align == 0);
    expect_apart(block);
    model_fill(block, filled);
    memset(block->at + bytes, 0xa5, block->usable - bytes); /* may be used, and is no zero */
}

void shadow_expect_intact(const model_block_t *block) {
    FUZZ_EXPECT(model_is_intact(block->at, block->id, block->bytes));
    FUZZ_EXPECT(hak_malloc_usable_size(block->at) == block->usable);
}

void shadow_forget(model_block_t *block) {
    FUZZ_EXPECT(errno == ERRNO_BEFORE);
    shadow_live_bytes -= block->bytes;
    block->at = NULL;
}

void shadow_expect_sound(void) {
    hak_audit_t audit;
    bool is_sound = hak_audit_walk(&audit);
    if (!is_sound) {
        dprintf(fuzz_report_fd, "audit: %s broken at %p\n", audit.broken, audit.where);
    }
    FUZZ_EXPECT(is_sound);
}

void fuzz_operations_rest(void) {
    hak_snapshot_t snapshot;
    hak_malloc_trim(0);
    hak_malloc_trim(0); /* the first sent blocks to parked owners */
    shadow_expect_sound();
    hak_stat_collect(&snapshot);
    FUZZ_EXPECT(snapshot.in_use_bytes == 0 && snapshot.large_count == 0);
    FUZZ_EXPECT(snapshot.huge_count == 0 && snapshot.mapped_bytes == 0);
}
