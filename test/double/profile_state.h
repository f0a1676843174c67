/* SPDX-License-Identifier: MIT
 *
 * What the profile knows of itself, read at one moment. */
#ifndef HAK_TEST_DOUBLE_PROFILE_STATE_H
#define HAK_TEST_DOUBLE_PROFILE_STATE_H

#include "front/hooks.h"
#include "os/lock.h"
#include "profile/profile.h"
#include "profile/sample.h"
#include "profile/store.h"

typedef struct hak_profile_state {
    size_t rate; /* 0: off */
    uint64_t taken, dropped, sites, sites_dropped, live;
    size_t own_bytes;
} hak_profile_state_t;

static inline void hak_profile_look(hak_profile_state_t *state) {
    const hak_profile_store_t *store = &hak_profile_store;
    hak_lock_acquire(HAK_LOCK_PROFILE);
    *state = (hak_profile_state_t){
        .rate = hak_load_relaxed(&hak_profile_rate),
        .taken = store->taken,
        .dropped = store->dropped,
        .sites = store->sites,
        .sites_dropped = store->sites_dropped,
        .live = store->live,
        .own_bytes = store->base != NULL ? store->low + (store->bytes - store->high) : 0,
    };
    hak_lock_release(HAK_LOCK_PROFILE);
}

#endif
