/* SPDX-License-Identifier: MIT
 *
 * Process start, thread start and exit, fork: wires the ranks together; the front's up-calls. */
#ifndef HAK_LIFE_LIFE_H
#define HAK_LIFE_LIFE_H

#include "base/compiler.h"
#include "base/words.h"

/* Arranges the thread exit hook; part of process start. */
void hak_life_thread_init(void);
/* Whether the main thread, if it leaves, calls hak_life_control_main_ends. */
bool hak_life_main_tells_end(void);
/* By the first thread, or the one of a forked child: whether it will, if it is the main one. No
 * system call, as a sandbox may kill for getpid: that is asked when a tool attaches. */
void hak_life_main_note(void);
/* Between these two calls the thread has no tcache and gets none: it allocates from the fallback
 * tcache. The second takes the result of the first. */
uintptr_t hak_life_detour_begin(void);
void hak_life_detour_end(uintptr_t tcache);
/* An event: starts the scavenger, if the option wants one and none runs. */
void hak_life_scavenge(hak_tcache_t *tcache);
/* In the child of a fork. */
void hak_life_scavenger_after_fork(void);
/* The report at exit: part of process start; the second, of program start, when the C library is up.
 */
void hak_life_report_init(void);
void hak_life_report_begin(void);
/* Whether the option `only` includes this program. */
bool hak_life_is_meant(void);
/* The control channel: the same. */
void hak_life_control_init(void);
void hak_life_control_begin(void);
void hak_life_control_seal(void);
/* The main thread ends, and others may go on. */
void hak_life_control_main_ends(void);
/* In the child of a fork. */
void hak_life_control_after_fork(void);
/* An event: does what a letter in the mailbox asks (base/mailbox.h). */
void hak_life_mail(hak_tcache_t *tcache);
/* In the child of a fork: a letter was for its parent. */
void hak_life_mail_after_fork(void);
/* Registers the fork handlers; part of process start. */
void hak_life_fork_init(void);
/* Fills hak_underlying_allocator. */
void hak_life_underlying_init(void);
/* Hardened builds: makes data that is constant after process start read-only. */
void hak_life_seal(void);
/* Whether force_libc is possible: the C library's functions have names of their own. */
bool hak_life_underlying_has_libc(void);

/* Of the calling thread. Together, as each variable of a thread may cost a gap. */
typedef struct hak_life_self {
    bool has_exited; /* [thread] the destructor ran: no tcache any more */
    bool is_main;    /* [thread] it has main_id, and the destructor will run */
    uint16_t passed; /* [thread] bits of the block that underlying.c passes on */
} hak_life_self_t;
extern HAK_TLS hak_life_self_t hak_life_self;

#endif
