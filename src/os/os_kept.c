/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os_kept.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "os/os_kept.h"

#include "os/lock.h"
#include "os/os.h"
#include "os/syscall.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum {
    KEPT_LEAST = 1024, /* select knows those below; with a limit of 1024 ours are the last ones */
    KEPT_NUMBERS = 24, /* at the end of a table that is no larger */
    KEPT_TABLE = 256,  /* a table of fewer belongs to the program alone */
};

bool hak_os_alone_begin(uint64_t *signals) {
    *signals = hak_os_block_signals();
    return hak_lock_is_single() || hak_os_fault_has_files();
}

void hak_os_alone_end(uint64_t signals) {
    hak_os_restore_signals(signals);
}

/* The least number that ours may have; 0: none. */
static int kept_least(void) {
    struct rlimit limit = {0};
    if (hak_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) != 0 ||
        limit.rlim_cur < KEPT_TABLE) {
        return 0;
    }
    bool is_large = limit.rlim_cur >= KEPT_LEAST + KEPT_NUMBERS;
    return is_large ? KEPT_LEAST : (int)limit.rlim_cur - KEPT_NUMBERS;
}

bool hak_os_kept_open(hak_os_kept_t *kept, const char *path) {
    *kept = HAK_OS_KEPT_NONE;
    int least = kept_least();
    if (hak_os_fault_hit(HAK_OS_CALL_READ) || least == 0) {
        return false;
    }
    kept->number = hak_os_fault_keep(path);
    if (kept->number != -1) {
        bool is_there = kept->number != HAK_OS_FAULT_REFUSED;
        kept->number = is_there ? kept->number : -1;
        return is_there;
    }
    long low = hak_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (low < 0) {
        return false;
    }
    kept->number = hak_os_copy_descriptor((int)low, least);
    hak_os_close_file((int)low);
    if (kept->number != -1 && !hak_os_find_file(kept->number, &kept->id)) {
        hak_os_close_file(kept->number);
        kept->number = -1;
    }
    return kept->number != -1;
}

void hak_os_kept_close(hak_os_kept_t *kept) {
    if (kept->number >= 0) {
        hak_os_close_file(kept->number);
    }
    kept->number = -1;
}

bool hak_os_kept_is_open(const hak_os_kept_t *kept) {
    hak_os_file_id_t id;
    char byte;
    if (kept->number < 0) {
        return kept->number != -1 && hak_os_fault_kept(kept->number, &byte, 1) != 0;
    }
    return hak_os_find_file(kept->number, &id) && hak_os_is_same_file(&id, &kept->id);
}

size_t hak_os_kept_read(const hak_os_kept_t *kept, char *buffer, size_t capacity) {
    if (hak_os_fault_hit(HAK_OS_CALL_READ) || kept->number == -1) {
        return 0;
    }
    if (kept->number < 0) {
        return hak_os_fault_kept(kept->number, buffer, capacity);
    }
    if (!hak_os_kept_is_open(kept)) {
        return 0;
    }
    long length = hak_syscall(SYS_pread64, kept->number, (long)buffer, (long)capacity, 0, 0, 0);
    return length > 0 && hak_os_kept_is_open(kept) ? (size_t)length : 0;
}
