/* SPDX-License-Identifier: MIT
 *
 * The glossary: one word, one meaning, by layer. Forward declarations of types that cross folders.
 *
 * base    knob          a live parameter of the core; option: its name outside
 *         audit         a walk of a whole structure that checks its invariants, in tests
 * os      OS page       the kernel's page: 4, 16 or 64 KiB, known at run time; never just "page"
 *         huge page     2 MiB that the kernel maps in one piece, where OS pages have 4 KiB
 *         purge         return memory to the kernel and keep the addresses
 *         MTE tag       four bits of memory and address that the processor compares (aarch64)
 * span    unit          64 KiB of address space, the granule of the page map
 *         page map      address -> entry of its unit: owner id and size class, or another kind
 *         leaf          the entries of 4 GiB; the zero leaf serves addresses without one
 *         superslab     4 MiB aligned mapping, carved into spans; its record lies elsewhere
 *         region        an address range of ours without superslabs: metadata, guarded blocks
 *         span          contiguous run of units, for a slab or a large block
 *         clean         a unit that is known to read as zero; dirty: one that holds memory
 *         peak          the most memory in use so far
 * slab    block         one slot handed to the user
 *         size class    index of a block size (`sc`); usable size: the bytes a program may use
 *         slab          span cut into blocks of one size class, with one owner
 *         current       the slab that its owner refills a class from; partial: another with blocks
 *         fresh         a block that was never handed out; carve: take the next of a slab
 *         mark          a bit in the bitmap of a slab: this block is free and stores no link
 *         link          the first word of a free block: the next one, and the free marker
 *         free marker   the low 16 bits of a link, in every free block of a list
 *         purged pages  OS pages of a slab without a block in use, returned to the kernel
 *         owner         a heap: slabs, a lock, an owner id; about one per CPU, shared by threads
 *         owner id      the number of an owner in page-map entries
 *         held          an owner whose lock is taken; its holder alone touches it and its slabs
 *         home          of a thread: the owner it refills from
 *         idle          an owner that is no thread's home; a bin that was not used lately
 *         adopt         move a slab from an idle owner, or one with many partial slabs, to another
 *         retire        return the span of an empty slab
 *         remote free   a free of a block whose slab belongs to another owner than the home
 *         message       marks of blocks of one slab for its owner, and their number
 *         remote marks  of a slab: a second bitmap, of messages; drain: receive them
 *         early mark    one that was received before its number
 *         queue         of an owner: its slabs with messages
 *         plane         of a superslab: one line of remote marks for each unit
 * large   large         block in a span of up to 1 MiB (more after it grew in place)
 *         huge          block in a mapping of its own, above 1 MiB
 *         huge cache    freed huge blocks that keep their memory for reuse, as extents
 *         vacant        a range of addresses without memory, kept where unmapping costs a mapping
 * front   hit path      a malloc or free that a bin serves at once; other calls are slow paths,
 *                       as most frees in slabs of several units (blocks above 12 KiB)
 *         cold exit     a slow path that the hit path ends in by a jump
 *         tcache        the cache of one thread: a bin for each class
 *         bin           LIFO of free blocks of one class, of any owners; slots left: the number it
 *                       still takes
 *         begun         a class that the thread refilled, or freed some blocks of
 *         refill        fill an empty bin from the home; overflow: a free that finds a full bin
 *         flush         empty a list: into slabs of the home, and in messages to other owners
 *         place         the address of a block of size 0, in an inaccessible region
 *         budget        the growth that the bins of all threads share; draw: take some of it
 *         fallback      the tcache, under a lock, of threads that have none of their own
 *         tick          a slow path that counts: a refill, a full bin, a large free
 *         event         a callback of front/event.h; runs at every 256th tick, or by time
 *         step          of time: 0.1 s, HAK_EVENT_STEP_NS
 * reclaim bound         the unused memory that may be kept; memory above it is purged
 *         pool          unused memory of one kind: bins, huge cache, units, idle pages of slabs
 *         decay         purge the memory that nobody needed in a window (0.4 s, HAK_WINDOW_NS)
 *         pass          a walk over an owner's partial slabs that purges idle pages
 *         regret        purged memory that was needed again soon; it raises the bound
 *         keep time     how long unused memory is kept; the learner finds the cheapest
 *         ghost         a simulated pool with a keep time; line: memory that it holds, used or not
 *         limit         of a control group; tight: near it even after full reclaim
 * guard   guarded       a block alone on its OS page, between two inaccessible ones (watched)
 *         slot          the place of a guarded block, and its record
 *         extra         a guarded block beyond the rate, within an allowance
 *         guard         inaccessible addresses behind a block or a superslab
 * profile sample        an allocation chosen by chance, with its stack; site: a stack
 *         rate          mean bytes between two samples; weight: the blocks that a sample stands for
 *         detour        while sampling: every small request takes its cold exit, which counts
 *         pinned        free memory that stays resident because of blocks in use beside it
 * harden  canary        secret bytes behind the user's part of a block
 *         quarantine    freed blocks that are held back; seal: make read-only for good
 * life    underlying    the allocator that ours replaces: the C library's, or the next one
 *         foreign       a pointer that is no block of ours
 *         clean fork    one that finds no structure of its thread in the middle of a change
 *         scavenger     an optional thread that runs events while the program is idle
 * compat  their bin     a small class of jemalloc's table, which ours are shown in
 *         packed        past the bins: from the fullest slab, and back to the slab at once
 *         rank          of a slab: how full it is; source: a slab below the rank, to be emptied */
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
