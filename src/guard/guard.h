/* SPDX-License-Identifier: MIT
 *
 * The sampled guard: about one of hak_knobs.guard_rate small blocks that refills hand out gets an
 * OS page of its own between two that nobody may touch.
 *
 *   region   | guard | slot 0 | guard | slot 1 | guard | ... | slot n-1 | guard |  to whole units
 *   slot     | block | canary |                | canary | block | canary |
 *             at the left end, or at the right end as far as its alignment lets it
 *
 * A fault finds a wrong access to such a block at once, its canary finds a wrong write when the
 * block is freed. Programs whose block is not watched pay one subtraction a refill.
 *
 * The front calls the guard through hak_guard_table (front/hooks.h).
 *
 * Invariants:
 *   GUARD-1  The OS page of a slot is accessible from its sampling to its free, and at no other
 *            time, unless the kernel refused to conceal it. Guard OS pages never are.
 *   GUARD-2  A slot is in the queue, or it is in use, or on the way between, by one thread. In the
 *            child of a clean fork none is on the way.
 *   GUARD-3  Free slots are used in the order they were freed in: as late as can be.
 *   GUARD-4  Nothing in the region is written but the slots of blocks in use. Records are apart. */
#ifndef HAK_GUARD_GUARD_H
#define HAK_GUARD_GUARD_H

#include "base/fmt.h"
#include "front/tcache.h"

/* With a guard more, 4 KiB each, just below 1 MiB; below 8 MiB where every block is to be watched.
 */
enum { HAK_GUARD_SLOTS = 127, HAK_GUARD_SLOTS_MOST = 1023 };

/* Options are read: fills hak_guard_table. Before this no block is watched. */
void hak_guard_start(void);

/* An event of each thread: a countdown that is longer than the rate of now allows is drawn anew. */
void hak_guard_follow(hak_tcache_t *tcache);

/* Prints the stack from a frame on to standard error: for hak_check_sink.trace. */
void hak_guard_trace(const void *frame);

/* In the child of a fork: slots that other threads were about to use or to free are free. Unless it
 * is clean, the thread itself may be about to: no block is watched any more, those in use stay so.
 */
HAK_COLD void hak_guard_after_fork(bool is_clean);

/* Appends the description of an address, for the line of a fatal report. Allocates nothing, takes
 * no lock, and reads no memory of the program. */
void hak_describe(hak_text_t *text, const void *address);

#endif
