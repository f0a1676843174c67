/* SPDX-License-Identifier: MIT
 *
 * Everything rare hangs here, never on a hit path: slow paths count ticks, and every so many of
 * them the registered events run. Upper layers register; life/init.c wires them in one place. */
#ifndef HAK_FRONT_EVENT_H
#define HAK_FRONT_EVENT_H

#include "front/tcache.h"

enum { HAK_EVENT_TICKS = 256 }; /* slow-path events between two runs, a power of two */

typedef void hak_event_t(hak_tcache_t *tcache);

/* Registers an event; at most 8, before any thread ticks. */
void hak_event_register(hak_event_t *event);
HAK_COLD void hak_event_run(hak_tcache_t *tcache);

HAK_INLINE void hak_event_tick(hak_tcache_t *tcache) {
    if (HAK_UNLIKELY((++tcache->ticks & (HAK_EVENT_TICKS - 1)) == 0)) {
        hak_event_run(tcache);
    }
}

/* The allocator behind ours, for pointers that are not ours and for force_libc. life/ fills it in;
 * all members may be NULL. `owns` tells whether it handed the pointer out. */
typedef struct hak_next_allocator {
    bool (*owns)(const void *block);
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void *(*memalign)(size_t align, size_t bytes);
    void (*free)(void *block);
    size_t (*usable_size)(void *block);
} hak_next_allocator_t;

extern hak_next_allocator_t hak_next_allocator; /* [init] */

/* --- up-calls: the two functions of a higher rank the front calls (src/LAYERS) ---------------- */

/* First use of the process: reads options, wires the layers. Cheap when done. */
HAK_COLD void hak_life_process_start(void);

/* First use of a thread: gives it a tcache and arranges for its exit. NULL when the thread cannot
 * have one: it is past its exit hook, metadata ran out, or force_libc is on. */
HAK_COLD hak_tcache_t *hak_life_thread_start(void);

#endif
