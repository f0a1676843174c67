/* SPDX-License-Identifier: MIT
 *
 * The same shadow with several threads that hand blocks over to each other: what one fills, another
 * checks, resizes and frees. At the end, at rest, the whole core is audited and must be empty.
 *
 *   --seed N   --ops N (of the allocator, per thread)   --threads N   --most N (largest block)
 *   --lives N (of each thread, an audit after each)
 *   --burst N (blocks of a burst now and then, after which superslabs are unmapped) */
#include "model/block.h"
#include "stat/stat.h"

#include <pthread.h>

enum { SLOTS = 120, SHELF = 64, THREADS_MOST = 16, STEPS_PER_BURST = 2048 };

/* Blocks on the shelf belong to nobody: a thread puts one there and takes what lay there before. */
static model_block_t *shelf[SHELF]; /* [atomic] */

typedef struct model_thread {
    pthread_t thread;
    model_run_t run;
    uint64_t ops;
    size_t most;
    size_t burst;               /* blocks */
    model_block_t *slot[SLOTS]; /* records come from the C library's malloc */
} model_thread_t;

static model_thread_t threads[THREADS_MOST];

static model_block_t *block_make(model_run_t *run, size_t most) {
    model_block_t *block = malloc(sizeof *block);
    MODEL_EXPECT(run, block != NULL);
    uint64_t random = model_random(run);
    size_t bytes = model_size(run, most);
    block->align = random % 16 == 0 ? (size_t)32 << (random >> 8) % 9 : 16;
    block->id = random;
    block->bytes = bytes;
    if (random % 16 == 1) {
        block->at = hak_calloc(1, bytes);
        MODEL_EXPECT(run, block->at != NULL && model_is_zero(block->at, bytes));
    } else {
        block->at = block->align > 16 ? hak_memalign(block->align, bytes) : hak_malloc(bytes);
    }
    MODEL_EXPECT(run, block->at != NULL && (uintptr_t)block->at % block->align == 0);
    block->usable = hak_malloc_usable_size(block->at);
    MODEL_EXPECT(run, block->usable >= bytes);
    model_fill(block, 0);
    return block;
}

static void block_drop(const model_run_t *run, model_block_t *block) {
    MODEL_EXPECT(run, model_is_intact(block->at, block->id, block->bytes));
    MODEL_EXPECT(run, hak_malloc_usable_size(block->at) == block->usable);
    hak_free(block->at);
    free(block);
}

static void block_resize(model_run_t *run, model_block_t *block, size_t most) {
    /* half of them in place, if the block is small */
    bool stays = model_random(run) % 2 == 0 && block->usable != 0;
    size_t bytes = stays ? block->usable - block->usable / 8 : model_size(run, most) + 1;
    size_t kept = (bytes < block->bytes ? bytes : block->bytes) & ~(size_t)7;
    MODEL_EXPECT(run, model_is_intact(block->at, block->id, block->bytes));
    block->at = hak_realloc(block->at, bytes);
    MODEL_EXPECT(run, block->at != NULL && model_is_intact(block->at, block->id, kept));
    block->bytes = bytes;
    block->usable = hak_malloc_usable_size(block->at);
    model_fill(block, kept);
}

/* Slabs fill, retire, and their memory goes back, while others look at what seems to be free. */
static void thread_burst(model_thread_t *self) {
    size_t bytes = model_random(&self->run) % self->most;
    void **blocks = calloc(self->burst + 1, sizeof *blocks);
    MODEL_EXPECT(&self->run, blocks != NULL);
    for (size_t i = 0; i < self->burst; i++) {
        blocks[i] = hak_malloc(bytes);
        MODEL_EXPECT(&self->run, blocks[i] != NULL);
    }
    for (size_t i = 0; i < self->burst; i++) {
        hak_free(blocks[i]);
    }
    free(blocks);
    hak_malloc_trim(0);
}

static void thread_step(model_thread_t *self) {
    uint64_t random = model_random(&self->run);
    model_block_t **slot = &self->slot[random % SLOTS];
    if ((random >> 8) % STEPS_PER_BURST == 0) {
        thread_burst(self);
    } else if (*slot == NULL) {
        *slot = block_make(&self->run, self->most);
        self->run.op++;
    } else if ((random >> 32) % 8 == 0 || (self->burst != 0 && model_is_imitation((*slot)->id))) {
        block_resize(&self->run, *slot, self->most);
        self->run.op++;
    } else if ((random >> 32) % 8 < 4) {
        block_drop(&self->run, *slot);
        *slot = NULL;
        self->run.op++;
    } else {
        *slot = __atomic_exchange_n(&shelf[(random >> 40) % SHELF], *slot, __ATOMIC_ACQ_REL);
    }
}

static void *thread_main(void *context) {
    model_thread_t *self = context;
    while (self->run.op < self->ops) {
        thread_step(self);
    }
    return NULL;
}

static void expect_at_rest(const model_run_t *run, bool is_empty) {
    model_audit(run);
    if (is_empty) {
        hak_snapshot_t snapshot;
        hak_stat_collect(&snapshot);
        MODEL_EXPECT(run, snapshot.in_use_bytes == 0);
        MODEL_EXPECT(run, snapshot.mapped_bytes == 0);
    }
}

/* Every thread exits and comes again: its slots are taken on by a new one. */
static void run_threads(unsigned count, uint64_t ops, uint64_t lives) {
    for (uint64_t life = 1; life <= lives; life++) {
        for (unsigned i = 0; i < count; i++) {
            threads[i].ops = life == lives ? ops : ops / lives * life;
            MODEL_EXPECT(&threads[i].run,
                         pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) == 0);
        }
        for (unsigned i = 0; i < count; i++) {
            pthread_join(threads[i].thread, NULL);
        }
        expect_at_rest(&threads[0].run, false);
    }
}

static void drop_all(unsigned count) {
    for (unsigned i = 0; i < SHELF; i++) {
        if (shelf[i] != NULL) {
            block_drop(&threads[0].run, shelf[i]);
        }
    }
    for (unsigned i = 0; i < count * SLOTS; i++) {
        model_block_t *block = threads[i / SLOTS].slot[i % SLOTS];
        if (block != NULL) {
            block_drop(&threads[0].run, block);
        }
    }
}

int main(int argc, char **argv) {
    model_run_t run = model_begin(argc, argv);
    uint64_t ops = model_argument(argc, argv, "--ops", 76000);
    unsigned count = (unsigned)model_argument(argc, argv, "--threads", 4);
    count = count > THREADS_MOST ? THREADS_MOST : count;
    for (unsigned i = 0; i < count; i++) {
        threads[i].run = (model_run_t){.seed = run.seed, .random = hak_mix64(run.seed + i)};
        threads[i].most = model_argument(argc, argv, "--most", 2 << 20);
        threads[i].burst = model_argument(argc, argv, "--burst", 0);
    }
    void *decoy = hak_malloc(64);
    MODEL_EXPECT(&run, decoy != NULL);
    model_decoy = (uintptr_t)decoy;
    run_threads(count, ops, model_argument(argc, argv, "--lives", 3));
    drop_all(count);
    hak_free(decoy);
    hak_malloc_trim(0);
    hak_malloc_trim(0); /* the first sent blocks to parked owners */
    expect_at_rest(&run, true);
    printf("%llu operations\n", (unsigned long long)(ops * count));
    return 0;
}
