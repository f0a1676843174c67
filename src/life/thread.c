/* SPDX-License-Identifier: MIT
 *
 * A thread gets its tcache on its first slow path and detaches it in its thread-specific
 * destructor. Later allocations, of other destructors and of the C library, use the fallback
 * tcache; frees need no tcache. */
#include "life/thread.h"
#include "base/knobs.h"
#include "front/fast.h"
#include "front/flush.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"

#include <errno.h>

enum { END_OWNERS = 64 }; /* visited at the end of the process */

static pthread_key_t exit_key; /* [init] */
static bool has_exit_key;      /* [init] */

HAK_TLS hak_life_self_t hak_life_self;
static uint32_t main_id;        /* [atomic] of the first thread with a tcache; 0: none yet */
static uint32_t main_tells_end; /* [atomic] is_main of that thread */

/* The value only marks that a tcache exists: libraries in another namespace (dlmopen) have their
 * own key tables but share the thread's slots, so the value may be another copy's. */
static void thread_exit(void *value) {
    (void)value;
    hak_life_self.has_exited = true;
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_detach(tcache);
    }
    if (HAK_CONTROL && hak_life_self.is_main) {
        hak_life_control_main_ends();
    }
}

bool hak_life_main_tells_end(void) {
    return hak_load_relaxed(&main_tells_end) != 0 &&
           hak_load_relaxed(&main_id) == hak_os_process_id();
}

void hak_life_main_note(void) {
    const hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    hak_life_self.is_main = has_exit_key && !hak_tcache_is_empty(tcache);
    hak_store_relaxed(&main_id, hak_tcache_is_empty(tcache) ? 0 : tcache->thread_id);
    hak_store_relaxed(&main_tells_end, hak_life_self.is_main);
}

void hak_life_thread_init(void) {
    int (*create)(pthread_key_t *, void (*)(void *)) = pthread_key_create;
    HAK_OPAQUE(create); /* NULL in a program that can have no threads: os/libc.h */
    has_exit_key = create != NULL && create(&exit_key, thread_exit) == 0;
}

/* The thread that ends the process keeps its tcache; a signal handler may end it inside of an
 * operation. The library is initialised first, so the destructors of others have run. */
__attribute__((destructor(101))) static void process_end(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache) && hak_lock_holds_none() && hak_in_unlocked_update == 0) {
        hak_tcache_inspect(tcache);
        hak_owner_tend(END_OWNERS); /* merges what other threads freed: twice is found */
    }
}

uintptr_t hak_life_detour_begin(void) {
    uintptr_t tcache = hak_tcache_offset;
    hak_life_self.has_exited = true;
    hak_tcache_offset = 0;
    return tcache;
}

void hak_life_detour_end(uintptr_t tcache) {
    hak_tcache_offset = tcache;
    hak_life_self.has_exited = false;
}

hak_tcache_t *hak_life_thread_start(void) {
    hak_life_process_start();
    if (hak_load_relaxed(&hak_knobs.force_libc) || hak_life_self.has_exited) {
        return NULL;
    }
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        return tcache; /* process start allocated meanwhile */
    }
    tcache = hak_tcache_attach();
    int saved = errno;
    if (tcache != NULL && has_exit_key && pthread_setspecific(exit_key, tcache) != 0) {
        hak_tcache_detach(tcache); /* the thread's end would not detach it */
        tcache = NULL;
    } else if (tcache != NULL && hak_load_relaxed(&main_id) == 0) {
        hak_life_main_note();
    }
    errno = saved;
    return tcache;
}

/* --- our own threads -------------------------------------------------------------------------- */

bool hak_life_may_start(const hak_tcache_t *tcache) {
    return tcache == hak_tcache_self(hak_pagemap_base()) && tcache->is_refilling;
}

/* Attributes of any C library: built with musl's header the shared library runs under glibc, too,
 * whose are larger on aarch64. */
typedef union thread_attributes {
    pthread_attr_t attr;
    uint64_t largest[8];
} thread_attributes_t;

static bool thread_create_small(void *(*run)(void *), pthread_t *thread, size_t stack_bytes) {
    thread_attributes_t all;
    if (stack_bytes == 0 || pthread_attr_init(&all.attr) != 0) {
        return false;
    }
    bool is_done = pthread_attr_setstacksize(&all.attr, stack_bytes) == 0 &&
                   pthread_create(thread, &all.attr, run, NULL) == 0;
    pthread_attr_destroy(&all.attr);
    return is_done;
}

bool hak_life_thread_create(void *(*run)(void *), pthread_t *thread, size_t stack_bytes,
                            uint64_t *signals) {
    int saved = errno;
    uint64_t before = hak_os_block_signals();
    if (signals != NULL) {
        hak_store_relaxed(signals, before);
    }
    uintptr_t tcache = hak_life_detour_begin();
    bool is_done = has_exit_key && (thread_create_small(run, thread, stack_bytes) ||
                                    pthread_create(thread, NULL, run, NULL) == 0);
    hak_life_detour_end(tcache);
    hak_os_restore_signals(before);
    errno = saved;
    return is_done;
}

void hak_life_thread_begin(void) {
    uintptr_t tcache = hak_life_detour_begin(); /* for good: it would count as the program's */
    if (tcache != 0) {
        hak_tcache_detach((hak_tcache_t *)(tcache + hak_pagemap_base()));
    }
    pthread_setname_np(pthread_self(), "hakmem");
}
