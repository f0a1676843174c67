/* SPDX-License-Identifier: MIT
 *
 * Linux services of hardened builds: read-only data, random addresses, MTE tags (slab/tags.h). */
#include "os/libc.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum {
    NUMBER_MSEAL = 462,  /* on every architecture; since Linux 6.10 */
    SCATTER_MOST = 1024, /* superslabs */
};

static void seal_see_filter(char *line, void *is_free) {
    *(bool *)is_free |= strncmp(line, "Seccomp:\t0", sizeof "Seccomp:\t0" - 1) == 0;
}

/* A filter of system calls, under which services start, may end the process for one so young. */
bool hak_os_seal(void *base, size_t bytes) {
    static bool is_asked, is_free; /* [init] */
    char text[512];
    if (((uintptr_t)base | bytes) % hak_os_page_bytes() != 0 ||
        hak_syscall(SYS_mprotect, base, bytes, PROT_READ) != 0) {
        return false;
    }
    if (!is_asked && hak_os_is_alone()) {
        (void)hak_os_read_lines("/proc/self/status", text, sizeof text, seal_see_filter, &is_free);
    }
    is_asked = true;
    if (is_free) {
        hak_syscall(NUMBER_MSEAL, base, bytes);
    }
    return true;
}

/* The kernel randomises mappings to the OS page; the alignment of superslabs leaves little of that.
 * The skipped distance is not requested again. */
void hak_os_scatter(void) {
    uint32_t random;
    hak_os_random(&random, sizeof random);
    size_t bytes = (size_t)(random % SCATTER_MOST + 1) * HAK_SUPERSLAB_BYTES;
    void *base = hak_os_reserve(bytes, HAK_SUPERSLAB_BYTES);
    if (base != NULL) {
        hak_syscall(SYS_munmap, base, bytes);
    }
}

bool hak_os_is_address_limited(void) {
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    hak_syscall(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit);
    return limit.rlim_cur != RLIM_INFINITY;
}

/* --- MTE tags --------------------------------------------------------------------------------- */

#if HAK_MTE

/* As the kernel has them; headers may be older. */
enum {
    TAGS_HWCAP2 = 1 << 18,
    TAGS_PROT = 0x20,
    TAGS_SET_CONTROL = 55,    /* of prctl */
    TAGS_IN_CALLS = 1 << 0,   /* system calls take addresses with tags */
    TAGS_SYNC = 1 << 1,       /* the access itself faults */
    TAGS_RANDOM = 0xfffe << 3 /* tags given at random: all but 0 */
};

static bool os_has_tags; /* [init] */

/* Per thread, inherited by new threads: in others the kernel would refuse tagged addresses. */
bool hak_os_tags_start(void) {
    os_has_tags =
        (getauxval(AT_HWCAP2) & TAGS_HWCAP2) != 0 && hak_libc_is_single() &&
        hak_syscall(SYS_prctl, TAGS_SET_CONTROL, TAGS_IN_CALLS | TAGS_SYNC | TAGS_RANDOM) == 0;
    return os_has_tags;
}

void hak_os_tags_allow(void *base, size_t bytes) {
    if (os_has_tags && !(HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_COMMIT))) {
        hak_syscall(SYS_mprotect, base, bytes, PROT_READ | PROT_WRITE | TAGS_PROT);
    }
}

#endif
