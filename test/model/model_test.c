/* SPDX-License-Identifier: MIT
 *
 * Random operations of one thread against a shadow of every block: contents, sizes, alignment,
 * zero, no overlap, errno; and an audit of the whole core every so many operations.
 *
 *   --seed N    repeat a run      --ops N    operations
 *   --audit N   operations between two audits          --most N   largest block */
#include "model/block.h"

#include <unistd.h>

enum { SLOTS = 600, LIVE_MOST = 160 << 20 };

static model_block_t slots[SLOTS];
static size_t live_bytes;
static uint64_t next_id = 1;

/* --- what holds after every operation --------------------------------------------------------- */

static void expect_apart(const model_run_t *run, const model_block_t *block) {
    for (unsigned i = 0; i < SLOTS; i++) {
        const model_block_t *other = &slots[i];
        if (other != block && other->at != NULL) {
            MODEL_EXPECT(run, block->at + block->usable <= other->at ||
                                  other->at + other->usable <= block->at);
        }
    }
}

/* The block is new, moved or resized: note what it is now, fill what is not filled yet. */
static void block_note(const model_run_t *run, model_block_t *block, void *at, size_t bytes,
                       size_t filled) {
    live_bytes += bytes - (block->at == NULL ? 0 : block->bytes);
    block->at = at;
    block->bytes = bytes;
    block->usable = hak_malloc_usable_size(at);
    MODEL_EXPECT(run, block->usable >= bytes);
    MODEL_EXPECT(run, (uintptr_t)at % 16 == 0);
    MODEL_EXPECT(run, (uintptr_t)at % block->align == 0);
    expect_apart(run, block);
    model_fill(block, filled);
}

/* --- operations ------------------------------------------------------------------------------- */

static void op_malloc(model_run_t *run, model_block_t *block, size_t bytes) {
    uint64_t random = model_random(run);
    block->align = 1;
    void *at = random % 8 == 0 ? hak_alloc_at(bytes, (void *)0x1234) : hak_malloc(bytes);
    MODEL_EXPECT(run, at != NULL);
    if (random % 64 == 1) { /* a watched block has what was asked for */
        size_t usable = hak_malloc_usable_size(at);
        bool is_exact = usable == (bytes == 0 ? 1 : bytes);
        MODEL_EXPECT(run, usable == hak_good_size(bytes) || is_exact);
    }
    block_note(run, block, at, bytes, 0);
}

static void op_calloc(model_run_t *run, model_block_t *block, size_t bytes) {
    size_t count = 1 + model_random(run) % 9;
    block->align = 1;
    unsigned char *at = hak_calloc(count, bytes / count);
    bytes = bytes / count * count;
    MODEL_EXPECT(run, at != NULL);
    MODEL_EXPECT(run, model_is_zero(at, bytes));
    block_note(run, block, at, bytes, 0);
}

static void op_aligned(model_run_t *run, model_block_t *block, size_t bytes) {
    uint64_t random = model_random(run);
    void *at = NULL;
    block->align = (size_t)8 << (random >> 8) % (random % 16 == 0 ? 20 : 11);
    switch (random >> 32 & 3) {
    case 0:
        at = hak_aligned_alloc(block->align, bytes);
        break;
    case 1:
        at = hak_memalign(block->align, bytes);
        break;
    case 2:
        block->align = (size_t)sysconf(_SC_PAGESIZE);
        at = hak_valloc(bytes);
        break;
    default:
        MODEL_EXPECT(run, hak_posix_memalign(&at, block->align, bytes) == 0);
        break;
    }
    MODEL_EXPECT(run, at != NULL);
    block_note(run, block, at, bytes, 0);
}

static void op_realloc(model_run_t *run, model_block_t *block, size_t bytes) {
    size_t kept = bytes < block->bytes ? bytes : block->bytes;
    void *at;
    bytes = bytes == 0 ? 1 : bytes;
    switch (model_random(run) % 4) {
    case 0:
        at = hak_reallocarray(block->at, 1, bytes);
        break;
    case 1:
        at = hak_reallocf(block->at, bytes);
        break;
    default:
        at = hak_realloc(block->at, bytes);
        break;
    }
    MODEL_EXPECT(run, at != NULL);
    MODEL_EXPECT(run, model_is_intact(at, block->id, kept & ~(size_t)7));
    block->align = 1;
    block_note(run, block, at, bytes, kept & ~(size_t)7);
}

static void op_recallocarray(model_run_t *run, model_block_t *block, size_t bytes) {
    size_t kept = bytes < block->bytes ? bytes : block->bytes;
    unsigned char *at = hak_recallocarray(block->at, block->bytes, bytes, 1);
    MODEL_EXPECT(run, at != NULL);
    MODEL_EXPECT(run, model_is_intact(at, block->id, kept & ~(size_t)7));
    MODEL_EXPECT(run, model_is_zero(at + kept, bytes - kept));
    block->align = 1;
    block_note(run, block, at, bytes, kept & ~(size_t)7);
}

static void op_free(model_run_t *run, model_block_t *block) {
    MODEL_EXPECT(run, model_is_intact(block->at, block->id, block->bytes));
    MODEL_EXPECT(run, hak_malloc_usable_size(block->at) == block->usable);
    errno = 4321;
    switch (model_random(run) % 8) {
    case 0:
        if (block->align <= 16) { /* else C has it undefined */
            hak_free_sized(block->at, block->bytes);
        } else {
            hak_free(block->at);
        }
        break;
    case 1:
        hak_free_aligned_sized(block->at, block->align, block->bytes);
        break;
    case 2:
        hak_freezero(block->at, block->bytes);
        break;
    case 3:
        hak_free_at(block->at, block->bytes, (void *)0x1234);
        break;
    default:
        hak_free(block->at);
        break;
    }
    MODEL_EXPECT(run, errno == 4321);
    live_bytes -= block->bytes;
    block->at = NULL;
}

static void op_make(model_run_t *run, model_block_t *block, size_t bytes) {
    uint64_t random = model_random(run);
    block->id = next_id++;
    if (random % 8 == 0) {
        op_calloc(run, block, bytes);
    } else if (random % 8 == 1) {
        op_aligned(run, block, bytes);
    } else {
        op_malloc(run, block, bytes);
    }
}

static void op_change(model_run_t *run, model_block_t *block, size_t bytes) {
    uint64_t random = model_random(run);
    MODEL_EXPECT(run, model_is_intact(block->at, block->id, block->bytes));
    if (random % 16 == 0 && bytes <= 1 << 20) {
        op_recallocarray(run, block, bytes);
    } else {
        op_realloc(run, block, bytes);
    }
}

static volatile size_t too_much = PTRDIFF_MAX; /* the compiler would know and warn */

static void op_impossible(model_run_t *run) {
    void *out = &out;
    errno = 0;
    MODEL_EXPECT(run, hak_malloc(too_much + model_random(run) % 3) == NULL && errno == ENOMEM);
    errno = 0;
    MODEL_EXPECT(run, hak_calloc(too_much / 4, 9) == NULL && errno == ENOMEM);
    MODEL_EXPECT(run, hak_posix_memalign(&out, 24, 8) == EINVAL && out == &out);
    hak_free(NULL);
}

/* Phases of growing and shrinking by turns, so that slabs fill, retire, and memory is purged. */
static void step(model_run_t *run, size_t most) {
    uint64_t random = model_random(run);
    model_block_t *block = &slots[random % SLOTS];
    bool grows = run->op / 3000 % 2 == 0;
    size_t bytes = model_size(run, most);
    if (live_bytes + bytes > LIVE_MOST) {
        bytes %= 1000;
    }
    if (block->at == NULL) {
        if (grows || random >> 32 & 1) {
            op_make(run, block, bytes);
        }
    } else if ((random >> 40) % 4 == 0) {
        op_change(run, block, bytes);
    } else if (!grows || random >> 33 & 1) {
        op_free(run, block);
    }
    if (random >> 48 == 0) {
        hak_malloc_trim(0);
    } else if (random >> 54 == 1) {
        op_impossible(run);
    } else if (random >> 54 == 2) {
        hak_collect_thread();
    }
}

int main(int argc, char **argv) {
    model_run_t run = model_begin(argc, argv);
    uint64_t ops = model_argument(argc, argv, "--ops", 200000);
    uint64_t between = model_argument(argc, argv, "--audit", 1000);
    size_t most = model_argument(argc, argv, "--most", 8 << 20);
    for (; run.op < ops; run.op++) {
        step(&run, most);
        if (run.op % between == 0) {
            model_audit(&run);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slots[i].at != NULL) {
            op_free(&run, &slots[i]);
        }
    }
    model_audit(&run);
    hak_malloc_trim(0);
    model_audit(&run);
    return 0;
}
