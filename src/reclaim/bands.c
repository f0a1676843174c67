/* SPDX-License-Identifier: MIT */
#include "reclaim/bands.h"

#include "base/wanted.h"

typedef struct sums {
    uint64_t taken[HAK_BANDS], freed[HAK_BANDS];
} sums_t;

/* Threads may come between: an estimate. */
static void sums_make(sums_t *sums) {
    *sums = (sums_t){0};
    for (unsigned i = 1; i <= HAK_BAND_UNITS_MOST; i++) {
        size_t bytes = (size_t)i * HAK_UNIT_BYTES, band = (size_t)(hak_band_of(bytes) - hak_band);
        sums->freed[band] += bytes * hak_load_relaxed(&hak_band_flow.large[i].freed);
        sums->taken[band] += bytes * hak_load_relaxed(&hak_band_flow.large[i].taken);
    }
    for (unsigned i = 0; i < HAK_BAND_LOG2_MOST - HAK_BAND_LOG2_LEAST; i++) {
        size_t band = (size_t)(hak_band_of((size_t)2 << (i + HAK_BAND_LOG2_LEAST)) - hak_band);
        sums->freed[band] += hak_load_relaxed(&hak_band_flow.huge[i].freed);
        sums->taken[band] += hak_load_relaxed(&hak_band_flow.huge[i].taken);
    }
    for (unsigned i = 0; i < HAK_BANDS_OF_SLABS; i++) {
        const hak_band_count_t *slabs = &hak_band_slabs[i];
        sums->freed[HAK_BANDS_OF_BLOCKS + i] = hak_load_relaxed(&slabs->freed) * HAK_UNIT_BYTES;
        sums->taken[HAK_BANDS_OF_BLOCKS + i] = hak_load_relaxed(&slabs->taken) * HAK_UNIT_BYTES;
    }
}

static void band_turn(hak_band_t *band, uint64_t taken, uint64_t in_use) {
    uint64_t begin = hak_load_relaxed(&band->begin_taken_bytes);
    hak_store_relaxed(&band->last_taken_bytes, hak_excess(taken, begin));
    hak_store_relaxed(&band->begin_taken_bytes, taken);
    hak_store_relaxed(&band->last_most_bytes, hak_load_relaxed(&band->most_bytes));
    hak_store_relaxed(&band->last_least_bytes, hak_load_relaxed(&band->least_bytes));
    hak_store_relaxed(&band->most_bytes, in_use);
    hak_store_relaxed(&band->least_bytes, in_use);
}

HAK_COLD void hak_bands_step(bool is_turn) {
    sums_t sums;
    sums_make(&sums);
    uint64_t owed = hak_load_relaxed(&hak_band_owed_bytes);
    if (is_turn && owed != 0) {
        hak_store_relaxed(&hak_band_owed_bytes, owed / 2);
    }
    for (unsigned i = 0; i < HAK_BANDS; i++) {
        hak_band_t *band = &hak_band[i];
        uint64_t in_use = hak_excess(sums.taken[i], sums.freed[i]);
        uint64_t most = hak_load_relaxed(&band->most_bytes);
        uint64_t least = hak_load_relaxed(&band->least_bytes);
        hak_store_relaxed(&band->most_bytes, hak_most(most, in_use));
        hak_store_relaxed(&band->least_bytes, hak_least(least, in_use));
        if (is_turn) {
            band_turn(band, sums.taken[i], in_use);
        }
    }
}

HAK_COLD void hak_bands_after_fork(void) {
    sums_t sums;
    sums_make(&sums);
    hak_store_relaxed(&hak_band_owed_bytes, 0);
    for (unsigned i = 0; i < HAK_BANDS; i++) {
        uint64_t in_use = hak_excess(sums.taken[i], sums.freed[i]);
        hak_band[i] = (hak_band_t){.parent_taken_bytes = sums.taken[i],
                                   .begin_taken_bytes = sums.taken[i],
                                   .most_bytes = in_use,
                                   .least_bytes = in_use};
    }
}

/* Little's law: what is free, (most - least) / 2 on average, is passed once by what is allocated.
 */
static uint64_t reuse_ms(uint64_t amplitude, uint64_t taken) {
    uint64_t window_ms = HAK_WINDOW_NS / 1000000;
    return taken == 0 ? 0 : hak_least(amplitude / 2 * window_ms / taken, window_ms);
}

HAK_COLD const char *hak_band_text(unsigned number) {
    static const char text[HAK_BANDS][32] = {
        "blocks of 64 to 256 KiB", "blocks of 256 KiB to 1 MiB", "blocks of 1 to 4 MiB",
        "blocks of 4 to 32 MiB",   "blocks of more than 32 MiB", "slabs of 64 KiB",
        "slabs of 128 KiB",        "slabs of more than 128 KiB"};
    return text[number];
}

HAK_COLD void hak_band_look(unsigned number, hak_band_view_t *view) {
    static const uint16_t from_kib[HAK_BANDS] = {64, 256, 1 << 10, 4 << 10, 32 << 10, 0, 64, 128};
    const hak_band_t *band = &hak_band[number];
    uint64_t most = hak_load_relaxed(&band->last_most_bytes);
    uint64_t least = hak_load_relaxed(&band->last_least_bytes);
    sums_t sums;
    sums_make(&sums);
    uint64_t taken = sums.taken[number] - hak_load_relaxed(&band->parent_taken_bytes);
    uint64_t new_slabs = hak_excess(taken, hak_load_relaxed(&band->reused_bytes));
    bool is_slab = number >= HAK_BANDS_OF_BLOCKS;
    *view = (hak_band_view_t){
        .from_bytes = (uint64_t)from_kib[number] << 10,
        .in_use_bytes = hak_excess(sums.taken[number], sums.freed[number]),
        .taken_bytes = taken,
        .fresh_bytes = is_slab ? new_slabs : hak_load_relaxed(&band->fresh_bytes),
        .returned_bytes = hak_load_relaxed(&band->returned_bytes),
        .again_bytes = hak_load_relaxed(&band->again_bytes),
        .sampled_bytes = hak_load_relaxed(&band->sampled_bytes),
        .touched_bytes = hak_load_relaxed(&band->touched_bytes),
        .most_bytes = most,
        .least_bytes = least,
        .reuse_ms = reuse_ms(hak_excess(most, least), hak_load_relaxed(&band->last_taken_bytes)),
    };
}
