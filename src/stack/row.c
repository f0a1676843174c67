/* SPDX-License-Identifier: MIT
 *
 * Rows with a cache, which spares most walks the search. Entries are two words that any thread
 * writes without a lock: the check word holds the mixed address XOR the row, so that words of two
 * writers do not pass for an entry. */
#include "stack/row.h"

#include "base/atomics.h"
#include "base/bits.h"
#include "os/cpu.h"
#include "os/optional.h"
#include "stack/cfi.h"

#include <string.h>

enum {
    ROW_ENTRIES_LOG2 = 10,
    ROW_ENTRIES = 1 << ROW_ENTRIES_LOG2, /* 16 KiB: about what a server's hot stacks have */
    ROW_WAYS = 4, /* entries for an address, a cache line: callers of one stack seldom compete */
    ROW_ADDRESS_BITS = 48,
};

typedef struct row_entry {
    uint64_t check, row; /* [atomic] */
} row_entry_t;

_Static_assert(ROW_WAYS * sizeof(row_entry_t) == HAK_LINE_BYTES, "a cache line");

HAK_LOCKED_STATE HAK_LARGE_STATE(4) HAK_LINE_ALIGNED row_entry_t hak_row_cache[ROW_ENTRIES];
HAK_LOCKED_STATE HAK_LARGE_STATE(8) uint64_t hak_row_unload_count; /* [atomic] */

static void entry_write(row_entry_t *entry, uint64_t check, uint64_t row) {
    hak_store_relaxed(&entry->row, row);
    hak_store_relaxed(&entry->check, check);
}

/* No thread adds a row of an object that is gone: it is on the stack while its tables are read. */
void hak_row_follow(uint64_t unload_count) {
    if (hak_swap_relaxed(&hak_row_unload_count, unload_count) != unload_count) {
        for (unsigned i = 0; i < ROW_ENTRIES; i++) {
            entry_write(&hak_row_cache[i], 0, 0);
        }
    }
}

static uint64_t row_pack(const hak_row_t *row) {
    uint64_t mask = hak_mask(HAK_ROW_BITS);
    return (uint64_t)row->kind << 3 * HAK_ROW_BITS |
           ((uint64_t)row->cfa & mask) << 2 * HAK_ROW_BITS |
           ((uint64_t)row->frame & mask) << HAK_ROW_BITS | ((uint64_t)row->link & mask);
}

static int32_t row_part(uint64_t word, unsigned place) {
    uint64_t top = word << (64 - HAK_ROW_BITS - place * HAK_ROW_BITS);
    return (int32_t)((int64_t)top >> (64 - HAK_ROW_BITS));
}

static hak_row_t row_unpack(uint64_t word) {
    return (hak_row_t){.kind = (hak_row_kind_t)(word >> 3 * HAK_ROW_BITS),
                       .cfa = row_part(word, 2),
                       .frame = row_part(word, 1),
                       .link = row_part(word, 0)};
}

/* Never equal for two addresses, and not for 0. The mark tells objects apart that the C library
 * unloads and loads by itself. */
static uint64_t row_key(uintptr_t code) {
    uint64_t mark = hak_os_object_mark(code);
    uint64_t key = (code | mark << ROW_ADDRESS_BITS) * 0x9e3779b97f4a7c15ull;
    return key ^ key >> 32;
}

/* The newest is first; the oldest goes. */
static void entries_add(row_entry_t *entries, uint64_t key, uint64_t row) {
    for (unsigned way = ROW_WAYS - 1; way > 0; way--) {
        entry_write(&entries[way], hak_load_relaxed(&entries[way - 1].check),
                    hak_load_relaxed(&entries[way - 1].row));
    }
    entry_write(&entries[0], key ^ row, row);
}

/* Reads the tables. A row that was cut by what is left of the walk is another in the next one. */
static hak_row_t row_read(uintptr_t code, bool is_sure, uint32_t *left, row_entry_t *entries,
                          uint64_t key) {
    uint32_t most = (uint32_t)hak_least(*left, HAK_ROW_BYTES), own = most;
    hak_tables_t tables = {.left = &own};
    if (!hak_os_unwind_tables(code, is_sure, &tables.os)) { /* other code comes and goes */
        return (hak_row_t){0};
    }
    hak_row_t row = hak_cfi_row(&tables, code);
    if (row.kind == HAK_ROW_NONE && hak_os_is_signal_return(code)) {
        row.kind = HAK_ROW_SIGNAL;
    }
    if (own != 0 || most == HAK_ROW_BYTES) {
        entries_add(entries, key, row_pack(&row));
    }
    *left -= most - own;
    return row;
}

hak_row_t hak_row_find(uintptr_t code, bool is_sure, uint32_t *left) {
    uint64_t key = row_key(code);
    row_entry_t *entries = &hak_row_cache[key % (ROW_ENTRIES / ROW_WAYS) * ROW_WAYS];
    for (unsigned way = 0; way < ROW_WAYS; way++) {
        uint64_t word = hak_load_relaxed(&entries[way].row);
        if ((hak_load_relaxed(&entries[way].check) ^ word) == key) {
            return row_unpack(word);
        }
    }
    return row_read(code, is_sure, left, entries, key);
}

hak_row_t hak_row_of_return(uintptr_t code) {
    bool pops_frame = false, is_read = HAK_CPU_OMITS_FRAMES && hak_os_is_readable((void *)code);
    unsigned words = is_read ? hak_cpu_words_returned((void *)code, &pops_frame) : 0;
    return (hak_row_t){.kind = words != 0 ? HAK_ROW_STACK : HAK_ROW_NONE,
                       .cfa = (int32_t)words,
                       .frame = pops_frame ? -2 : 0,
                       .link = -1};
}
