/* SPDX-License-Identifier: MIT
 *
 * An allocator that stands behind ours in the loader's order. As others do, it crashes when it is
 * asked for a block it does not know. With BEHIND_TAKES_LIBC=1 it has taken the C library's own
 * names too. With BEHIND_LACKS_USABLE=1
 * it has no malloc_usable_size. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Not stdlib.h: an alias must have all the attributes that are declared there. */
#define BEHIND_ALIAS(name) __attribute__((alias(name)))
_Noreturn void abort(void);
void free(void *);

typedef struct head {
    size_t size;
    size_t magic;
} head_t;

enum { ARENA_BYTES = 1 << 20, MAGIC = 0x600d };

static unsigned char arena[ARENA_BYTES] __attribute__((aligned(16)));
static size_t used;
int behind_frees;

static head_t *head_of(void *block) {
    head_t *head = (head_t *)block - 1;
    if ((unsigned char *)block < arena || (unsigned char *)block >= arena + ARENA_BYTES ||
        head->magic != MAGIC) {
        abort();
    }
    return head;
}

void *behind_malloc(size_t size) {
    size_t bytes = (sizeof(head_t) + size + 15) / 16 * 16;
    if (bytes > ARENA_BYTES - used) {
        return NULL;
    }
    head_t *head = (head_t *)(arena + used);
    used += bytes;
    *head = (head_t){size, MAGIC};
    return head + 1;
}

void *malloc(size_t size) {
    return behind_malloc(size);
}

void behind_free(void *block) {
    if (block != NULL) {
        head_of(block)->magic = 0;
        behind_frees++;
    }
}

void free(void *block) BEHIND_ALIAS("behind_free");

void *calloc(size_t count, size_t size) {
    void *block = behind_malloc(count * size);
    return block != NULL ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size) {
    void *fresh = behind_malloc(size);
    if (block != NULL && fresh != NULL) {
        size_t old = head_of(block)->size;
        memcpy(fresh, block, old < size ? old : size);
        free(block);
    }
    return fresh;
}

#if !BEHIND_LACKS_USABLE
size_t malloc_usable_size(void *block) {
    return block != NULL ? head_of(block)->size : 0;
}
#endif

#if BEHIND_TAKES_LIBC
void *__libc_malloc(size_t size) {
    return behind_malloc(size);
}

void *__libc_realloc(void *block, size_t size) {
    return realloc(block, size);
}

void __libc_free(void *) BEHIND_ALIAS("behind_free");
#endif
