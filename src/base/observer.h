/* SPDX-License-Identifier: MIT
 *
 * Functions of the observer's library (observe/at_exit.c), by which the option report and
 * jemalloc's prof.dump work. A program may have it linked in; else it is loaded (life/observer.c).
 */
#ifndef HAK_BASE_OBSERVER_H
#define HAK_BASE_OBSERVER_H

#include "base/compiler.h"
#include "base/version.h"
#include "base/words.h"

typedef void hak_observer_maintain_t(bool is_kept, uint64_t sites, uint64_t samples);

typedef struct hak_observer_order {
    uint32_t door;       /* HAK_DOOR_VERSION */
    const char *report;  /* a choice of the option */
    const char *file;    /* with %p and %e; empty: standard error, of which it keeps a copy */
    const char *program; /* for %e */
    /* Moves the store of the heap profile to `to`, and keeps a copy of its head at `head` from then
     * on. Returns its bytes, 0: there is none; with NULL that alone. */
    size_t (*keep_profile)(char *to, void *head);
    /* NULL: it is not wanted. Set if the profile is kept: to be called now and then, outside of any
     * operation, with whether its head is kept, and how many call sites and samples there were. */
    hak_observer_maintain_t **maintain;
    bool is_hardened; /* nothing calls it */
} hak_observer_order_t;

/* At the start of the program. Returns NULL, or why there will be no report. */
typedef const char *hak_observer_begin_t(const hak_observer_order_t *order);
/* At exit, in a thread that holds no lock of the heap: writes the report. */
typedef void hak_observer_end_t(void);
/* Writes the heap profile to a file, as jemalloc does. false: a line says why not. */
typedef bool hak_observer_dump_t(const char *path);

#define HAK_OBSERVER_SYMBOL __attribute__((visibility("default"), weak))
extern HAK_OBSERVER_SYMBOL hak_observer_begin_t hak_observer_begin;
extern HAK_OBSERVER_SYMBOL hak_observer_end_t hak_observer_end;
extern HAK_OBSERVER_SYMBOL hak_observer_dump_t hak_observer_dump;

#define HAK_OBSERVER_LIBRARY "libhakmem-observe.so." HAK_VERSION_STRING_OF(HAK_VERSION_MAJOR)

#endif
