/* SPDX-License-Identifier: MIT
 *
 * What other files need of mallctl; private to this folder. */
#ifndef HAK_COMPAT_CONTROL_H
#define HAK_COMPAT_CONTROL_H

#include "compat/usage.h"

#define HAK_COMPAT_VERSION "5.3.0-0-hakmem-" HAK_VERSION_TEXT

/* The figures of the last epoch; the first if there was none. */
const hak_compat_figures_t *hak_compat_figures(void);
/* The next setting, from the row *at on, that was made and has no effect; NULL: none. */
const char *hak_compat_ignored(unsigned *at);

#endif
