/* SPDX-License-Identifier: MIT
 *
 * Every file of the core in the order of ranks: one translation unit, which is what the products
 * are built from. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/check.c"
#include "base/fmt.c"
#include "os/lock.c"
#include "os/os_cgroup.c"
#include "os/os_file.c"
#include "os/os_guard.c"
#include "os/os_linux.c"
#include "os/os_thread.c"
#include "os/os_trap.c"

#include "span/huge_page.c"
#include "span/meta.c"
#include "span/pagemap.c"
#include "span/purge.c"
#include "span/superslab.c"

#include "slab/holes.c"
#include "slab/owner.c"
#include "slab/remote.c"
#include "slab/sizeclass.c"
#include "slab/slab.c"

#include "large/huge.c"
#include "large/huge_cache.c"
#include "large/large.c"
#include "large/resident.c"
#include "large/room.c"

#include "front/budget.c"
#include "front/event.c"
#include "front/quarantine.c"
#include "front/refill.c"
#include "front/resize.c"
#include "front/slow.c"
#include "front/spill.c"
#include "front/tcache.c"

#include "conf/conf.c"
#include "guard/describe.c"
#include "guard/guard.c"
#include "guard/hunt.c"
#include "guard/module.c"
#include "guard/report.c"
#include "guard/stack.c"
#include "policy/policy.c"
#include "policy/pressure.c"
#include "stat/collect.c"
#include "stat/report.c"

#include "life/fork.c"
#include "life/init.c"
#include "life/next.c"
#include "life/scavenger.c"
#include "life/thread.c"

#include "api/dlopen.c"
#include "api/entry.c"
#include "api/family.c"
#include "api/override.c"
