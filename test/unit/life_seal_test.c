/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: what never changes after start is read-only, what is learned is not. In the core
 * that tests link with nothing is sealed at start, as tests write to all of it. */
#include "base/check.h"
#include "base/knobs.h"
#include "conf/table.h"
#include "front/event.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "slab/link.h"
#include "unit/dies.h"

/* In a process of its own: there is no way back. */
UNIT_TEST(sealed_state_is_read_only_and_the_rest_is_not) {
    static void *const fixed[] = {&hak_secret.link,         &hak_secret.factor,
                                  &hak_services.describe,   &hak_services.guard_free,
                                  &hak_event_table.count,   &hak_knobs.force_libc,
                                  &hak_knobs.bin_max_bytes, hak_conf_state.text[0],
                                  &hak_conf_state.profile,  &hak_services.serve};
    static void *const changing[] = {&hak_knobs.retain_min_bytes, &hak_knobs.limit_soft_bytes,
                                     &hak_knobs.is_tight};
    hak_free(hak_malloc(1));
    for (unsigned i = 0; i < UNIT_COUNT(fixed); i++) {
        assert_int_equal(unit_write_signal(fixed[i]), 0);
    }
    hak_life_seal();
    for (unsigned i = 0; i < UNIT_COUNT(fixed); i++) {
        UNIT_EXPECT(unit_write_signal(fixed[i]) == SIGSEGV, "%u", i);
    }
    for (unsigned i = 0; i < UNIT_COUNT(changing); i++) {
        UNIT_EXPECT(unit_write_signal(changing[i]) == 0, "%u", i);
    }
    void *block = hak_malloc(3000000); /* works on */
    assert_non_null(block);
    hak_free(block);
}
