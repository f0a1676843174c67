/* SPDX-License-Identifier: MIT
 *
 * Process start, thread start and exit, fork: the one place where the ranks are wired together.
 * The up-calls of front/event.h are defined here. */
#ifndef HAK_LIFE_LIFE_H
#define HAK_LIFE_LIFE_H

#include "base/words.h"

/* Arranges the thread exit hook; part of process start. */
void hak_life_thread_init(void);
/* Until the second call, which takes what the first one returned, the thread has no tcache and gets
 * none: what it allocates goes through the guest's. */
uintptr_t hak_life_detour_begin(void);
void hak_life_detour_end(uintptr_t tcache);
/* An event: starts the scavenger, if there shall be one and is none. */
void hak_life_scavenge(hak_tcache_t *tcache);
/* In the child of a fork. */
void hak_life_scavenger_after_fork(void);
/* malloc_trim: all that nobody uses goes back to the kernel but about `keep` bytes of whole units,
 * and what the calling thread caches. Returns the bytes. */
size_t hak_life_trim(size_t keep);
/* The control channel and the report at exit; part of process start, and, when the C library is up,
 * of the start of the program. */
void hak_life_control_init(void);
void hak_life_control_begin(void);
/* In the child of a fork. */
void hak_life_control_after_fork(void);
/* Registers the fork handlers; part of process start. */
void hak_life_fork_init(void);
/* The child of a process with threads: one of them may have been in dlopen. */
extern bool hak_life_fork_left_threads; /* [init] of the child */
/* Finds the allocator behind ours and fills hak_next_allocator. */
void hak_life_next_init(void);

/* A function, and which object of the process it lies in. */
typedef struct hak_life_place {
    void *address;
    unsigned object;     /* its number in the order of loading, from 1; 0: in none */
    const char *library; /* its name, if dlclose could unload it */
} hak_life_place_t;
/* Only if there is dlsym. Takes the dynamic linker's lock. */
void hak_life_find_objects(hak_life_place_t *places, unsigned count);
/* Keeps it loaded for good, as RTLD_NEXT takes no reference: dlclose of a plugin that brought it
 * and us would unload it, and not us. May run its constructors. NULL: nothing. */
void hak_life_keep_library(const char *library);
/* Hardened builds: what never changes from now on is read-only. */
void hak_life_seal(void);
/* Whether force_libc can be honoured: the C library's own functions can be named. */
bool hak_life_next_has_libc(void);

#endif
