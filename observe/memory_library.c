/* SPDX-License-Identifier: MIT
 *
 * Mappings: a large block has one of its own, small ones share one, which goes with the last of
 * them. */
#include "memory.h"

#include "base/bits.h"

#include <string.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = 256 << 10, SMALL_MOST = CHUNK_BYTES / 8, MAPPING_BYTES = 64 << 10 };

/* The head of a mapping. */
typedef struct chunk {
    size_t bytes, used;
    size_t live; /* blocks */
    size_t unused;
} chunk_t;

/* In front of a block. */
typedef struct head {
    chunk_t *chunk;
    size_t bytes; /* of the block */
} head_t;

static chunk_t *current; /* what small blocks are taken from; NULL: none yet */

static chunk_t *chunk_make(size_t bytes) {
    chunk_t *chunk = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) {
        return NULL;
    }
    *chunk = (chunk_t){.bytes = bytes, .used = sizeof *chunk};
    return chunk;
}

static size_t large_bytes(size_t bytes) {
    return hak_align_up(sizeof(chunk_t) + sizeof(head_t) + bytes, MAPPING_BYTES);
}

static void *block_cut(chunk_t *chunk, size_t bytes, size_t room) {
    head_t *head = (head_t *)(void *)((char *)chunk + chunk->used);
    chunk->used += room;
    chunk->live++;
    *head = (head_t){chunk, bytes};
    return head + 1;
}

void *obs_take(size_t bytes) {
    size_t room = hak_align_up(sizeof(head_t) + bytes, sizeof(head_t));
    if (bytes > SMALL_MOST) {
        chunk_t *chunk = bytes < SIZE_MAX / 2 ? chunk_make(large_bytes(bytes)) : NULL;
        return chunk != NULL ? block_cut(chunk, bytes, chunk->bytes - chunk->used) : NULL;
    }
    if (current == NULL || current->bytes - current->used < room) {
        chunk_t *fresh = chunk_make(CHUNK_BYTES);
        if (fresh == NULL) {
            return NULL;
        }
        current = fresh; /* the one before goes with its last block: it has some, as it is full */
    }
    return memset(block_cut(current, bytes, room), 0, bytes);
}

void obs_drop(void *block) {
    if (block == NULL) {
        return;
    }
    chunk_t *chunk = ((head_t *)block - 1)->chunk;
    if (--chunk->live != 0) {
        return;
    }
    if (chunk == current) {
        current = NULL;
    }
    munmap(chunk, chunk->bytes);
}

static void *large_grow(chunk_t *chunk, size_t bytes) {
    size_t whole = large_bytes(bytes);
    chunk_t *moved =
        whole == chunk->bytes ? chunk : mremap(chunk, chunk->bytes, whole, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) {
        return NULL;
    }
    head_t *head = (head_t *)(moved + 1);
    moved->bytes = moved->used = whole;
    *head = (head_t){moved, bytes};
    return head + 1;
}

void *obs_grow(void *block, size_t bytes) {
    if (block == NULL) {
        return obs_take(bytes);
    }
    const head_t *head = (head_t *)block - 1;
    if (head->bytes > SMALL_MOST && bytes > SMALL_MOST) {
        return bytes < SIZE_MAX / 2 ? large_grow(head->chunk, bytes) : NULL;
    }
    void *grown = obs_take(bytes);
    if (grown != NULL) {
        memcpy(grown, block, hak_least(head->bytes, bytes));
        obs_drop(block);
    }
    return grown;
}
