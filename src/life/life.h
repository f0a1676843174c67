/* SPDX-License-Identifier: MIT
 *
 * Process start, thread start and exit, fork: wires the ranks together; the front's up-calls. */
#ifndef HAK_LIFE_LIFE_H
#define HAK_LIFE_LIFE_H

#include "base/words.h"

/* Arranges the thread exit hook; part of process start. */
void hak_life_thread_init(void);
/* A tcache for the calling thread, until its exit; NULL: hak_life_thread_start says why. */
hak_tcache_t *hak_life_thread_attach(void);
/* An event: starts the scavenger, if the option wants one and none runs. */
void hak_life_scavenge(hak_tcache_t *tcache);
extern uint64_t hak_life_scavenger_runs; /* [atomic] passes of it */
/* In the child of a fork. */
void hak_life_scavenger_after_fork(void);
/* The report at exit: part of process start, and of program start, when the C library is up. */
void hak_life_report_init(void);
void hak_life_report_begin(void);
/* A function of the observer's library, by its name; where it is linked in, `linked`. NULL: neither
 * that, nor can it be loaded. May allocate. */
void *hak_life_observer(void *linked, const char *name);
/* An event: does what a letter in the mailbox asks (base/mailbox.h). */
void hak_life_mail(hak_tcache_t *tcache);
/* In the child of a fork: a letter was for its parent. */
void hak_life_mail_after_fork(void);
/* Registers the fork handlers; part of process start. */
void hak_life_fork_init(void);
/* Hardened builds: makes data that is constant after process start read-only. */
void hak_life_seal(void);

#endif
