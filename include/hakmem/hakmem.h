/* SPDX-License-Identifier: MIT
 *
 * hakmem: a general-purpose memory allocator for Linux.
 * Linking (or preloading) the library replaces the standard family; this header declares the same
 * family under the hak_ prefix, for use beside any other allocator, and functions beyond the
 * standard. Unless a function says otherwise:
 *
 *   - sizes are in bytes; a size of 0 gives a unique address that can neither be read nor written,
 *     as long as addresses are there; else a block of the smallest size;
 *   - blocks are aligned to 16 bytes;
 *   - a request that cannot be met returns NULL and sets errno to ENOMEM, also when a product
 *     overflows or a size is above PTRDIFF_MAX; errno is left alone on success;
 *   - any thread may call any function at any time, and free any block; none is async-signal-safe;
 *   - a pointer from elsewhere is passed to the C library's own allocator if it is a block of that;
 *     else the process aborts with one line on standard error. */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#define HAK_NOTHROW noexcept
#else
#define HAK_NOTHROW
#endif

#define HAK_VERSION_MAJOR 0
#define HAK_VERSION_MINOR 1
#define HAK_VERSION_PATCH 0

#if defined(__GNUC__)
#define HAK_ATTR_MALLOC __attribute__((malloc, warn_unused_result))
#define HAK_ATTR_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#else
#define HAK_ATTR_MALLOC
#define HAK_ATTR_SIZE(...)
#endif

/* ISO C. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(1) void *hak_malloc(size_t size) HAK_NOTHROW;

/* ISO C. Zeroed memory for count * size bytes. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(1, 2) void *hak_calloc(size_t count, size_t size) HAK_NOTHROW;

/* ISO C. Contents are kept up to the smaller size. NULL as block: as hak_malloc. Size 0 frees the
 * block and returns NULL, as the GNU C library does. On failure the block is unchanged. */
HAK_ATTR_SIZE(2) void *hak_realloc(void *block, size_t size) HAK_NOTHROW;

/* ISO C. NULL is ignored. errno is preserved (POSIX.1-2024). */
void hak_free(void *block) HAK_NOTHROW;

/* ISO C17. Any power of two is a valid alignment, whatever the size; any other: NULL, EINVAL. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(2) void *hak_aligned_alloc(size_t alignment, size_t size) HAK_NOTHROW;

/* POSIX. Returns 0, EINVAL (alignment not a power of two, or no multiple of sizeof(void *)) or
 * ENOMEM; errno and, on failure, *block are left alone. */
int hak_posix_memalign(void **block, size_t alignment, size_t size) HAK_NOTHROW;

/* SunOS, GNU. Rounds the alignment up to a power of two, as glibc; above 2^63: NULL, EINVAL. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(2) void *hak_memalign(size_t alignment, size_t size) HAK_NOTHROW;

/* BSD, obsolete. Aligned to the kernel's page. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(1) void *hak_valloc(size_t size) HAK_NOTHROW;

/* GNU, obsolete. As hak_valloc, the size rounded up to a multiple of the kernel's page. */
HAK_ATTR_MALLOC void *hak_pvalloc(size_t size) HAK_NOTHROW;

/* GNU. Usable bytes of the block, at least the requested size; 0 for NULL. */
size_t hak_malloc_usable_size(const void *block) HAK_NOTHROW;

/* BSD, POSIX.1-2024. As hak_realloc with an overflow check of count * size. */
HAK_ATTR_SIZE(2, 3) void *hak_reallocarray(void *block, size_t count, size_t size) HAK_NOTHROW;

/* C23. The size must be the requested one: a size that the block cannot have is fatal, or ignored
 * with the option sized_check:0. NULL is ignored. */
void hak_free_sized(void *block, size_t size) HAK_NOTHROW;

/* C23. For blocks of hak_aligned_alloc, with the requested alignment and size. */
void hak_free_aligned_sized(void *block, size_t alignment, size_t size) HAK_NOTHROW;

/* FreeBSD. As hak_realloc, but frees the block on failure. */
HAK_ATTR_SIZE(2) void *hak_reallocf(void *block, size_t size) HAK_NOTHROW;

/* OpenBSD. As hak_reallocarray; lost memory is cleared, new memory is zeroed. old_count must be the
 * block's count (0 with NULL). old_count * size overflows: EINVAL; exceeds the block: fatal. */
HAK_ATTR_SIZE(3, 4)
void *hak_recallocarray(void *block, size_t old_count, size_t count, size_t size) HAK_NOTHROW;

/* OpenBSD. Clears `size` bytes, then frees. A size above the block's is fatal. NULL is ignored. */
void hak_freezero(void *block, size_t size) HAK_NOTHROW;

/* GNU. Returns unused memory to the kernel but about `keep` bytes; 1 if there was any, else 0. */
int hak_malloc_trim(size_t keep) HAK_NOTHROW;

/* --- beyond the standard ---------------------------------------------------------------------- */

/* The usable size of a request of `size` bytes: requesting all of it costs no more. For a smaller
 * request see hak_malloc_usable_size: guarded blocks have no spare bytes. 0: size 0, or never
 * available. */
size_t hak_good_size(size_t size) HAK_NOTHROW;

/* "major.minor.patch" */
const char *hak_version(void) HAK_NOTHROW;

/* Allocation with a call site: any address that names the place (a string, a function, a variable).
 * Any free function may free the block. The heap profile tells allocations of one stack with
 * different sites apart. */
HAK_ATTR_MALLOC HAK_ATTR_SIZE(1) void *hak_alloc_at(size_t size, const void *site) HAK_NOTHROW;
void hak_free_at(void *block, size_t size, const void *site) HAK_NOTHROW;

/* Flushes the calling thread's cache: others can use its blocks, and empty slabs can go back. */
void hak_collect_thread(void) HAK_NOTHROW;

/* For programs that move their blocks (docs/jemalloc.md has a whole one): whether the block lies in
 * a slab that so few blocks hold that they fit into others, and should move: to a block of
 * hak_malloc_packed, which lies in the fullest slab. The old block is freed, and after the last one
 * hak_collect_thread called. A few loads; NULL and blocks that no slab has: 0. */
int hak_should_move(const void *block) HAK_NOTHROW;
HAK_ATTR_MALLOC HAK_ATTR_SIZE(1) void *hak_malloc_packed(size_t size) HAK_NOTHROW;

/* Options (`hakmem docs options`): `name` and `value` as in HAKMEM_OPTIONS. Both return 0 or an
 * error number, leave errno alone and print nothing. Any thread may call them at any time.
 *
 * Copies the value in force, zero-terminated, a size with the largest suffix that fits: "32m".
 * ENOENT: no such option. ERANGE: it needs more than `bytes` bytes; 256 always suffice. On failure
 * the buffer is left alone. */
int hak_option_get(const char *name, char *value, size_t bytes) HAK_NOTHROW;

/* Changes a value. ENOENT: no such option. EPERM: it is only read when the process starts, or the
 * hardened library has made it read-only since. EINVAL: no valid value. On failure nothing has
 * changed. If two threads set an option at the same time, one wins; readers see one of the values.
 * Each thread follows from its next slow path that reads the option. Cached memory and learned
 * values above a lowered bound shrink later; hak_malloc_trim and hak_collect_thread hasten that. */
int hak_option_set(const char *name, const char *value) HAK_NOTHROW;

/* A program may define this string to set its own defaults, in the syntax of HAKMEM_OPTIONS:
 *     const char *hak_options = "retain_min:8m,huge_cache:4m";
 * (an executable must export it: link with -rdynamic or against the library). */
extern const char *hak_options;

#ifdef __cplusplus
}
#endif

#undef HAK_NOTHROW
#undef HAK_ATTR_MALLOC
#undef HAK_ATTR_SIZE

#endif
