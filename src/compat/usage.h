/* SPDX-License-Identifier: MIT
 *
 * How full the slabs are, and the figures of the heap; private to this folder. */
#ifndef HAK_COMPAT_USAGE_H
#define HAK_COMPAT_USAGE_H

#include "compat/compat.h"

/* Of a class. */
typedef struct hak_usage {
    uint64_t slabs, nonfull, used; /* [atomic] blocks never handed out count as in use */
    uint32_t source_below; /* [atomic] rank (hak_slab_rank) of slabs that are to be emptied */
} hak_usage_t;

/* jemalloc's table of small classes, with a quantum of 8 bytes. Ours are shown under the next size,
 * their blocks scaled to the number that the bin's slabs have. */
enum { HAK_JE_BINS = 39, HAK_JE_LEXTENTS = 196 };
size_t hak_je_bin_bytes(unsigned bin);
size_t hak_lextent_bytes(unsigned lextent);
uint32_t hak_je_bin_regions(unsigned bin);
/* HAK_JE_BINS or more: the class is no small one of theirs. */
unsigned hak_je_bin_of_class(unsigned sc);

typedef struct hak_je_bin_figures {
    uint64_t curregs, curslabs, nonfull_slabs; /* in the order of HAK_JE_CURREGS ... */
} hak_je_bin_figures_t;

/* Of the heap, as of the last epoch. */
typedef struct hak_compat_figures {
    uint64_t allocated, active, metadata, resident, mapped, retained;
    uint64_t small_allocated, large_allocated, tcache_bytes, pactive, pdirty, purge_calls,
        purged_pages, scavenger_runs, threads;
    hak_je_bin_figures_t bin[HAK_JE_BINS];
} hak_compat_figures_t;

/* Reads all figures anew. */
void hak_compat_refresh(hak_compat_figures_t *figures);
/* The rank below which slabs of the class are to be emptied, as of some calls ago. */
uint32_t hak_compat_source_below(unsigned sc);

/* What experimental.utilization says of a block: three numbers of its slab, and of its bin. */
typedef struct hak_utilization {
    void *current;
    size_t free, regions, bytes, bin_free, bin_regions;
} hak_utilization_t;
void hak_compat_utilization(const void *block, const hak_compat_figures_t *figures,
                            hak_utilization_t *out);

#endif
