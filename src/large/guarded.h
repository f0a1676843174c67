/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: large blocks of superslabs between two inaccessible units, and held back once
 * they are freed. Costs four system calls a block, out of the budget of huge_quarantine.h. Private
 * to this folder.
 *
 * Invariants:
 *   GUARDED-1  The units before and after a guarded block are inaccessible, in spans, and have the
 *              kind HAK_KIND_LARGE_BODY, in an entry of their own.
 *   GUARDED-2  All units of a block that is held back, its guards included, are inaccessible, in
 *              spans, and have the entry 0. */
#ifndef HAK_LARGE_GUARDED_H
#define HAK_LARGE_GUARDED_H

#include "large/large.h"

/* *span lies between two guards, and is zero as far as the budget allows. false: no budget, too
 * many, or the kernel refused. */
bool hak_guarded_alloc(hak_partition_t partition, unsigned count, hak_span_t *span);

/* Frees a guarded block, whose entries are its own still. Without locks. */
void hak_guarded_free(hak_superslab_t *superslab, unsigned unit, unsigned count);

/* Moves the guard behind a block of `count` units, so that it has `wanted`, for two system calls;
 * false: others lie there, or the kernel refused. */
bool hak_guarded_grow(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned wanted);

/* Frees what is held back; returns whether there was any. Without locks. */
bool hak_guarded_flush(void);

#endif
