/* SPDX-License-Identifier: MIT
 *
 * Probes: armed while a tracer counts itself in. base_probe_test.py runs this under a tracer
 * (HAKMEM_PROBED=1), and looks at the notes. */
#include "base/probe.h"
#include "unit/unit.h"

UNIT_TEST(probes_are_armed_while_somebody_listens) {
    if (getenv("HAKMEM_PROBED") == NULL) {
        assert_false(hak_probe_is_armed());
    }
    uint16_t *listeners[] = {&hak_probe_alloc_listeners, &hak_probe_free_listeners};
    for (unsigned i = 0; i < UNIT_COUNT(listeners); i++) {
        uint16_t before = hak_load_relaxed(listeners[i]);
        hak_store_relaxed(listeners[i], before + 1);
        assert_true(hak_probe_is_armed());
        hak_store_relaxed(listeners[i], before);
    }
}

UNIT_TEST(probes_are_passed_without_a_tracer) {
    hak_probe_alloc((const void *)0x1230, 48, 524312);
    hak_probe_free((const void *)0x1230);
    assert_int_equal(hak_probe_is_armed(), getenv("HAKMEM_PROBED") != NULL);
}
