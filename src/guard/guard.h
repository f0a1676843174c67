/* SPDX-License-Identifier: MIT
 *
 * The sampled guard: about one of hak_knobs.guard_rate small blocks that refills hand out, and by
 * default some more (allowance.h), get an OS page of their own between two inaccessible ones.
 *
 *   region   | guard | slot 0 | guard | slot 1 | guard | ... | slot n-1 | guard |  to whole units
 *   slot     | block | canary |                | canary | block | canary |
 *             at the left end, or at the right end as far as its alignment lets it
 *
 * A fault reveals a wrong access to such a block at once; the canary reveals a wrong write when the
 * block is freed. Other blocks pay one subtraction a refill. The front calls the guard through
 * hak_services (base/wanted.h).
 *
 * Invariants:
 *   GUARD-1  The OS page of a slot is accessible from its sampling to its free, and at no other
 *            time, unless the kernel refused to conceal it. Guard OS pages never are.
 *   GUARD-2  A slot is in the queue, in use, or held by one thread in between. In the child of a
 *            clean fork no slot is in between.
 *   GUARD-3  Free slots are reused in the order of their frees: as late as possible.
 *   GUARD-4  Only the slots of blocks in use are written. Records lie outside the region. */
#ifndef HAK_GUARD_GUARD_H
#define HAK_GUARD_GUARD_H

#include "front/tcache.h"

/* One more guard, at 4 KiB each: just below 1 MiB; below 8 MiB where every block is guarded. */
enum { HAK_GUARD_SLOTS = 127, HAK_GUARD_SLOTS_MOST = 1023 };

/* The default of the option guard_rate, with which an allowance permits extra blocks. */
enum { HAK_GUARD_RATE = 131072 };

/* After the options are read: installs the handler of faults, if it can, and registers. */
void hak_guard_start(void);

/* An event of each thread: redraws a countdown that is too long for the present rate, or for what
 * the allowance permits. */
void hak_guard_follow(hak_tcache_t *tcache);

/* In the child of a fork: slots that other threads were about to use or free become free. Unless it
 * is clean, the thread itself may hold one: sampling stops, guarded blocks stay guarded. */
HAK_COLD void hak_guard_after_fork(bool is_clean);

#endif
