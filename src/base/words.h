/* SPDX-License-Identifier: MIT
 *
 * The glossary: one word, one meaning. Forward declarations of every type that crosses a folder.
 *
 *   OS page     the kernel's page (4, 16 or 64 KiB, known at run time); never called just "page"
 *   huge page   2 MiB of memory that the kernel maps in one piece, where OS pages have 4 KiB
 *   unit        64 KiB of address space, the granule of the page map
 *   block       one slot handed to the user
 *   size class  index of a block size (`sc`)
 *   span        contiguous run of units handed out by the provider, to a slab or a large block
 *   slab        span cut into blocks of one size class, with one owner
 *   superslab   4 MiB aligned mapping, carved into spans
 *   page map    address -> entry of its unit
 *   tcache      the per-thread cache: bins and outboxes
 *   owner       whom slabs belong to; about one a CPU, with a tag that stands in the page map and a
 *               lock; who has that is its holder, and may touch it and its slabs
 *   home        of a thread, the owner it refills from; several threads share one
 *   bin         LIFO of free blocks of one class in a tcache
 *   remote free a free of a block whose slab belongs to another owner than the thread's home
 *   outbox      list of a tcache, one a class, of the blocks it freed for other owners
 *   hand over   send an outbox to the owners, in batches; recycle: take it as the next bin instead
 *   sort, spill give the blocks of a list back to their slabs, or in batches to their owners
 *   tick        a slow path that counts: a refill, a full bin or outbox, the free of a large block
 *   event       what front/event.h has registered; runs at every 256th tick, or by time
 *   topic       one of what the control channel, or the report at exit, tells
 *   peer        who is connected to the control channel
 *   quarantine  where freed blocks wait in hardened builds: they are held back
 *   canary      bytes behind what the user has, which nobody but us knows; guard: what nobody may
 *               touch, behind a block or a superslab; seal: make read-only for good
 *   mark        a bit that says a block is free
 *   tag         of an owner: in page-map entries; of a free block: the low 16 bits of its link
 *   fresh       a block that was never handed out
 *   batch       blocks of one slab on their way to its owner
 *   own list    of a slab, what batches brought to it
 *   idle        an owner that is no thread's home; a bin not used lately; memory nobody needs
 *   guest       who allocates without a tcache
 *   adopt       an owner takes a slab over from one that is no thread's home, or has some to spare
 *   retire      an empty slab gives its span back to the provider
 *   large       span of up to 1 MiB (more after it grew in place) inside a superslab
 *   huge        mapping of its own, above that
 *   purge       give physical memory back, keep the address
 *   decay       what nobody needed for a window of time is purged
 *   hole        OS pages of a slab that no block in use touches
 *   clean       a unit that is known to read as zero
 *   guarded     a block alone on its OS page, between two that nobody may touch (guard/); for
 *               users: watched
 *   slot        the place of a guarded block, and its record
 *   stack       the return addresses of a thread, innermost first; frame: one of them
 *   trap        a signal of the kernel because of a memory access */
#ifndef HAK_BASE_WORDS_H
#define HAK_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hak_superslab hak_superslab_t;
typedef struct hak_span hak_span_t;
typedef struct hak_slab hak_slab_t;
typedef struct hak_owner hak_owner_t;
typedef struct hak_tcache hak_tcache_t;
typedef struct hak_huge hak_huge_t;
typedef struct hak_request hak_request_t;

enum {
    HAK_UNIT_LOG2 = 16,
    HAK_UNIT_BYTES = 1 << HAK_UNIT_LOG2,
    HAK_SUPERSLAB_LOG2 = 22,
    HAK_SUPERSLAB_BYTES = 1 << HAK_SUPERSLAB_LOG2,
    HAK_SUPERSLAB_UNITS = HAK_SUPERSLAB_BYTES / HAK_UNIT_BYTES,
    HAK_HUGE_PAGE_BYTES = 2 << 20,
    HAK_HUGE_PAGE_UNITS = HAK_HUGE_PAGE_BYTES / HAK_UNIT_BYTES,
    HAK_SUPERSLAB_HUGE_PAGES = HAK_SUPERSLAB_BYTES / HAK_HUGE_PAGE_BYTES,
    HAK_BLOCK_ALIGN = 16,
};

#endif
