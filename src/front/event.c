/* SPDX-License-Identifier: MIT
 *
 * Ticks of slow paths, and the work that hangs on them. */
#include "front/event.h"

#include "os/lock.h"
#include "os/os.h"

static uint64_t event_due_ns; /* [atomic] the process's next step of time */

hak_event_table_t hak_event_table;
uint8_t hak_event_flush_round;

void hak_event_register(hak_event_t *event, hak_event_scope_t scope) {
    hak_event_table_t *table = &hak_event_table;
    if (table->count == HAK_EVENT_MAX) {
        hak_fatal(HAK_FATAL_INVARIANT, NULL, "EVENT-1: no room for another event");
    }
    table->entry[table->count++] = (struct hak_event_entry){.event = event, .scope = scope};
}

static void event_run(hak_tcache_t *tcache, hak_event_scope_t scope) {
    for (unsigned i = 0; i < hak_event_table.count; i++) {
        if (hak_event_table.entry[i].scope == scope) {
            hak_event_table.entry[i].event(tcache);
        }
    }
}

/* Not while a hook of the C library allocates, with an owner held (os/memory_linux.c). */
static HAK_COLD void event_poll(hak_tcache_t *tcache, bool is_refilling) {
    if (HAK_UNLIKELY(!hak_lock_holds_none())) {
        return;
    }
    bool is_full = (tcache->ticks & (HAK_EVENT_TICKS - 1)) == 0;
    uint64_t now = hak_os_now_ns();
    uint32_t step = (uint32_t)(now / HAK_EVENT_STEP_NS);
    bool is_due = hak_is_due(&event_due_ns, now, HAK_EVENT_STEP_NS);
    uint8_t round = hak_load_relaxed(&hak_event_flush_round);
    tcache->is_refilling = is_refilling;
    hak_tcache_change(tcache, 1);
    if (HAK_UNLIKELY(tcache->flush_round != round)) {
        tcache->flush_round = round;
        hak_tcache_flush(tcache);
    }
    if (is_full || tcache->event_step != step) {
        tcache->event_step = step;
        event_run(tcache, HAK_EVENT_OWN);
    }
    if (is_full || is_due) {
        event_run(tcache, HAK_EVENT_PROCESS);
    }
    if (is_due) {
        event_run(tcache, HAK_EVENT_STEP);
    }
    hak_tcache_change(tcache, -1);
    tcache->is_refilling = false;
}

void hak_event_tick(hak_tcache_t *tcache, bool is_refilling) {
    if (HAK_UNLIKELY((++tcache->ticks & (HAK_EVENT_POLL_TICKS - 1)) == 0)) {
        event_poll(tcache, is_refilling);
    }
}

void hak_event_pass_time(void) {
    if (hak_is_due(&event_due_ns, hak_os_now_ns(), HAK_EVENT_STEP_NS)) {
        event_run(NULL, HAK_EVENT_PROCESS);
        event_run(NULL, HAK_EVENT_STEP);
    }
}

void hak_event_after_fork(void) {
    hak_store_relaxed(&event_due_ns, 0);
}
