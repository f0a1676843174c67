/* SPDX-License-Identifier: MIT */
#include "fuzz/shadow.h"

#include "hakmem/hakmem.h"

#include <unistd.h>

enum { OS_PAGE_LEAST = 4096 };

/* --- new blocks ------------------------------------------------------------------------------- */

enum { MAKE_MALLOC, MAKE_AT, MAKE_CALLOC, MAKE_ALIGNED, MAKE_POSIX, MAKE_MEMALIGN, MAKE_VALLOC };

static void *make_posix(size_t align, size_t bytes) {
    void *at = NULL;
    int error = hak_posix_memalign(&at, align, bytes);
    FUZZ_EXPECT(error == (at == NULL ? ENOMEM : 0) && errno == ERRNO_BEFORE);
    errno = at == NULL ? ENOMEM : ERRNO_BEFORE;
    return at;
}

static void *make_block(unsigned how, size_t align, size_t bytes) {
    switch (how) {
    case MAKE_AT:
        return hak_alloc_at(bytes, "here");
    case MAKE_CALLOC:
        return bytes % 3 == 0 ? hak_calloc(bytes / 3, 3) : hak_calloc(1, bytes);
    case MAKE_ALIGNED:
        return hak_aligned_alloc(align, bytes);
    case MAKE_POSIX:
        return make_posix(align, bytes);
    case MAKE_MEMALIGN:
        return hak_memalign(align - align / 4, bytes); /* is rounded up */
    case MAKE_VALLOC:
        return bytes % 2 == 0 ? hak_valloc(bytes) : hak_pvalloc(bytes);
    default:
        return hak_malloc(bytes);
    }
}

static void op_make(unsigned how, fuzz_tape_t *tape) {
    model_block_t *block = shadow_take_slot(tape);
    size_t align = 1;
    if (how == MAKE_ALIGNED || how == MAKE_POSIX || how == MAKE_MEMALIGN) {
        align = (size_t)8 << fuzz_byte(tape) % 18;
    }
    size_t bytes = shadow_take_size(tape);
    if (block->at != NULL) {
        return;
    }
    void *at = make_block(how, align, bytes);
    if (!shadow_is_served(at)) {
        return;
    }
    FUZZ_EXPECT(how != MAKE_CALLOC || model_is_zero(at, bytes));
    if (how == MAKE_VALLOC && bytes % 2 != 0) { /* pvalloc makes whole OS pages of it */
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        bytes = (bytes + page - 1) & ~(page - 1);
    }
    block->align = how == MAKE_VALLOC ? OS_PAGE_LEAST : align;
    block->id = shadow_next_id++;
    shadow_note(block, at, bytes, 0);
}

/* --- changed blocks --------------------------------------------------------------------------- */

enum { CHANGE_REALLOC, CHANGE_ARRAY, CHANGE_OR_FREE, CHANGE_RECALLOC };

static void *change_block(unsigned how, model_block_t *block, size_t bytes) {
    switch (how) {
    case CHANGE_ARRAY:
        return bytes % 5 == 0 ? hak_reallocarray(block->at, bytes / 5, 5)
                              : hak_reallocarray(block->at, 1, bytes);
    case CHANGE_OR_FREE:
        return hak_reallocf(block->at, bytes);
    case CHANGE_RECALLOC:
        return hak_recallocarray(block->at, block->bytes, bytes, 1);
    default:
        return hak_realloc(block->at, bytes);
    }
}

static void op_change(unsigned how, fuzz_tape_t *tape) {
    model_block_t *block = shadow_take_slot(tape);
    size_t bytes = shadow_take_size(tape);
    if (block->at == NULL) {
        return;
    }
    shadow_expect_intact(block);
    size_t kept = bytes < block->bytes ? bytes : block->bytes;
    unsigned char *at = change_block(how, block, bytes);
    if (bytes == 0 && how != CHANGE_RECALLOC) {
        FUZZ_EXPECT(at == NULL);
        shadow_forget(block);
    } else if (!shadow_is_served(at)) {
        if (how == CHANGE_OR_FREE) {
            shadow_forget(block);
        } else {
            shadow_expect_intact(block);
        }
    } else {
        FUZZ_EXPECT(model_is_intact(at, block->id, kept & ~(size_t)7));
        FUZZ_EXPECT(how != CHANGE_RECALLOC || model_is_zero(at + kept, bytes - kept));
        block->align = 1;
        shadow_note(block, at, bytes, kept & ~(size_t)7);
    }
}

/* --- freed blocks ----------------------------------------------------------------------------- */

enum { FREE_PLAIN, FREE_SIZED, FREE_ALIGNED, FREE_ZERO, FREE_AT, FREE_KINDS };

static void free_block(unsigned how, model_block_t *block) {
    shadow_expect_intact(block);
    switch (how) {
    case FREE_SIZED:
        if (block->align <= 16) { /* else C has it undefined */
            hak_free_sized(block->at, block->bytes);
        } else {
            hak_free(block->at);
        }
        break;
    case FREE_ALIGNED:
        hak_free_aligned_sized(block->at, block->align, block->bytes);
        break;
    case FREE_ZERO:
        hak_freezero(block->at, block->bytes);
        break;
    case FREE_AT:
        hak_free_at(block->at, block->bytes, "here");
        break;
    default:
        hak_free(block->at);
        break;
    }
    shadow_forget(block);
}

static void op_free(unsigned how, fuzz_tape_t *tape) {
    model_block_t *block = shadow_take_slot(tape);
    if (block->at != NULL) {
        free_block(how, block);
    }
}

/* --- groups ----------------------------------------------------------------------------------- */

static void op_fill_group(fuzz_tape_t *tape) {
    model_block_t *group = shadow_groups[fuzz_byte(tape) % GROUPS];
    unsigned count = fuzz_byte(tape);
    size_t bytes = shadow_take_size(tape) % 9000;
    for (unsigned i = 0; i < count && i < GROUP_BLOCKS && shadow_live_bytes < LIVE_MOST; i++) {
        model_block_t *block = &group[i];
        if (block->at == NULL) {
            void *at = hak_malloc(bytes);
            if (!shadow_is_served(at)) {
                return;
            }
            *block = (model_block_t){.align = 1, .id = shadow_next_id++};
            shadow_note(block, at, bytes, 0);
        }
    }
}

/* Every so manyth, from somewhere on: whole slabs, or holes. */
static void op_thin_group(fuzz_tape_t *tape) {
    model_block_t *group = shadow_groups[fuzz_byte(tape) % GROUPS];
    unsigned first = fuzz_byte(tape), step = 1 + fuzz_byte(tape) % 32;
    for (unsigned i = first; i < GROUP_BLOCKS; i += step) {
        if (group[i].at != NULL) {
            free_block(i % 16 == 0 ? FREE_SIZED : FREE_PLAIN, &group[i]);
        }
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static volatile size_t too_much = PTRDIFF_MAX; /* the compiler would know and warn */

static void expect_refused(const void *at, int error) {
    FUZZ_EXPECT(at == NULL && errno == error);
    errno = ERRNO_BEFORE;
}

static void op_impossible(fuzz_tape_t *tape) {
    size_t bytes = too_much + 1 + fuzz_byte(tape);
    void *out = &out;
    expect_refused(hak_malloc(bytes), ENOMEM);
    expect_refused(hak_calloc(bytes / 2, 5), ENOMEM);
    expect_refused(hak_reallocarray(NULL, bytes, 3), ENOMEM);
    expect_refused(hak_aligned_alloc(bytes | 1, 8), EINVAL);
    expect_refused(hak_aligned_alloc(too_much / 2 + 1, 8), ENOMEM);
    FUZZ_EXPECT(hak_posix_memalign(&out, 24, 8) == EINVAL && out == &out);
    FUZZ_EXPECT(hak_good_size(bytes) == 0);
    hak_free(NULL);
}

static void op_look(fuzz_tape_t *tape) {
    size_t bytes = shadow_take_size(tape), good = hak_good_size(bytes);
    FUZZ_EXPECT(good >= bytes && hak_good_size(good) == good);
    for (const model_block_t *block = shadow_slots; block < shadow_slots + SLOTS; block++) {
        if (block->at != NULL) {
            shadow_expect_intact(block);
        }
    }
}

typedef void fuzz_op_t(fuzz_tape_t *tape);

static void op_collect(fuzz_tape_t *tape) {
    (void)tape;
    hak_collect_thread();
}

static void op_trim(fuzz_tape_t *tape) {
    hak_malloc_trim((size_t)fuzz_byte(tape) << 14);
}

static void op_relent(fuzz_tape_t *tape) {
    (void)tape;
    fuzz_os_relent();
}

void fuzz_operation(unsigned code, fuzz_tape_t *tape) {
    static fuzz_op_t *const others[] = {
        op_fill_group, op_thin_group, op_collect,    op_trim, fuzz_os_advance,
        fuzz_os_fail,  op_relent,     fuzz_os_limit, op_look, op_impossible,
    };
    enum { MAKES = MAKE_VALLOC + 1, CHANGES = CHANGE_RECALLOC + 1 };
    static const unsigned all = MAKES + CHANGES + FREE_KINDS + sizeof others / sizeof *others;
    errno = ERRNO_BEFORE;
    code %= all;
    if (code < MAKES) {
        op_make(code, tape);
    } else if (code < MAKES + CHANGES) {
        op_change(code - MAKES, tape);
    } else if (code < MAKES + CHANGES + FREE_KINDS) {
        op_free(code - MAKES - CHANGES, tape);
    } else {
        others[code - MAKES - CHANGES - FREE_KINDS](tape);
    }
    FUZZ_EXPECT(errno == ERRNO_BEFORE);
}

void fuzz_operations_begin(void) {
    shadow_next_id = 1;
    fuzz_os_begin();
}

void fuzz_operations_end(void) {
    shadow_expect_sound();
    errno = ERRNO_BEFORE;
    for (model_block_t *block = shadow_slots; block < shadow_slots + SLOTS; block++) {
        if (block->at != NULL) {
            free_block(FREE_PLAIN, block);
        }
    }
    for (unsigned i = 0; i < GROUPS * GROUP_BLOCKS; i++) {
        model_block_t *block = &shadow_groups[i / GROUP_BLOCKS][i % GROUP_BLOCKS];
        if (block->at != NULL) {
            free_block(FREE_PLAIN, block);
        }
    }
    fuzz_os_end();
}
