/* SPDX-License-Identifier: MIT
 *
 * The library in a process that it looks at: what its two entries share. */
#ifndef OBS_LIBRARY_H
#define OBS_LIBRARY_H

#include "observe.h"
#include "output.h"

/* Makes a report of this process; drop it by obs_report_drop. Returns NULL, or why there is none, a
 * line without its end that lasts until the next report. Any thread may call, outside of signal
 * handlers. errno is left alone. */
const char *obs_report_make(obs_page_t *page, obs_verb_t verb, obs_form_t form);
void obs_report_drop(obs_page_t *page);
/* One thread at a time is in the observer; others wait if they may. false: one is, or a signal
 * handler interrupted this thread there. */
bool obs_enter(bool may_wait);
void obs_leave(void);
/* One line "hakmem: ..." on standard error. */
void obs_warn(const char *format, ...);

#endif
