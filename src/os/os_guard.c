/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os.h: what hardened builds ask of the kernel. */
#include "os/os.h"
#include "os/syscall.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    NUMBER_MSEAL = 462,  /* of all processors; from Linux 6.10 on */
    SCATTER_MOST = 1024, /* superslabs */
};

bool hak_os_seal(void *base, size_t bytes) {
    if (((uintptr_t)base | bytes) % hak_os_page_bytes() != 0 ||
        hak_syscall(SYS_mprotect, (long)base, (long)bytes, PROT_READ, 0, 0, 0) != 0) {
        return false;
    }
    hak_syscall(NUMBER_MSEAL, (long)base, (long)bytes, 0, 0, 0, 0);
    return true;
}

/* Where the kernel begins is random to the OS page, of which the alignment of superslabs leaves
 * little. What is not mapped any more is not asked for again. */
void hak_os_scatter(void) {
    uint32_t random;
    hak_os_random(&random, sizeof random);
    size_t bytes = (size_t)(random % SCATTER_MOST + 1) * HAK_SUPERSLAB_BYTES;
    void *base = hak_os_reserve(bytes, HAK_SUPERSLAB_BYTES);
    if (base != NULL) {
        hak_syscall(SYS_munmap, (long)base, (long)bytes, 0, 0, 0, 0);
    }
}
