/* SPDX-License-Identifier: MIT
 *
 * The functions of jemalloc 5.3 beside malloc's family, with its contracts: a program that is
 * linked against libjemalloc finds them here, and its figures, settings and defragmentation work.
 * Blocks of these functions and of malloc's family are the same: each frees those of the other.
 * docs/jemalloc.md says what each name of mallctl does here. Any thread may call any function at
 * any time; in a signal handler only mallctl and its two kin, to read, and what docs/jemalloc.md
 * names. */
#ifndef HAKMEM_JEMALLOC_H
#define HAKMEM_JEMALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The prefix of the names, for libraries that have one. */
#ifndef HAK_JE
#define HAK_JE(name) name
#endif

/* Flags, to be joined by |. A block at a multiple of 2^log2, or of a power of two. */
#define MALLOCX_LG_ALIGN(log2) ((int)(log2))
#define MALLOCX_ALIGN(align) ((int)__builtin_ctzll(align))
/* All bytes of the block, or those that it grows by, are zero. */
#define MALLOCX_ZERO 0x40
/* A cache of tcache.create; here the thread's own cache serves it. */
#define MALLOCX_TCACHE(tcache) ((int)(((unsigned)(tcache) + 2u) << 8))
/* Past the thread's cache, straight from and to the slabs; the fullest slab serves a request. */
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
/* An arena that arenas.narenas counts. There is one heap, which all of them name. */
#define MALLOCX_ARENA(arena) ((int)(((unsigned)(arena) + 1u) << 20))

/* In names of mallctl: all arenas; those that were destroyed. */
#define MALLCTL_ARENAS_ALL 4096
#define MALLCTL_ARENAS_DESTROYED 4097

/* A block of at least `size` bytes. NULL: memory is out, the size or the alignment is larger than
 * any block, or there is no such arena. Size 0 is as in malloc. */
void *HAK_JE(mallocx)(size_t size, int flags);

/* Resizes a block, which may move. NULL: as above, and the block is unchanged. Size 0 counts as 1,
 * and NULL as block is a new one. */
void *HAK_JE(rallocx)(void *block, size_t size, int flags);

/* Resizes a block where it is, to `size + extra` bytes if it can be, at least to `size`. Returns
 * the usable size; less than `size`: it stayed as it was. */
size_t HAK_JE(xallocx)(void *block, size_t size, size_t extra, int flags);

/* The usable size of a block; 0 for NULL. */
size_t HAK_JE(sallocx)(const void *block, int flags);

/* Frees a block. NULL is ignored. */
void HAK_JE(dallocx)(void *block, int flags);

/* The same with the size that was asked for, or any up to the usable size; a size that the block
 * cannot have is fatal, as in hak_free_sized. The flags have the block's alignment. */
void HAK_JE(sdallocx)(void *block, size_t size, int flags);

/* The usable size that mallocx would give; 0: no block is that large. */
size_t HAK_JE(nallocx)(size_t size, int flags);

/* Reads a value, changes it or acts, by name. Returns 0 or an error number, and leaves errno alone:
 *   ENOENT  no such name
 *   EPERM   a value that cannot be read, or cannot be written
 *   EINVAL  newlen or *oldlenp is not the value's size. As much of an old value as fits is copied,
 *           *oldlenp says how much; nothing is changed
 *   EAGAIN  memory or numbers are out, or the call interrupted the allocator (a signal handler)
 *   EFAULT  what was asked for is not possible here */
int HAK_JE(mallctl)(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);

/* The numbers that stand for a name, *miblen at most; numbers in a name stand for themselves, and
 * may be replaced. *miblen becomes their count. A name may be cut, and completed by another. */
int HAK_JE(mallctlnametomib)(const char *name, size_t *mib, size_t *miblen);
int HAK_JE(mallctlbymib)(const size_t *mib, size_t miblen, void *oldp, size_t *oldlenp, void *newp,
                         size_t newlen);

/* Writes figures in words, or as JSON if `options` has a J, by `write`, or by malloc_message, or
 * to standard error. */
void HAK_JE(malloc_stats_print)(void (*write)(void *context, const char *text), void *context,
                                const char *options);

/* The program's own function for texts; NULL: they go to standard error. */
extern void (*HAK_JE(malloc_message))(void *context, const char *text);
/* The program's settings. libhakmem.so does not read them: hak_options has ours. */
extern const char *HAK_JE(malloc_conf);

#ifdef __cplusplus
}
#endif

#endif
