/* SPDX-License-Identifier: MIT
 *
 * The tcaches of a thread: life/ arranges when it gets and leaves them. */
#ifndef HAK_FRONT_ATTACH_H
#define HAK_FRONT_ATTACH_H

#include "front/tcache.h"

/* Gives the calling thread a tcache: a lost one of its own, an unused or a new one. NULL when
 * metadata memory is out. */
hak_tcache_t *hak_tcache_attach(void);

/* Gives the calling thread, whose only tcache this is, the second (TCACHE-10), if it can. */
void hak_tcache_attach_second(hak_tcache_t *tcache);

/* Empties the bins, and leaves the thread without a tcache. If a signal handler ends the
 * thread inside a slow path, nobody uses its tcache again. Whether a trim is due (abandoned.h). */
bool hak_tcache_detach(hak_tcache_t *tcache);

#endif
