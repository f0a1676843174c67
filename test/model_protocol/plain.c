/* SPDX-License-Identifier: MIT
 *
 * Plain accesses of the code under test: noted to be undone, and checked for races; see explore.c.
 */
#include "../double/tsan_quiet.h"
#include "machine.h"

#include <string.h>

static race_slot_t *race_slot(uintptr_t address) {
    size_t i = model_mix(address, 0) % RACE_SLOTS;
    while (m.race[i].execution == m.executions && m.race[i].address != address) {
        i = (i + 1) % RACE_SLOTS;
    }
    if (m.race[i].execution != m.executions) {
        m.race[i] = (race_slot_t){.execution = m.executions, .address = address};
    }
    return &m.race[i];
}

void model_race_check(uintptr_t address, bool is_write) {
    const view_t *view = &m.thread[m.now].view;
    race_slot_t *slot = race_slot(address);
    bool is_race = slot->written > view->time[slot->writer];
    for (unsigned t = 0; is_write && t < MODEL_THREADS; t++) {
        is_race = is_race || slot->read[t] > view->time[t];
    }
    if (is_race) {
        model_fail("race: a plain access at %#lx that is not ordered", (unsigned long)address);
    }
    if (is_write) {
        slot->writer = (uint8_t)m.now;
        slot->written = view->time[m.now];
    } else {
        slot->read[m.now] = view->time[m.now];
    }
}

/* Stacks are nobody else's, and state of a thread is changed with the thread. */
static bool is_own(uintptr_t address) {
    if (address - (uintptr_t)model_stacks < sizeof model_stacks || m.executions == 0) {
        return true;
    }
    for (unsigned i = 0; i < m.own_count; i++) {
        if (address - (uintptr_t)m.own[i].address < m.own[i].bytes) {
            return true;
        }
    }
    return false;
}

static void plain_read(uintptr_t address) {
    if (!m.is_alone && !is_own(address)) {
        model_race_check(address, false);
    }
}

static void plain_write(void *address, unsigned bytes) {
    if (!is_own((uintptr_t)address)) {
        model_write_log(address, bytes);
        if (!m.is_alone) {
            model_race_check((uintptr_t)address, true);
        }
    }
}

void model_zero(void *address, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        plain_write((char *)address + at, 4);
    }
    memset(address, 0, bytes);
}

/* What the compiler calls before each plain access, with -fsanitize=thread. */
#define PLAIN_ACCESS(bytes)                                                                        \
    void __tsan_read##bytes(void *address);                                                        \
    void __tsan_read##bytes(void *address) {                                                       \
        plain_read((uintptr_t)address);                                                            \
    }                                                                                              \
    void __tsan_write##bytes(void *address);                                                       \
    void __tsan_write##bytes(void *address) {                                                      \
        plain_write(address, bytes);                                                               \
    }
PLAIN_ACCESS(1)
PLAIN_ACCESS(2)
PLAIN_ACCESS(4)
PLAIN_ACCESS(8)
PLAIN_ACCESS(16)
/* The same of a structure, whose fields are multiples of 4 bytes. */
void __tsan_read_range(void *address, size_t bytes);
void __tsan_read_range(void *address, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        plain_read((uintptr_t)address + at);
    }
}
void __tsan_write_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4) {
        plain_write((char *)address + at, 4);
    }
}
