/* SPDX-License-Identifier: MIT
 *
 * The file of a code address, by /proc/self/maps: for one thread at a time, in static memory. */
#include "guard/stack_print.h"
#include "base/atomics.h"
#include "base/check.h"
#include "base/fmt.h"
#include "os/optional.h"
#include "stack/stack.h"

#include <string.h>

enum {
    MODULE_FRAMES = 32,
    MODULE_PATH_BYTES = 128,
    MODULE_TEXT_BYTES = 4096, /* longest line of the file, but for very long paths */
};

typedef struct module_place {
    char path[MODULE_PATH_BYTES]; /* "": none */
    uintptr_t offset;             /* from the mapping of the file's first byte */
    bool is_code;
} module_place_t;

HAK_LOCKED_STATE HAK_LARGE_STATE(4) struct module_state {
    uint32_t is_taken; /* [atomic] the thread that sets it owns all the rest */
    const uintptr_t *addresses;
    unsigned count;
    char last[MODULE_PATH_BYTES]; /* file of the previous mapping */
    uintptr_t last_base;          /* address of its first byte */
    module_place_t place[MODULE_FRAMES];
    char text[MODULE_TEXT_BYTES];
} hak_modules;

/* Address of the file's first byte: its mappings follow each other from there on. */
static uintptr_t module_base(const hak_os_mapping_t *mapping, size_t path_length) {
    struct module_state *state = &hak_modules;
    bool is_same = path_length != 0 && strncmp(state->last, mapping->path, path_length) == 0 &&
                   state->last[path_length] == '\0';
    if (!is_same || mapping->offset == 0) {
        memcpy(state->last, mapping->path, path_length);
        state->last[path_length] = '\0';
        state->last_base = mapping->start - mapping->offset;
    }
    return state->last_base;
}

static void module_match(const hak_os_mapping_t *mapping, void *context) {
    (void)context;
    size_t path_length = strnlen(mapping->path, MODULE_PATH_BYTES - 1);
    uintptr_t base = module_base(mapping, path_length);
    for (unsigned i = 0; i < hak_modules.count; i++) {
        module_place_t *place = &hak_modules.place[i];
        uintptr_t address = hak_modules.addresses[i];
        if (address >= mapping->start && address < mapping->end) {
            memcpy(place->path, mapping->path, path_length);
            place->path[path_length] = '\0';
            place->offset = address - base;
            place->is_code = mapping->is_code;
        }
    }
}

static void module_print(unsigned number, uintptr_t address, const module_place_t *place) {
    if (place != NULL && place->path[0] != '\0') {
        hak_warn("    #%u %p %s+%x", number, (const void *)address, place->path, place->offset);
    } else {
        hak_warn("    #%u %p", number, (const void *)address);
    }
}

static bool modules_take(void) {
    return hak_swap_acquire(&hak_modules.is_taken, 1) == 0; /* pairs MODULE-1 */
}

static void modules_leave(void) {
    hak_store_release(&hak_modules.is_taken, 0); /* pairs MODULE-1 */
}

/* Finds the places of the addresses; the caller has taken the state. false: unknown. */
static bool modules_find(const uintptr_t *addresses, unsigned count) {
    struct module_state *state = &hak_modules;
    state->addresses = addresses;
    state->count = count;
    state->last[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        state->place[i].path[0] = '\0';
        state->place[i].is_code = false;
    }
    return hak_os_mappings(state->text, MODULE_TEXT_BYTES, module_match, NULL);
}

void hak_guard_stack_print(const uintptr_t *addresses, unsigned count) {
    const module_place_t *place = hak_modules.place;
    count = count < MODULE_FRAMES ? count : MODULE_FRAMES;
    bool is_ours = modules_take();
    bool is_known = is_ours && modules_find(addresses, count);
    for (unsigned i = 0; i < count && (!is_known || place[i].is_code); i++) {
        module_print(i, addresses[i], is_known ? &place[i] : NULL);
    }
    if (is_ours) {
        modules_leave();
    }
}

void hak_guard_stack_hint(void) {
    hak_warn("  functions and lines of this report: hakmem symbolize FILE (in a clone ./hakmem)");
}

void hak_guard_stack_after_fork(void) {
    hak_store_relaxed(&hak_modules.is_taken, 0);
}

enum { TRACE_FRAMES = 32 };

void hak_guard_trace(void) {
    uintptr_t addresses[TRACE_FRAMES];
    hak_guard_stack_print(addresses, hak_stack_walk(addresses, TRACE_FRAMES));
    hak_guard_stack_hint();
}
