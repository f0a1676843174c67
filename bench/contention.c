/* SPDX-License-Identifier: MIT
 *
 * A part of libraries built with HAK_CONTENTION: prints what src/os/lock.h counted. At the end of
 * the process each lock that was taken has a line, owners with a number each:
 *
 *   hakmem: lock SPAN 0: taken N, refused N, held N ns, waited N ns */
#include "base/atomics.h"
#include "base/check.h"
#include "base/fmt.h"
#include "os/lock.h"
#include "os/os.h"

static uint64_t contention_ticks, contention_ns; /* at start */

static __attribute__((constructor)) void contention_begin(void) {
    contention_ns = hak_os_now_ns();
    contention_ticks = hak_cpu_ticks();
}

/* Ticks that a lock seems to be held because the time is read twice. */
static uint64_t contention_least(void) {
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t since = hak_cpu_ticks();
        uint64_t ticks = hak_cpu_ticks() - since;
        least = ticks < least ? ticks : least;
    }
    return least;
}

/* `least`: ticks that each time it was taken cost to count. */
static void contention_say(const char *name, unsigned number, const hak_contention_t *count,
                           uint64_t least, double ns_per_tick) {
    uint64_t reading = least * count->taken;
    uint64_t held = count->held > reading ? count->held - reading : 0;
    HAK_TEXT(line, HAK_LINE_TEXT);
    hak_text_format(&line, "hakmem: lock %s %u: taken %l, refused %l, held %l ns, waited %l ns",
                    name, number, count->taken, count->refused,
                    (uint64_t)((double)held * ns_per_tick),
                    (uint64_t)((double)count->waited * ns_per_tick));
    hak_print_line(&line);
}

static __attribute__((destructor)) void contention_end(void) {
    static const char *const names[HAK_LOCK_COUNT] = {
        "START", "COMPAT", "FALLBACK", "REGISTRY", "OWNER",   "GUARD",
        "HUGE",  "SPAN",   "PAGEMAP",  "META",     "LEARNER", "PROFILE",
    };
    uint64_t ns = hak_os_now_ns() - contention_ns, ticks = hak_cpu_ticks() - contention_ticks;
    double ns_per_tick = (double)ns / (double)ticks;
    uint64_t least = contention_least();
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        if (hak_locks[rank].count->taken != 0) {
            contention_say(names[rank], 0, hak_locks[rank].count, least, ns_per_tick);
        }
    }
    unsigned number = 0;
    /* pairs OWNER-LOCKS */
    for (hak_owner_lock_t *l = hak_load_acquire(&hak_owner_locks); l != NULL; l = l->next) {
        contention_say(names[HAK_LOCK_OWNER], number++, l->count, least, ns_per_tick);
    }
}
