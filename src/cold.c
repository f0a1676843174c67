/* SPDX-License-Identifier: MIT
 *
 * The other translation unit of the libraries: code that a start and the common paths never
 * run, for reports, options, errors, and stacks of watched blocks. It lies behind all other code
 * (api/place.ld), so that its pages are not read. */
#define _GNU_SOURCE 1
#include "base/knobs.c"
#include "base/probe.c"

#include "os/check.c"
#include "os/code_linux.c"
#include "os/harden_linux.c"
#include "os/trap_linux.c"

#include "stack/cfi.c"
#include "stack/reader.c"
#include "stack/row.c"
#include "stack/table.c"
#include "stack/walk.c"

#include "large/residency.c"
#if HAK_HARDEN || HAK_FAULT /* tests link with all of it */
#include "large/guarded.c"
#include "large/huge_quarantine.c"

#include "front/quarantine.c"
#endif
#include "front/find_free.c"

#include "conf/jemalloc_conf.c"
#include "conf/show.c"

#include "guard/fatal_report.c"
#include "guard/stack_print.c"

#include "profile/sample.c"
#include "profile/store.c"

#include "door/door.c"

#include "stat/collect.c"
#include "stat/inventory.c"
#include "stat/sum.c"
#include "stat/totals.c"

#include "compat/control.c"
#include "compat/mallocx.c"
#include "compat/names.c"
#include "compat/numbers.c"
#include "compat/packed.c"
#include "compat/print.c"
#include "compat/prof.c"
#include "compat/thread.c"
#include "compat/usage.c"

#include "api/dlopen.c"
#include "api/entry.c"
#include "api/inline.c"
