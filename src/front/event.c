/* SPDX-License-Identifier: MIT */
#include "front/event.h"

enum { EVENT_MAX = 8 };

static hak_event_t *events[EVENT_MAX]; /* [init] */
static unsigned event_count;           /* [init] */

hak_next_allocator_t hak_next_allocator;

void hak_event_register(hak_event_t *event) {
    if (event_count < EVENT_MAX) {
        events[event_count++] = event;
    }
}

void hak_event_run(hak_tcache_t *tcache) {
    for (unsigned i = 0; i < event_count; i++) {
        events[i](tcache);
    }
}
