/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os.h: memory tags of aarch64 (MTE). What is used of them, and how, is
 * none of this file's business (slab/tags.h). */
#include "os/os.h"

#if HAK_MTE

#include "os/lock.h"
#include "os/syscall.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* As the kernel has them; headers may be older. */
enum {
    TAGS_HWCAP2 = 1 << 18,
    TAGS_PROT = 0x20,
    TAGS_SET_CONTROL = 55,    /* of prctl */
    TAGS_IN_CALLS = 1 << 0,   /* system calls take addresses with tags */
    TAGS_SYNC = 1 << 1,       /* the access itself faults */
    TAGS_RANDOM = 0xfffe << 3 /* tags that are given at random: all but 0 */
};

static bool os_has_tags; /* [init] */

/* The setting is of a thread and of those it starts. In others the kernel would refuse addresses
 * with tags. */
bool hak_os_tags_start(void) {
    os_has_tags = (getauxval(AT_HWCAP2) & TAGS_HWCAP2) != 0 && hak_lock_is_single() &&
                  hak_syscall(SYS_prctl, TAGS_SET_CONTROL, TAGS_IN_CALLS | TAGS_SYNC | TAGS_RANDOM,
                              0, 0, 0, 0) == 0;
    return os_has_tags;
}

void hak_os_tags_allow(void *base, size_t bytes) {
    if (os_has_tags && !hak_os_fault_hit(HAK_OS_CALL_COMMIT)) {
        hak_syscall(SYS_mprotect, (long)base, (long)bytes, PROT_READ | PROT_WRITE | TAGS_PROT, 0, 0,
                    0);
    }
}

#endif
