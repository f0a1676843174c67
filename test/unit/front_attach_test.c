/* SPDX-License-Identifier: MIT
 *
 * A thread's first operation is a free, while others adopt what exited threads left. */
#include "base/atomics.h"
#include "unit/front.h"

enum { ATTACH_BLOCKS = 150, ATTACH_KEPT = 30, ATTACH_BYTES = 200, ATTACH_ROUNDS = 600 };

static void *given[ATTACH_BLOCKS];
static uint32_t is_running; /* [atomic] */
static unsigned delay;

static void spin(unsigned times) {
    for (volatile unsigned i = 0; i < times; i++) {
    }
}

static void *attach_make_blocks(void *context) {
    for (unsigned i = 0; i < ATTACH_BLOCKS; i++) {
        given[i] = hak_malloc(ATTACH_BYTES);
        memset(given[i], 0x11, ATTACH_BYTES);
    }
    return context;
}

static void *free_first(void *context) {
    hak_store_release(&is_running, 1);
    spin(delay);
    hak_free(context);
    return NULL;
}

/* The page-map entry read before the thread had a tcache may name the very tag it is given then,
 * while the slab has gone to somebody else: the block landed on a list of a slab that was not its
 * thread's any more (SLAB-6, asserted in audit builds). */
UNIT_TEST(free_as_first_operation_beside_adoption_goes_to_the_owner) {
    static void *kept[ATTACH_KEPT];
    pthread_t thread;
    const unsigned rounds = unit_rounds(ATTACH_ROUNDS);
    uint64_t seed = 7;
    for (unsigned round = 0; round < rounds; round++) {
        assert_int_equal(pthread_create(&thread, NULL, attach_make_blocks, NULL), 0);
        pthread_join(thread, NULL); /* its tcache is parked, with a slab that has room */
        hak_collect_thread();       /* and we have nothing of the class */
        delay = (unsigned)(hak_rng_next(&seed) % 600);
        is_running = 0;
        assert_int_equal(pthread_create(&thread, NULL, free_first, given[0]), 0);
        while (hak_load_acquire(&is_running) == 0) {
        }
        spin((unsigned)(hak_rng_next(&seed) % 600));
        for (unsigned i = 0; i < ATTACH_KEPT; i++) {
            kept[i] = hak_malloc(ATTACH_BYTES); /* adopts it */
            memset(kept[i], 0x22, ATTACH_BYTES);
        }
        pthread_join(thread, NULL);
        for (unsigned i = 0; i < ATTACH_KEPT; i++) {
            assert_true(unit_is_filled(kept[i], ATTACH_BYTES, 0x22));
            hak_free(kept[i]);
        }
        for (unsigned i = 1; i < ATTACH_BLOCKS; i++) {
            assert_true(unit_is_filled(given[i], ATTACH_BYTES, 0x11));
            hak_free(given[i]);
        }
    }
    hak_audit_t audit;
    UNIT_EXPECT(hak_audit_walk(&audit), "%s", audit.broken);
}
