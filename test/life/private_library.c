/* SPDX-License-Identifier: MIT
 *
 * The plugin of private_test.c: exports operators of C++, over a heap of its own that further
 * operators, which it hides, use as well. Written in C, so that no C++ runtime is loaded.
 * PRIVATE_DELETE: the name of the function that frees, "_ZdlPv" or "free". */
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

static char heap[1 << 20] __attribute__((aligned(4096)));
static size_t heap_used;
long private_live;
int private_is_nested; /* a delete first frees another block of the heap by the exported name */
int private_forwards;  /* a delete calls another, as one without a heap does */

static void *heap_take(size_t bytes) {
    size_t at = heap_used;
    heap_used += (bytes + 31) & ~(size_t)15;
    private_live++;
    return heap_used <= sizeof heap ? heap + at : NULL;
}

static void heap_drop(void *block) {
    private_live -= (uintptr_t)block - (uintptr_t)heap < sizeof heap;
}

void *operator_new(size_t bytes) __asm__("_Znwm");
void operator_delete(void *block) __asm__(PRIVATE_DELETE);
void operator_delete_sized(void *block, size_t bytes) __asm__("_ZdlPvm");
void operator_delete_array(void *block) __asm__("_ZdaPv");

void *operator_new(size_t bytes) {
    return heap_take(bytes);
}

void operator_delete(void *block) {
    if (private_is_nested) {
        private_is_nested = 0;
        operator_delete_array(heap_take(40));
    }
    if (private_forwards) {
        operator_delete_array(block);
    }
    heap_drop(block);
}

void operator_delete_sized(void *block, size_t bytes) {
    (void)bytes;
    heap_drop(block);
}

void operator_delete_array(void *block) {
    heap_drop(block);
}

HIDDEN void *operator_new_quiet(size_t bytes) {
    return heap_take(bytes);
}

/* Blocks of both heaps, freed by each form; the result does not depend on whose is taken. */
long private_exercise(void) {
    for (unsigned i = 0; i < 300; ++i) {
        char *block = i % 3 == 0 ? operator_new(8 + i) : operator_new_quiet(8 + i);
        if (block == NULL) {
            return -1;
        }
        block[7 + i] = 1;
        if (i % 4 == 0) {
            operator_delete(block);
        } else if (i % 4 == 1) {
            operator_delete_sized(block, 8 + i);
        } else {
            operator_delete_array(block);
        }
    }
    return private_live;
}

void *private_make(size_t bytes) {
    return operator_new_quiet(bytes);
}

/* The delete returns to the caller of this, as at the end of a destructor. */
static __attribute__((noinline)) void drop_at_end(void *block) {
    operator_delete(block);
}

void (*private_dropper)(void *) = drop_at_end;

long private_drop(void *block) {
    private_dropper(block);
    return private_live;
}
