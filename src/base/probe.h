/* SPDX-License-Identifier: MIT
 *
 * Probes for profilers of whole machines (USDT): otel_memory:alloc and otel_memory:free, of sampled
 * blocks. A tracer finds them by notes in the library's file, counts its semaphores up while it
 * listens, and puts breakpoints on their instructions. */
#ifndef HAK_BASE_PROBE_H
#define HAK_BASE_PROBE_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "base/words.h"

/* [atomic] Listeners: the kernel counts. */
extern uint16_t hak_probe_alloc_listeners HAK_HIDDEN;
extern uint16_t hak_probe_free_listeners HAK_HIDDEN;

/* Somebody listens: sampled blocks are to be told. For slow paths. */
HAK_INLINE bool hak_probe_is_armed(void) {
    return (hak_load_relaxed(&hak_probe_alloc_listeners) |
            hak_load_relaxed(&hak_probe_free_listeners)) != 0;
}

/* A sampled block; `weighted_bytes` is the number of allocated bytes that it stands for:
 * size / (1 - e^(-size / rate)). Once a block, but for one that realloc leaves in place. No
 * instruction but a nop without a tracer.
 */
void hak_probe_alloc(const void *block, uint64_t size, uint64_t weighted_bytes);
/* The free of a block that hak_probe_alloc told. */
void hak_probe_free(const void *block);

#endif
