/* SPDX-License-Identifier: MIT
 *
 * The core in the order of ranks, without cold.c: one of the libraries' two translation units. */
#define _GNU_SOURCE 1
#include "base/fmt.c"
#include "os/cgroup_linux.c"
#include "os/file_linux.c"
#include "os/kept_linux.c"
#include "os/libc_glibc.c"
#include "os/lock.c"
#include "os/memory_linux.c"
#include "os/thread_linux.c"

#include "span/dense.c"
#include "span/fit.c"
#include "span/huge_page.c"
#include "span/meta.c"
#include "span/pagemap.c"
#include "span/purge.c"
#include "span/summary.c"
#include "span/superslab.c"

#include "slab/owner.c"
#include "slab/purge.c"
#include "slab/remote.c"
#include "slab/sizeclass.c"
#include "slab/slab.c"
#include "slab/tags.c"

#include "large/box.c"
#include "large/huge.c"
#include "large/huge_cache.c"
#include "large/large.c"
#include "large/vacant.c"

#include "front/budget.c"
#include "front/event.c"
#include "front/flush.c"
#include "front/free.c"
#include "front/malloc.c"
#include "front/partition.c"
#include "front/realloc.c"
#include "front/refill.c"
#include "front/tcache.c"
#include "front/zero_size.c"

#include "conf/conf.c"
#include "guard/guard.c"
#include "profile/chance.c"
#include "profile/profile.c"
#include "reclaim/learner.c"
#include "reclaim/limit.c"
#include "reclaim/reclaim.c"
#include "reclaim/regret.c"
#include "reclaim/slabs.c"
#include "reclaim/target.c"

#if HAK_CONTROL
#include "life/control.c"
#endif
#include "life/fork.c"
#include "life/init.c"
#include "life/scavenger.c"
#include "life/thread.c"
#include "life/underlying.c"

#include "api/family.c"
#include "api/override.c"
#include "api/token.c"
