/* SPDX-License-Identifier: MIT
 *
 * The world of the scenarios: the sources of the protocol as they are (world.c includes them), two
 * or three owners, up to three units of address space, blocks of one size class. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "base/compiler.h"

/* What the sources keep for each thread is changed with the coroutine. */
#undef HAK_TLS
#define HAK_TLS

#include "explore.h"
#include "front/tcache.h"
#include "slab/remote.h"

enum {
    WORLD_OWNERS = 3,
    WORLD_UNITS = 3,
    WORLD_BLOCKS = 3, /* of a slab */
    WORLD_SC = 31,    /* 8 KiB: carved one by one */
};

/* What must be seen to happen. */
enum {
    MARK_FIRST,       /* T7 */
    MARK_MORE,        /* T8 */
    MARK_FORWARD,     /* T12 */
    MARK_RETIRE,      /* T6 */
    MARK_CREATE_ANEW, /* T1 in the unit of a slab that retired */
    MARK_ADOPT,       /* T15 */
    MARK_BUSY,        /* an owner was held when it was tried */
    MARK_EARLY,       /* T11 took marks whose number comes later */
    MARK_SLEEP,       /* a lock was waited for */
    MARK_LATE,        /* in vain */
    MARK_OWN,         /* a flush gave a block straight back */
};

extern char model_single_threaded;                /* the C library's word */
extern hak_owner_t *world_home[WORLD_OWNERS + 1]; /* from 1 on */
/* What a thread that sends to the slab of a unit notes: its child needs one thread for each. */
extern hak_slab_t *world_sending[WORLD_UNITS];

/* What the sources keep for each thread. */
void world_threads(void);
/* Makes everything anew: `owners` owners with one user each, and `units` units of memory. */
void world_start(unsigned owners, unsigned units);
/* A slab of the owner with `count` blocks, all in use. Returns its unit. */
unsigned world_slab(unsigned owner, unsigned count);
/* The program gets blocks from the owner: a refill, and a touch of each block. */
void world_take(hak_owner_t *owner, uint32_t want);
hak_slab_t *world_slab_of(unsigned unit);
/* Blocks of a unit leave the program's hand; linked. */
hak_blocks_t world_blocks(unsigned unit, unsigned first, unsigned count);
/* The same in one message: T16, then T7 to T9. */
void world_push(unsigned unit, unsigned first, unsigned count);
/* A block leaves it for the bitmap of its slab; the owner is held, or alone. */
void world_give(unsigned owner, unsigned unit, unsigned first);
/* A thread of the home refills; a thread's tick visits one owner. */
void world_refill(unsigned owner);
void world_tick(unsigned owner);
/* A thread of the home adopts a slab from anybody, as when memory is out. */
void world_adopt(unsigned owner);
/* A thread whose home is the owner flushes blocks. */
void world_flush(unsigned owner, hak_blocks_t blocks);

/* --- between world.c, ghost.c and platform.c */
extern hak_superslab_t world_superslab;
extern hak_owner_t *hak_all_owners;
extern uint64_t world_time; /* [owner] it passes when nothing else happens */
unsigned world_unit(const void *address);
uint32_t *world_entry(unsigned unit);
void ghost_start(void);
void ghost_unit(unsigned unit, bool is_retired);
void ghost_move(void *block, bool is_taken);

/* Alone: everybody takes home what waits; then every block is in a hand or on its slab's list,
 * nothing is pending, and what is empty has retired. */
void world_settle(void);
/* Alone, in the child of a fork: what is now in no hand, on no list and waits nowhere is lost. */
void world_note_lost(void);

#endif
