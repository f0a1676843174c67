/* SPDX-License-Identifier: MIT
 *
 * The operating system of the world: waits and naps are the explorer's, and any error ends all. */
#include "os/os.h"

#include "base/check.h"
#include "front/find_free.h"
#include "world.h"

#define WORLD_FATAL_TEXT(name, text) text,

static const uint64_t WORLD_LONG_NS = 10000000000; /* longer than anybody waits */

uint64_t world_time;
uintptr_t hak_huge_page_due; /* no touch of a slab is timed */

void hak_huge_page_touch(char *block) {
    (void)block;
}

void hak_fatal(hak_fatal_kind_t kind, const void *address, const char *detail) {
    static const char *const text[] = {HAK_FATAL_KINDS(WORLD_FATAL_TEXT)};
    model_fail("fatal: %s: %p %s", text[kind], address, detail != NULL ? detail : "");
}

/* What a thread wrote looks like a mark: never here. */
void hak_check_not_marked(const void *block) {
    hak_fatal(HAK_FATAL_DOUBLE_FREE, block, "marked");
}

unsigned hak_os_cpu_count(void) {
    return WORLD_OWNERS;
}

void hak_os_relax(void) {
}

void hak_os_sleep(uint64_t ns) {
    model_reach(MARK_SLEEP);
    if (model_nap()) {
        model_reach(MARK_LATE);
        world_time += ns + WORLD_LONG_NS;
    }
}

uint64_t hak_os_now_ns(void) {
    return world_time + 1;
}

void hak_os_wait(uint32_t *word, uint32_t expected) {
    model_reach(MARK_SLEEP);
    model_wait(MODEL_WORD(word), expected);
}

void hak_os_wake_one(uint32_t *word) {
    model_wake_one(MODEL_WORD(word));
}
