/* SPDX-License-Identifier: MIT
 *
 * The allocator behind ours: the C library's, or another one in the chain of preloads. It serves
 * force_libc, and gets back what it handed out: blocks made before we were in place, in another
 * namespace, or through its own names.
 *
 * Whether it knows a pointer has to be found out without touching what may not be mapped. For the
 * C library (glibc) the chunk header must make sense; another allocator is asked through its
 * malloc_usable_size. */
#include "base/bits.h"
#include "front/event.h"
#include "life/life.h"
#include "os/os.h"

#define NEXT_RTLD ((void *)-1l) /* RTLD_NEXT, without asking for GNU names everywhere */

extern void *__libc_malloc(size_t) HAK_WEAK;
extern void *__libc_calloc(size_t, size_t) HAK_WEAK;
extern void *__libc_realloc(void *, size_t) HAK_WEAK;
extern void *__libc_memalign(size_t, size_t) HAK_WEAK;
extern void __libc_free(void *) HAK_WEAK;
extern void *dlsym(void *, const char *) HAK_WEAK;

enum {
    CHUNK_PREV_INUSE = 1,
    CHUNK_IS_MAPPED = 2,
    CHUNK_OTHER_ARENA = 4,
    CHUNK_FLAGS = 7,
    CHUNK_MIN_BYTES = 32,
    ARENA_HEAP_BYTES = 64 << 20,
};

static void (*other_free)(void *);    /* [atomic] next in the chain, not libc's */
static size_t (*next_usable)(void *); /* [atomic] malloc_usable_size of the next */
static bool is_looked_up;             /* [atomic] */

/* dlsym may allocate and take the loader's lock, so this waits until a foreign pointer turns up. */
static void next_look_up(void) {
    if (hak_load_acquire(&is_looked_up) || dlsym == NULL) {
        return;
    }
    void (*free_symbol)(void *) = (void (*)(void *))dlsym(NEXT_RTLD, "free");
    hak_store_relaxed(&next_usable, (size_t(*)(void *))dlsym(NEXT_RTLD, "malloc_usable_size"));
    if (free_symbol != NULL && free_symbol != __libc_free) {
        hak_store_relaxed(&other_free, free_symbol);
    }
    hak_store_release(&is_looked_up, true);
}

static size_t word_at(uintptr_t address) {
    return *(const size_t *)address;
}

static bool is_plausible_chunk(size_t head) {
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    return bytes >= CHUNK_MIN_BYTES && bytes % 16 == 0 && bytes >> 47 == 0;
}

static bool is_mapped_chunk(uintptr_t chunk, size_t bytes) {
    size_t before = word_at(chunk);
    size_t page_mask = hak_os_page_bytes() - 1;
    return before % 16 == 0 && before < chunk && ((chunk - before) & page_mask) == 0 &&
           ((before + bytes) & page_mask) == 0 &&
           hak_os_is_readable((const void *)(chunk - before)) &&
           hak_os_is_readable((const void *)(chunk + bytes - 8));
}

static bool is_arena_chunk(uintptr_t chunk, size_t bytes) {
    uintptr_t heap = chunk & ~(uintptr_t)(ARENA_HEAP_BYTES - 1);
    if (!hak_os_is_readable((const void *)heap) || !hak_os_is_readable((const void *)(heap + 16))) {
        return false;
    }
    size_t heap_bytes = word_at(heap + 16);
    return heap_bytes <= ARENA_HEAP_BYTES && chunk + bytes <= heap + heap_bytes &&
           hak_os_is_readable((const void *)word_at(heap));
}

/* The chunk that follows must be one, too, and say that this one is in use. */
static bool is_main_chunk(uintptr_t chunk, size_t bytes) {
    uintptr_t next = chunk + bytes;
    if (!hak_os_is_readable((const void *)(next + 8))) {
        return false;
    }
    size_t head = word_at(next + 8);
    return (head & CHUNK_PREV_INUSE) != 0 && (head & ~(size_t)CHUNK_FLAGS) >= 16 && head >> 47 == 0;
}

static bool libc_owns(const void *block) {
    uintptr_t chunk = (uintptr_t)block - 16;
    if ((uintptr_t)block % 16 != 0 || (uintptr_t)block < 4096 ||
        !hak_os_is_readable((const void *)chunk) ||
        !hak_os_is_readable((const void *)(chunk + 8))) {
        return false;
    }
    size_t head = word_at(chunk + 8);
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    if (!is_plausible_chunk(head)) {
        return false;
    }
    if ((head & CHUNK_IS_MAPPED) != 0) {
        return is_mapped_chunk(chunk, bytes);
    }
    if ((head & CHUNK_OTHER_ARENA) != 0) {
        return is_arena_chunk(chunk, bytes);
    }
    return is_main_chunk(chunk, bytes);
}

static bool next_owns(const void *block) {
    next_look_up();
    if (!hak_os_is_readable(block)) {
        return false;
    }
    if (__libc_free != NULL && libc_owns(block)) {
        return true;
    }
    return hak_load_relaxed(&other_free) != NULL && next_usable != NULL &&
           next_usable((void *)block) != 0;
}

static void next_free(void *block) {
    if (hak_load_relaxed(&other_free) != NULL && !libc_owns(block)) {
        other_free(block);
    } else if (__libc_free != NULL) {
        __libc_free(block);
    }
}

/* glibc has no second name for this one; without dlsym the chunk header tells. */
static size_t next_usable_size(void *block) {
    next_look_up();
    if (next_usable != NULL) {
        return next_usable(block);
    }
    size_t head = word_at((uintptr_t)block - 8);
    return (head & ~(size_t)CHUNK_FLAGS) - ((head & CHUNK_IS_MAPPED) != 0 ? 16 : 8);
}

bool hak_life_next_has_libc(void) {
    return __libc_malloc != NULL && __libc_calloc != NULL && __libc_realloc != NULL &&
           __libc_memalign != NULL && __libc_free != NULL;
}

void hak_life_next_init(void) {
    hak_next_allocator = (hak_next_allocator_t){
        .owns = next_owns,
        .malloc = __libc_malloc,
        .calloc = __libc_calloc,
        .realloc = __libc_realloc,
        .memalign = __libc_memalign,
        .free = next_free,
        .usable_size = next_usable_size,
    };
}
