/* SPDX-License-Identifier: MIT
 *
 * The program takes over munmap, madvise and mremap, as libraries for MPI, RDMA and GPUs do, by
 * functions of these names or, with HOOKS_PATCH, by a jump over the first bytes of the C library's:
 * do they see all memory of blocks that leaves? They allocate themselves, of all sizes, and change
 * errno; so they do in threads, while the process forks. */
#include <dlfcn.h>
#include <malloc.h>

#include "thread/block.h"

enum { RANGES_MOST = 1 << 16, PAGES_MOST = 1 << 15, ALL_BYTES = 12 << 20 };
enum { THREADS = 3, FORKS = 6, KEPT = 300 };

static struct range { uintptr_t from, to; } seen[RANGES_MOST];
static size_t seen_count;
static bool has_threads;         /* [atomic] hooks only count */
static unsigned long hook_count; /* [atomic] */
static _Thread_local unsigned depth;

static void hook_allocates(void) {
    static const size_t sizes[] = {24, 3000, 40000, 300000, 3 << 20};
    void *blocks[5];
    for (unsigned i = 0; i < 5; ++i) {
        blocks[i] = family.malloc(sizes[i]);
        EXPECT(blocks[i] != NULL);
    }
    for (unsigned i = 0; i < 5; ++i) {
        family.free(blocks[i]);
    }
}

/* Blocks that the next hook allocates, so many that their slow paths have events. */
enum { LOAD_COUNT = 400000, LOAD_LAST = 1000, LOAD_SMALL = 64, LOAD_BYTES = 400 };

static unsigned char *load[LOAD_COUNT];
static bool load_is_due;

static void hook_loads(void) {
    load_is_due = false;
    for (size_t i = 0; i < LOAD_COUNT; ++i) {
        load[i] = family.malloc(i < LOAD_COUNT - LOAD_LAST ? LOAD_BYTES : LOAD_SMALL);
        EXPECT(load[i] != NULL);
        load[i][0] = (unsigned char)i;
    }
}

static void see(const void *base, size_t bytes) {
    bool counts = __atomic_load_n(&has_threads, __ATOMIC_RELAXED);
    __atomic_add_fetch(&hook_count, 1, __ATOMIC_RELAXED);
    if (!counts) {
        EXPECT(seen_count < RANGES_MOST);
        seen[seen_count++] = (struct range){(uintptr_t)base, (uintptr_t)base + bytes};
    }
    if (depth == 0 && load_is_due) {
        hook_loads();
    }
    if (depth++ == 0 && family.malloc != NULL && (counts || seen_count < RANGES_MOST / 64)) {
        hook_allocates();
    }
    depth--;
    errno = ERANGE;
}

static int hook_munmap(void *base, size_t bytes) {
    see(base, bytes);
    return (int)syscall(SYS_munmap, base, bytes);
}

static int hook_madvise(void *base, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) {
        see(base, bytes);
    }
    return (int)syscall(SYS_madvise, base, bytes, advice);
}

static void *hook_mremap(void *base, size_t old_bytes, size_t bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void *target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void *) : NULL;
    va_end(rest);
    see(base, old_bytes);
    return (void *)syscall(SYS_mremap, base, old_bytes, bytes, flags, target);
}

#include "life/hooks.h"

/* --- pages of blocks -------------------------------------------------------------------------- */

static uintptr_t pages[PAGES_MOST];
static size_t page_count;

static bool is_resident(uintptr_t page) {
    unsigned char byte = 0;
    return syscall(SYS_mincore, page, 1, &byte) == 0 && (byte & 1) != 0;
}

static void note_pages(const void *block, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uintptr_t at = (uintptr_t)block & -page; at < (uintptr_t)block + bytes; at += page) {
        if ((page_count == 0 || pages[page_count - 1] != at) && page_count < PAGES_MOST &&
            is_resident(at)) {
            pages[page_count++] = at;
        }
    }
}

static bool is_seen(uintptr_t page) {
    for (size_t i = seen_count; i-- > 0;) {
        if (page >= seen[i].from && page < seen[i].to) {
            return true;
        }
    }
    return false;
}

/* Of the pages that are gone. */
static size_t count_unseen(void) {
    size_t unseen = 0, gone = 0;
    for (size_t i = 0; i < page_count; ++i) {
        if (!is_resident(pages[i])) {
            ++gone;
            unseen += !is_seen(pages[i]);
        }
    }
    EXPECT(gone > 0);
    return unseen;
}

static void fill(size_t size) {
    static void *blocks[ALL_BYTES / 2000 + 1];
    size_t count = ALL_BYTES / size;
    seen_count = page_count = 0;
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = family.malloc(size);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, size);
        note_pages(blocks[i], size);
    }
    for (size_t i = 0; i < count; ++i) { /* every tenth stays: pages leave within slabs */
        if (i % 10 != 3) {
            errno = 77;
            family.free(blocks[i]);
            EXPECT_EQ(errno, 77);
        }
    }
    malloc_trim(0);
    EXPECT_EQ(count_unseen(), 0);
    for (size_t i = 3; i < count; i += 10) {
        family.free(blocks[i]);
    }
    malloc_trim(0);
    EXPECT_EQ(count_unseen(), 0);
}

static void hooks_see_memory_of_all_sizes_leave(void) {
    static const size_t sizes[] = {2000, 9000, 60000, 900000, 2 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        fill(sizes[i]);
    }
}

static void hooks_see_pages_that_realloc_moves_or_drops(void) {
    char *blocks[8];
    seen_count = page_count = 0;
    for (unsigned i = 0; i < 8; ++i) {
        blocks[i] = family.malloc(2 << 20);
        memset(blocks[i], 1, 2 << 20);
        note_pages(blocks[i], 2 << 20);
    }
    for (unsigned i = 0; i < 8; ++i) {
        errno = 77;
        blocks[i] = family.realloc(blocks[i], 8 << 20);
        EXPECT(blocks[i] != NULL && blocks[i][1000] == 1);
        memset(blocks[i], 1, 8 << 20);
        note_pages(blocks[i], 2 << 20);
        blocks[i] = family.realloc(blocks[i], 1 << 20);
        EXPECT(blocks[i] != NULL && blocks[i][1000] == 1);
        EXPECT_EQ(errno, 77);
    }
    malloc_trim(0);
    EXPECT_EQ(count_unseen(), 0);
    for (unsigned i = 0; i < 8; ++i) {
        family.free(blocks[i]);
    }
}

/* --- threads and forks ------------------------------------------------------------------------ */

static bool is_over; /* [atomic] */

static void churn(uint64_t *state) {
    static const size_t sizes[] = {2000, 9000, 60000, 900000, 2 << 20};
    void *blocks[KEPT];
    size_t size = sizes[expect_random(state) % 5], count = size > 100000 ? 8 : KEPT;
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = family.malloc(size);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < count; ++i) {
        family.free(blocks[i]);
    }
    family.trim(0);
}

static void *churn_all(void *seed) {
    uint64_t state = (uintptr_t)seed + 1;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        churn(&state);
    }
    return NULL;
}

static void trim_ends_though_hooks_free_large_blocks(void) {
    uint64_t state = 5;
    __atomic_store_n(&has_threads, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 10; ++i) {
        churn(&state);
    }
    __atomic_store_n(&has_threads, false, __ATOMIC_RELAXED);
}

static void hooks_of_threads_allocate_while_the_process_forks(void) {
    pthread_t threads[THREADS];
    uint64_t state = 77;
    __atomic_store_n(&has_threads, true, __ATOMIC_RELAXED);
    unsigned long before = __atomic_load_n(&hook_count, __ATOMIC_RELAXED);
    threads_start(threads, THREADS, churn_all, 1);
    for (unsigned i = 0; i < expect_cases(FORKS); ++i) {
        pid_t child = fork();
        if (child == 0) {
            expect_watchdog();
            churn(&state);
            _exit(0);
        }
        EXPECT_CHILD(child, 0);
        churn(&state);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    threads_join(threads, THREADS);
    EXPECT(__atomic_load_n(&hook_count, __ATOMIC_RELAXED) > before);
    __atomic_store_n(&has_threads, false, __ATOMIC_RELAXED);
}

/* Frees find bins full, and return memory before they are done. */
static void hooks_of_frees_may_allocate_a_lot(void) {
    enum { COUNT = 1600000 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.malloc(LOAD_SMALL);
        EXPECT(blocks[i] != NULL);
    }
    load_is_due = true;
    for (size_t i = 0; i < COUNT; ++i) {
        family.free(blocks[i]);
    }
    family.trim(0);
    EXPECT(!load_is_due);
    for (size_t i = 0; i < LOAD_COUNT; ++i) {
        EXPECT_EQ(load[i][0], (unsigned char)i);
        family.free(load[i]);
    }
}

int main(void) {
    family_load();
    expect_watchdog();
    take_over();
    RUN(hooks_of_frees_may_allocate_a_lot);
    RUN(hooks_see_memory_of_all_sizes_leave);
    RUN(hooks_see_pages_that_realloc_moves_or_drops);
    RUN(trim_ends_though_hooks_free_large_blocks);
    RUN(hooks_of_threads_allocate_while_the_process_forks);
    return expect_status();
}
