/* SPDX-License-Identifier: MIT
 *
 * What figures.c derives from the constants and tables of the core, which it includes before. */
#ifndef HAK_TEST_CHECK_DERIVED_H
#define HAK_TEST_CHECK_DERIVED_H

/* --- size classes ---------------------------------------------------------------------------- */

static uint64_t slab_bytes(unsigned sc) {
    return (uint64_t)hak_sc_info[sc].units * HAK_UNIT_BYTES;
}

static uint64_t slab_most_units(void) {
    uint64_t most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        most = hak_most(most, hak_sc_info[sc].units);
    }
    return most;
}

/* Up to this size each block lies in a slab of one unit. */
static uint64_t slab_of_a_unit_most_bytes(void) {
    unsigned sc = 0;
    while (hak_sc_info[sc + 1].units == 1) {
        sc++;
    }
    return hak_sc_info[sc].bytes;
}

/* Of a slab, behind its last whole block. */
static double slab_rest_percent(void) {
    double most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        double rest = 100.0 * (double)(slab_bytes(sc) % hak_sc_info[sc].bytes);
        most = rest / (double)slab_bytes(sc) > most ? rest / (double)slab_bytes(sc) : most;
    }
    return most;
}

/* --- what threads hold ------------------------------------------------------------------------ */

/* Capacity at first of the bins of blocks up to that size. */
static uint64_t bins_first_bytes(uint32_t block_bytes) {
    uint64_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT && hak_sc_info[sc].bytes <= block_bytes; sc++) {
        sum +=
            (uint64_t)hak_bin_initial_capacity(HAK_BIN_INITIAL_BYTES, sc) * hak_sc_info[sc].bytes;
    }
    return sum;
}

static uint64_t bins_most_bytes(void) {
    uint64_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        sum += (uint64_t)hak_bin_max_capacity(sc) * hak_sc_info[sc].bytes;
    }
    return sum;
}

/* The largest class whose bins begin with so many blocks. */
static uint64_t bin_begins_with(uint32_t initial_bytes, int32_t blocks) {
    uint64_t most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        bool has = hak_bin_initial_capacity(initial_bytes, sc) >= blocks;
        most = has ? hak_sc_info[sc].bytes : most;
    }
    return most;
}

/* What a bin grows by at a time, at most: it doubles. */
static uint64_t bin_step_bytes(void) {
    uint64_t most = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint64_t blocks = (uint64_t)hak_bin_max_capacity(sc);
        most = hak_most(most, hak_most(blocks / 2, 1) * hak_sc_info[sc].bytes);
    }
    return most;
}

/* Threads a CPU from which on bins begin with so many bytes. */
static uint64_t bins_begin_less_threads(uint64_t initial_bytes) {
    return hak_knobs.cache_bytes * BUDGET_SHARE_TIMES / (INITIAL_DIVISOR * initial_bytes);
}

/* The part of a tcache that lies apart. */
static uint64_t tcache_far_bytes(void) {
    return (HAK_SC_COUNT - HAK_SIDES_NEAR) * sizeof(hak_bin_side_t);
}

/* --- metadata --------------------------------------------------------------------------------- */

static double record_percent(void) {
    return 100.0 * offsetof(hak_superslab_t, plane) / HAK_SUPERSLAB_BYTES;
}

static double bits_percent(unsigned sc) {
    return 100.0 * slab_bits_lines(sc) * HAK_LINE_BYTES / (double)slab_bytes(sc);
}

/* If blocks of each class fill the heap in turn: pieces of one length serve each other. */
static double bits_all_percent(void) {
    double most[HAK_META_MOST_LINES + 1] = {0}, sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        double percent = bits_percent(sc), *line = &most[slab_bits_lines(sc)];
        *line = percent > *line ? percent : *line;
    }
    for (unsigned lines = 1; lines <= HAK_META_MOST_LINES; lines++) {
        sum += most[lines];
    }
    return sum;
}

static double planes_percent(unsigned count) {
    return 100.0 * count * sizeof(hak_plane_t) / HAK_SUPERSLAB_BYTES;
}

/* Blocks whose remote marks lie in the first line of a unit. */
static uint64_t remote_first_line_blocks(void) {
    uint64_t words = 0;
    for (; hak_remote_plane((unsigned)words) == 0; words++) {
    }
    return words * 64;
}

/* The smallest block of a class with one line of remote marks. */
static uint64_t remote_one_line_bytes(void) {
    unsigned sc = 0;
    for (; hak_sc_info[sc].blocks > remote_first_line_blocks(); sc++) {
    }
    return hak_sc_info[sc].bytes;
}

static uint64_t summary_lines(uint32_t superslabs) {
    return hak_summary_top(hak_log2(superslabs)) + 1;
}

/* In the table of superslabs and its summaries, of large ones. */
static uint64_t table_place_bytes(void) {
    uint32_t places = 1 << 20;
    size_t bytes = sizeof(hak_superslab_t *) * places;
    return (bytes + (HAK_SPAN_ALIGNS + 2) * hak_summary_bytes(places)) / places;
}

static uint64_t guard_records_bytes(uint64_t slots) {
    return (sizeof(hak_guard_slot_t) + sizeof(uint16_t)) * slots;
}

static uint64_t option_live_count(void) {
    uint64_t count = 0;
    for (unsigned i = 0; i < HAK_CONF_OPTIONS; i++) {
        count += hak_conf_options[i].is_live;
    }
    return count;
}

#endif
