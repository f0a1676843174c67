/* SPDX-License-Identifier: MIT
 * large ITERS SLOTS MIN MAX [TOUCH]
 *
 * Measures: large blocks. Each step picks a random slot; a full one is freed, an empty one gets a
 * block of a log-uniform size (64 KiB to 32 MiB by default), of which TOUCH percent of the pages of
 * 4 KiB are written, evenly spread; with TOUCH 0 only the first. Shows what mappings, page faults
 * and memory given back too early cost.
 * Known from: the loop of random_mixed; sizes as image, video and column buffers have them.
 * Does not measure: threads, what a program does with its buffers, huge pages (spread writes defeat
 * them).
 * Live bytes count the written pages only.
 * One operation is one step: half a pair. */
#include "bench.h"

enum { OS_PAGE = 4096 };

typedef struct slot {
    unsigned char *block;
    size_t size;
} slot_t;

/* The used bytes lie STEP apart. */
static void touch_pages(const slot_t *slot, size_t step, unsigned char stamp) {
    for (size_t at = 0; at < slot->size; at += step) {
        slot->block[at] = stamp;
    }
}

static uint64_t read_pages(const slot_t *slot, size_t step) {
    uint64_t sum = 0;
    for (size_t at = 0; at < slot->size; at += step) {
        sum += slot->block[at];
    }
    return sum;
}

static uint64_t used_bytes(const slot_t *slot, size_t step) {
    return (slot->size + step - 1) / step * OS_PAGE;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "ITERS SLOTS MIN MAX [TOUCH]");
    uint64_t iterations = bench_arg(1, 5000, 1, UINT64_MAX / 2, "ITERS");
    uint32_t slots = (uint32_t)bench_arg(2, 32, 1, 1u << 20, "SLOTS");
    uint32_t min = (uint32_t)bench_arg(3, 1 << 16, 1, 1u << 30, "MIN");
    uint32_t max = (uint32_t)bench_arg(4, min > 1 << 25 ? min : 1 << 25, min, 1u << 31, "MAX");
    uint32_t touch = (uint32_t)bench_arg(5, 10, 0, 100, "TOUCH");
    size_t step = touch != 0 ? (size_t)OS_PAGE * 100 / touch : SIZE_MAX / 4;
    slot_t *table = bench_need(calloc(slots, sizeof *table), slots * sizeof *table);
    bench_rng_t rng = bench_rng(slots);
    uint64_t live = 0, peak = 0, sum = 0;

    uint64_t warm_up = iterations / 10;
    for (uint64_t i = 0; i < warm_up + iterations; i++) {
        if (i == warm_up) {
            bench_start();
        }
        slot_t *slot = &table[bench_below(&rng, slots)];
        if (slot->block != NULL) {
            sum = sum * 3 + read_pages(slot, step);
            live -= used_bytes(slot, step);
            free(slot->block);
            slot->block = NULL;
        } else {
            slot->size = bench_log_between(&rng, min, max);
            slot->block = bench_need(malloc(slot->size), slot->size);
            touch_pages(slot, step, (unsigned char)i);
            live += used_bytes(slot, step);
            peak = live > peak ? live : peak;
        }
    }
    bench_stop(iterations);

    for (uint32_t i = 0; i < slots; i++) {
        free(table[i].block);
    }
    free(table);
    bench_live_peak(peak);
    return bench_finish(sum);
}
