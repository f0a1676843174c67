/* SPDX-License-Identifier: MIT
 *
 * Start, stop, reset, fork. */
#include "profile/profile.h"

#include "base/knobs.h"
#include "base/probe.h"
#include "front/hooks.h"
#include "os/lock.h"
#include "os/optional.h"
#include "profile/chance.h"
#include "profile/sample.h"
#include "profile/store.h"

HAK_LOCKED_STATE size_t hak_profile_option;   /* [atomic] profile_rate when it was last followed */
HAK_LOCKED_STATE uint32_t hak_profile_toggle; /* [atomic] the signal came, and nobody has acted */
hak_observer_maintain_t *hak_profile_maintain;
HAK_LOCKED_STATE bool hak_profile_is_armed; /* [atomic] sampling is on because of a probe */

static bool profile_begin(size_t rate, bool is_whole) {
    size_t most = hak_load_relaxed(&hak_knobs.profile_bytes);
    if (hak_os_is_secure() || hak_load_relaxed(&hak_knobs.force_libc) ||
        !hak_profile_store_open(most, rate, is_whole)) {
        return false;
    }
    hak_chance_begin();
    hak_sample_open();
    hak_sample_set_rate(rate);
    return true;
}

bool hak_profile_set_rate(size_t rate) {
    if (rate != 0) {
        return profile_begin(rate, false);
    }
    if (hak_load_relaxed(&hak_profile_rate) != 0) {
        hak_sample_set_rate(0);
        hak_profile_store_pause();
        hak_sample_release();
    }
    return true;
}

void hak_profile_reset(void) {
    hak_profile_store_reset();
}

size_t hak_profile_keep(char *to, void *head) {
    return hak_profile_store_move(to, head);
}

/* --- what asks for it ------------------------------------------------------------------------- */

static void profile_signalled(void) {
    hak_store_relaxed(&hak_profile_toggle, 1);
}

static size_t profile_wanted_rate(void) {
    size_t rate = hak_load_relaxed(&hak_knobs.profile_rate);
    return rate != 0 ? rate : HAK_PROFILE_RATE;
}

/* A listener without another's rate gets the option's, and samples stop when it goes. */
static void profile_follow_probe(void) {
    bool is_armed = hak_probe_is_armed();
    if (HAK_UNLIKELY(is_armed && hak_load_relaxed(&hak_profile_rate) == 0)) {
        hak_store_relaxed(&hak_profile_is_armed, true);
        (void)hak_profile_set_rate(profile_wanted_rate());
    } else if (HAK_UNLIKELY(!is_armed && hak_load_relaxed(&hak_profile_is_armed))) {
        hak_store_relaxed(&hak_profile_is_armed, false);
        (void)hak_profile_set_rate(hak_load_relaxed(&hak_knobs.profile_rate));
    }
}

/* A forked child has no store, where its parent's is in a file, until it lives for a moment. No
 * function is called here by an address that can be written in the hardened library. */
static void profile_follow_file(size_t rate) {
    const hak_profile_store_t *store = &hak_profile_store;
    if (store->base == NULL) {
        (void)hak_profile_store_open(hak_load_relaxed(&hak_knobs.profile_bytes), rate, false);
    }
    if (!HAK_HARDEN) {
        hak_profile_maintain(store->head != NULL, hak_load_relaxed(&store->sites),
                             hak_load_relaxed(&store->taken));
    }
}

void hak_profile_follow(hak_tcache_t *tcache) {
    (void)tcache;
    size_t option = hak_load_relaxed(&hak_knobs.profile_rate);
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_option) != option)) {
        hak_store_relaxed(&hak_profile_option, option);
        (void)hak_profile_set_rate(option);
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_profile_toggle) != 0) &&
        hak_swap_relaxed(&hak_profile_toggle, 0) != 0) {
        (void)hak_profile_set_rate(hak_load_relaxed(&hak_profile_rate) == 0 ? profile_wanted_rate()
                                                                            : 0);
    }
    profile_follow_probe();
    size_t rate = hak_load_relaxed(&hak_profile_rate);
    if (HAK_UNLIKELY(rate != 0)) {
        hak_sample_pace(false);
        if (hak_profile_maintain != NULL) {
            profile_follow_file(rate);
        }
    }
}

void hak_profile_start(void) {
    size_t rate = hak_load_relaxed(&hak_knobs.profile_rate);
    size_t signal = hak_load_relaxed(&hak_knobs.profile_signal);
    hak_sample_start();
    if (hak_load_relaxed(&hak_knobs.force_libc)) {
        return;
    }
    hak_store_relaxed(&hak_profile_option, rate);
    if (signal != 0 && !hak_os_is_secure()) {
        (void)hak_os_signal_install((int)signal, profile_signalled);
    }
    if (rate != 0) {
        (void)profile_begin(rate, true);
    }
}

/* In a forked child, where a store in a file is not mapped: its thread goes on inside, and finds an
 * empty store, in the memory that the file took the place of: there may be no other. */
static void store_renew(void) {
    hak_profile_store_t *store = &hak_profile_store;
    char *fresh = store->head == NULL           ? NULL
                  : hak_profile_reserve != NULL ? hak_profile_reserve
                                                : hak_os_map(store->bytes, hak_os_page_bytes());
    if (fresh != NULL) {
        (void)hak_os_move(fresh, store->bytes, store->base, store->bytes, false);
        hak_profile_reserve = store->head = NULL;
    }
}

/* The child inherits the detour, and samples on. */
void hak_profile_after_fork(bool is_clean) {
    if (hak_profile_store.base == NULL) {
        return;
    }
    hak_sample_after_fork();
    if (is_clean) {
        if (hak_profile_store.head == NULL) {
            hak_profile_store_reset();
        } else { /* the file is the parent's */
            hak_profile_store_abandon();
        }
        hak_chance_seed(hak_chance_random() ^ (uint64_t)hak_os_process_id() << 32);
    } else {
        hak_sample_set_rate(0);
        if (hak_lock_holds(HAK_LOCK_PROFILE)) { /* a handler forked: its thread goes on with it */
            store_renew();
        } else {
            hak_profile_store_abandon();
        }
    }
}
