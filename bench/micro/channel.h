/* SPDX-License-Identifier: MIT
 * A bounded queue of pointers from one thread to one other, without locks. Each side keeps what it
 * last saw of the other's position, so the two share cache lines only when the queue looks full or
 * empty: what a workload measures is its blocks, not its queue. */
#ifndef HAK_BENCH_CHANNEL_H
#define HAK_BENCH_CHANNEL_H

#include "bench.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct channel {
    _Alignas(64) atomic_size_t sent;     /* written by the sender */
    size_t received_seen;                /* [sender] */
    _Alignas(64) atomic_size_t received; /* written by the receiver */
    size_t sent_seen;                    /* [receiver] */
    _Alignas(64) size_t mask;
    _Alignas(64) void *items[];
} channel_t;

/* CAPACITY is a power of two, at least 8. Goes back with free. */
static inline channel_t *channel_make(size_t capacity) {
    size_t size = sizeof(channel_t) + capacity * sizeof(void *);
    channel_t *channel = bench_need(aligned_alloc(64, size), size);
    *channel = (channel_t){.mask = capacity - 1};
    return channel;
}

/* The number of items in it: at least, to the receiver; at most, to the sender. */
static inline size_t channel_filled(const channel_t *channel) {
    size_t received = atomic_load_explicit(&channel->received, memory_order_acquire);
    return atomic_load_explicit(&channel->sent, memory_order_acquire) - received;
}

/* False if the channel is full. */
static inline bool channel_send(channel_t *channel, void *item) {
    size_t sent = atomic_load_explicit(&channel->sent, memory_order_relaxed);
    if (sent - channel->received_seen > channel->mask) {
        channel->received_seen = atomic_load_explicit(&channel->received, memory_order_acquire);
        if (sent - channel->received_seen > channel->mask) {
            return false;
        }
    }
    channel->items[sent & channel->mask] = item;
    atomic_store_explicit(&channel->sent, sent + 1, memory_order_release);
    return true;
}

/* NULL if the channel is empty. */
static inline void *channel_receive(channel_t *channel) {
    size_t received = atomic_load_explicit(&channel->received, memory_order_relaxed);
    if (received == channel->sent_seen) {
        channel->sent_seen = atomic_load_explicit(&channel->sent, memory_order_acquire);
        if (received == channel->sent_seen) {
            return NULL;
        }
    }
    void *item = channel->items[received & channel->mask];
    atomic_store_explicit(&channel->received, received + 1, memory_order_release);
    return item;
}

#endif
