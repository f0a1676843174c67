/* SPDX-License-Identifier: MIT
 *
 * In place of src/base/atomics.h: the same names, each a step of the explorer. */
#ifndef HAK_BASE_ATOMICS_H
#define HAK_BASE_ATOMICS_H

#include "base/config.h"
#include "explore.h"

#define MODEL_SITE(text) ((model_site_t){__func__, text})
#define MODEL_VALUE(v) ((uint64_t)(uintptr_t)(v))
#define MODEL_LOAD(p, order)                                                                       \
    ((__typeof__(*(p)))model_load(MODEL_WORD(p), order, MODEL_SITE("load " #p)))
#define MODEL_RMW(p, kind, v, order, text)                                                         \
    __extension__({                                                                                \
        uint64_t was = model_rmw(MODEL_WORD(p), kind, MODEL_VALUE(v), order, MODEL_SITE(text));    \
        (__typeof__(*(p)))was;                                                                     \
    })

#define hak_load_relaxed(p) MODEL_LOAD(p, MODEL_RELAXED)
#define hak_load_hot(p) MODEL_LOAD(p, MODEL_RELAXED)
#define hak_load_acquire(p) MODEL_LOAD(p, MODEL_ACQUIRE)
#define hak_store_hot(p, v) hak_store_relaxed(p, v)
#define hak_store_relaxed(p, v)                                                                    \
    model_store(MODEL_WORD(p), MODEL_VALUE(v), MODEL_RELAXED, MODEL_SITE("store " #p))
#define hak_store_release(p, v)                                                                    \
    model_store(MODEL_WORD(p), MODEL_VALUE(v), MODEL_RELEASE, MODEL_SITE("store " #p))
#define hak_swap_relaxed(p, v) MODEL_RMW(p, MODEL_SWAP, v, MODEL_RELAXED, "swap " #p)
#define hak_swap_acquire(p, v) MODEL_RMW(p, MODEL_SWAP, v, MODEL_ACQUIRE, "swap " #p)
#define hak_swap_release(p, v) MODEL_RMW(p, MODEL_SWAP, v, MODEL_RELEASE, "swap " #p)
#define hak_add_relaxed(p, v) MODEL_RMW(p, MODEL_ADD, v, MODEL_RELAXED, "add " #p)
#define hak_add_release(p, v) MODEL_RMW(p, MODEL_ADD, v, MODEL_RELEASE, "add " #p)
#define hak_or_release(p, v) MODEL_RMW(p, MODEL_OR, v, MODEL_RELEASE, "or " #p)
#define hak_or_relaxed(p, v) MODEL_RMW(p, MODEL_OR, v, MODEL_RELAXED, "or " #p)
#define hak_or_acquire_release(p, v) MODEL_RMW(p, MODEL_OR, v, MODEL_BOTH, "or " #p)
#define hak_and_relaxed(p, v) MODEL_RMW(p, MODEL_AND, v, MODEL_RELAXED, "and " #p)
#define hak_and_acquire(p, v) MODEL_RMW(p, MODEL_AND, v, MODEL_ACQUIRE, "and " #p)
#define hak_swap_acquire_release(p, v) MODEL_RMW(p, MODEL_SWAP, v, MODEL_BOTH, "swap " #p)
#define hak_sub_relaxed(p, v) MODEL_RMW(p, MODEL_SUB, v, MODEL_RELAXED, "sub " #p)

#define hak_fence_release() model_fence(MODEL_RELEASE)
#define hak_fence_acquire() model_fence(MODEL_ACQUIRE)

#define MODEL_CAS(p, expected, desired, order)                                                     \
    model_cas(MODEL_WORD(p), (expected), MODEL_VALUE(desired), order, MODEL_SITE("cas " #p))
#define hak_cas_relaxed(p, expected, desired) MODEL_CAS(p, expected, desired, MODEL_RELAXED)
#define hak_cas_release(p, expected, desired) MODEL_CAS(p, expected, desired, MODEL_RELEASE)
#define hak_cas_acquire(p, expected, desired) MODEL_CAS(p, expected, desired, MODEL_ACQUIRE)
#define hak_cas_acquire_release(p, expected, desired) MODEL_CAS(p, expected, desired, MODEL_BOTH)

/* What one thread writes: a plain write for the explorer, so two writers are a race. */
#define hak_single_writer_load(p) ((__typeof__(*(p)))model_peek(MODEL_WORD(p)))
#define hak_single_writer_store(p, v) ((void)(*(p) = (v)))
#define hak_single_writer_add(p, v) ((void)(*(p) += (v)))

#endif
