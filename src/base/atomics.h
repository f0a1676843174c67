/* SPDX-License-Identifier: MIT
 *
 * Atomic operations whose names carry the order. Nothing else names a memory order.
 *
 * hak_single_writer_store / _load mark a field that one thread writes and others may read as an
 * estimate: plain moves without a data race. */
#ifndef HAK_BASE_ATOMICS_H
#define HAK_BASE_ATOMICS_H

#include "base/config.h"

#define hak_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
/* A relaxed load or store on a hit path, of an aligned word of at most 8 bytes. gcc does not fold
 * an atomic one into an addressing mode, which costs three instructions; so it is a plain one,
 * which both targets do in one piece, except under ThreadSanitizer. */
#define hak_load_hot(p) (HAK_TSAN ? hak_load_relaxed(p) : *(p))
#define hak_store_hot(p, v) (HAK_TSAN ? hak_store_relaxed(p, v) : (void)(*(p) = (v)))
#define hak_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define hak_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define hak_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define hak_swap_acquire(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define hak_swap_release(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELEASE)
#define hak_swap_acquire_release(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define hak_swap_relaxed(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
#define hak_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define hak_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define hak_or_release(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELEASE)
#define hak_or_relaxed(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define hak_or_acquire_release(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define hak_and_acquire(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQUIRE)
#define hak_and_relaxed(p, v) __atomic_fetch_and((p), (v), __ATOMIC_RELAXED)
#define hak_sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)

/* For readers by system calls, as the observer is: plain and relaxed accesses before it keep their
 * order to those behind it, stores or loads. On x86-64 all do, and it costs nothing. */
#define hak_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define hak_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)

/* *expected is updated on failure. Weak: may fail for no reason, so it needs a loop. */
#define hak_cas_release(p, expected, desired)                                                      \
    __atomic_compare_exchange_n((p), (expected), (desired), 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
/* Strong. */
#define hak_cas_relaxed(p, expected, desired)                                                      \
    __atomic_compare_exchange_n((p), (expected), (desired), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define hak_cas_acquire(p, expected, desired)                                                      \
    __atomic_compare_exchange_n((p), (expected), (desired), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)

#define hak_cas_acquire_release(p, expected, desired)                                              \
    __atomic_compare_exchange_n((p), (expected), (desired), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)

#define hak_single_writer_load(p) hak_load_relaxed(p)
#define hak_single_writer_store(p, v) hak_store_relaxed((p), (v))
#define hak_single_writer_add(p, v) hak_store_relaxed((p), hak_load_relaxed(p) + (v))

#endif
