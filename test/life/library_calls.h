/* SPDX-License-Identifier: MIT
 *
 * The system calls that the library makes once it has started, by when it makes them: the rows of
 * the table in docs/worst-cases.md#sandboxes, which tools/check_docs.py compares with these. */
#ifndef HAK_TEST_LIFE_LIBRARY_CALLS_H
#define HAK_TEST_LIFE_LIBRARY_CALLS_H

#include <sys/syscall.h>

/* memory */
#define CALLS_MEMORY SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex, SYS_brk
/* first block of a thread */
#define CALLS_THREAD SYS_gettid
/* end of a thread, blocks past it or of a handler in exit, malloc_trim after many threads ended */
#define CALLS_END SYS_rt_sigprocmask
/* fork */
#define CALLS_FORK SYS_rt_sigprocmask, SYS_gettid
/* a limit of a control group was found */
#define CALLS_LIMIT SYS_fstat, SYS_pread64
/* no clock without a call */
#define CALLS_CLOCK SYS_clock_gettime
/* after mlockall, blocks of 64 GiB and more */
#define CALLS_LOCKED SYS_munlock

#endif
