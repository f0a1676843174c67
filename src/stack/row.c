/* SPDX-License-Identifier: MIT
 *
 * Rows with a cache, which spares most walks the search. Entries are two words that any thread
 * writes without a lock: the check word holds the mixed address XOR the row, so that words of two
 * writers do not pass for an entry. */
#include "stack/row.h"

#include "base/atomics.h"
#include "base/bits.h"
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
/* It wraps in keys: see hak_row_forget. */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_row_epoch;   /* [atomic] */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) bool hak_row_has_entries; /* [atomic] */

static void entry_write(row_entry_t *entry, uint64_t check, uint64_t row) {
    hak_store_relaxed(&entry->row, row);
    hak_store_relaxed(&entry->check, check);
}

/* A thread that computed a row meanwhile may write it later, with the epoch before: it would have
 * to outlast 65 536 unloadings, each of which clears it. */
void hak_row_forget(void) {
    hak_add_relaxed(&hak_row_epoch, 1);
    if (hak_swap_relaxed(&hak_row_has_entries, false)) {
        for (unsigned i = 0; i < ROW_ENTRIES; i++) {
            entry_write(&hak_row_cache[i], 0, 0);
        }
    }
}

/* --- unloading ---------------------------------------------------------------------------------
 */

enum { UNLOAD_NAPS = 1000 };
static const uint64_t UNLOAD_NAP_NS = 50000;
static const uint64_t ROW_UNLOADING = 1ull << 32;

/* Threads that read tables of objects that may be unloaded, plus ROW_UNLOADING for each that
 * unloads: in one word, so that of two threads one sees the other. */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint64_t hak_row_users; /* [atomic] */
/* A wait was in vain: nobody waits until none reads. */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) bool hak_row_is_stuck; /* [atomic] */
static HAK_TLS uint8_t row_is_reading, row_unloads;        /* [thread] of these its own */

static void row_leave(void) {
    hak_sub_release(&hak_row_users, 1); /* pairs UNLOAD */
    HAK_SIGNAL_FENCE();
    row_is_reading--;
}

/* false: an object is being unloaded. */
static bool row_enter(void) {
    row_is_reading++;
    HAK_SIGNAL_FENCE();
    bool may = hak_add_acquire(&hak_row_users, 1) < ROW_UNLOADING; /* pairs UNLOAD */
    if (!may) {
        row_leave();
    }
    return may;
}

bool hak_row_unload_begin(void) {
    row_unloads++;
    hak_add_acquire(&hak_row_users, ROW_UNLOADING); /* pairs UNLOAD */
    for (unsigned naps = 0; (uint32_t)hak_load_acquire(&hak_row_users) != 0; naps++) {
        bool is_over = naps == UNLOAD_NAPS || hak_load_relaxed(&hak_row_is_stuck);
        if (is_over || row_is_reading != 0) { /* below this signal handler */
            hak_store_relaxed(&hak_row_is_stuck, is_over);
            hak_row_unload_end(false);
            return false;
        }
        hak_os_sleep(UNLOAD_NAP_NS);
    }
    hak_store_relaxed(&hak_row_is_stuck, false);
    return true;
}

void hak_row_unload_end(bool is_gone) {
    if (is_gone) {
        hak_row_forget();
    }
    hak_sub_release(&hak_row_users, ROW_UNLOADING); /* pairs UNLOAD */
    row_unloads--;
}

void hak_row_after_fork(void) {
    hak_store_relaxed(&hak_row_is_stuck, false);
    hak_store_relaxed(&hak_row_users, row_is_reading + row_unloads * ROW_UNLOADING);
}

/* --- rows ------------------------------------------------------------------------------------- */

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

/* Never equal for two addresses. `object` tells objects apart that the C library unloads and loads
 * by itself. */
static uint64_t row_key(uintptr_t code, uintptr_t object) {
    uint64_t epoch = hak_load_relaxed(&hak_row_epoch) ^ object;
    uint64_t key = (code | epoch << ROW_ADDRESS_BITS) * 0x9e3779b97f4a7c15ull;
    return key ^ key >> 32;
}

static hak_row_t row_compute(const hak_tables_t *tables, uintptr_t code) {
    hak_row_t row = hak_cfi_row(tables, code);
    bool is_signal = row.kind == HAK_ROW_NONE && hak_os_is_signal_return(code);
    row.kind = is_signal ? HAK_ROW_SIGNAL : row.kind;
    return row;
}

/* The newest is first; the oldest goes. */
static void entries_add(row_entry_t *entries, uint64_t key, uint64_t row) {
    for (unsigned way = ROW_WAYS - 1; way > 0; way--) {
        entry_write(&entries[way], hak_load_relaxed(&entries[way - 1].check),
                    hak_load_relaxed(&entries[way - 1].row));
    }
    entry_write(&entries[0], key ^ row, row);
    hak_store_relaxed(&hak_row_has_entries, true);
}

/* Reads the tables. A row that was cut by what is left of the walk is another in the next one. */
static hak_row_t row_read(uintptr_t code, bool is_sure, uint32_t *left, row_entry_t *entries,
                          uint64_t key) {
    uint32_t most = (uint32_t)hak_least(*left, HAK_ROW_BYTES), own = most;
    hak_tables_t tables = {.is_sure = is_sure, .left = &own};
    hak_row_t row = {0};
    if (hak_os_unwind_tables(code, &tables.os)) { /* other code comes and goes */
        row = row_compute(&tables, code);
        if (own != 0 || most == HAK_ROW_BYTES) {
            entries_add(entries, key, row_pack(&row));
        }
    }
    *left -= most - own;
    return row;
}

hak_row_t hak_row_find(uintptr_t code, bool is_sure, uint32_t *left) {
    uint64_t key = row_key(code, hak_os_object_mark(code));
    row_entry_t *entries = &hak_row_cache[key % (ROW_ENTRIES / ROW_WAYS) * ROW_WAYS];
    for (unsigned way = 0; way < ROW_WAYS; way++) {
        uint64_t word = hak_load_relaxed(&entries[way].row);
        if ((hak_load_relaxed(&entries[way].check) ^ word) == key) {
            return row_unpack(word);
        }
    }
    hak_row_t row = {0};
    if (is_sure || row_enter()) {
        row = row_read(code, is_sure, left, entries, key);
        if (!is_sure) {
            row_leave();
        }
    }
    return row;
}

/* x86-64: "add $n, %rsp; ret" or "pop %rbp; ret". Elsewhere such code has frame pointers. */
hak_row_t hak_row_of_return(uintptr_t code) {
    hak_row_t row = {.link = -1};
#if defined(__x86_64__)
    const unsigned char *at = (const unsigned char *)code;
    if (!hak_os_is_readable(at)) { /* 8 bytes */
        return row;
    }
    if (memcmp(at, "\x48\x83\xc4", 3) == 0 && at[3] < 128 && at[3] % 8 == 0 && at[4] == 0xc3) {
        row = (hak_row_t){.kind = HAK_ROW_STACK, .cfa = at[3] / 8 + 1, .link = -1};
    } else if (memcmp(at, "\x5d\xc3", 2) == 0) {
        row = (hak_row_t){.kind = HAK_ROW_STACK, .cfa = 2, .frame = -2, .link = -1};
    }
#else
    (void)code;
#endif
    return row;
}
