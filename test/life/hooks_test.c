/* SPDX-License-Identifier: MIT
 *
 * The program takes over munmap, madvise and mremap, as libraries for MPI, RDMA and GPUs do: do
 * they see all memory of blocks that leaves? They allocate themselves, of all sizes, and change
 * errno. */
#include <malloc.h>

#include "api/family.h"

enum { RANGES_MOST = 1 << 16, PAGES_MOST = 1 << 15, ALL_BYTES = 12 << 20 };

static struct range { uintptr_t from, to; } seen[RANGES_MOST];
static size_t seen_count;
static unsigned depth;

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

static void see(const void *base, size_t bytes) {
    EXPECT(seen_count < RANGES_MOST);
    seen[seen_count++] = (struct range){(uintptr_t)base, (uintptr_t)base + bytes};
    if (depth++ == 0 && family.malloc != NULL && seen_count < RANGES_MOST / 64) {
        hook_allocates();
    }
    depth--;
    errno = ERANGE;
}

int munmap(void *base, size_t bytes) {
    see(base, bytes);
    return (int)syscall(SYS_munmap, base, bytes);
}

int madvise(void *base, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) {
        see(base, bytes);
    }
    return (int)syscall(SYS_madvise, base, bytes, advice);
}

void *mremap(void *base, size_t old_bytes, size_t bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void *target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void *) : NULL;
    va_end(rest);
    see(base, old_bytes);
    return (void *)syscall(SYS_mremap, base, old_bytes, bytes, flags, target);
}

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

int main(void) {
    family_load();
    expect_watchdog();
    RUN(hooks_see_memory_of_all_sizes_leave);
    RUN(hooks_see_pages_that_realloc_moves_or_drops);
    return expect_status();
}
