/* SPDX-License-Identifier: MIT
 *
 * Linux: kept.h. */
#include "os/kept.h"

#include "os/lock.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    KEPT_LEAST = 1024, /* above the numbers that select knows; with a limit of 1024 the last ones */
    KEPT_NUMBERS = 24, /* at the end of a smaller table */
    KEPT_TABLE = 256,  /* entries; all of a smaller table is the program's */
    KEPT_TASK_LINKS = 3, /* links of the folder of threads: two of its own, one per thread */
};

HAK_LOCKED_STATE int hak_kept_least; /* while alone: least number to use; 0: not known yet */

bool hak_os_has_one_task(void) {
    struct stat status = {0};
    hak_syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status);
    return S_ISDIR(status.st_mode) && status.st_nlink == KEPT_TASK_LINKS;
}

bool hak_os_is_alone(void) {
    bool is_told = &__libc_single_threaded != NULL;
    return (is_told ? hak_libc_is_single() : hak_os_has_one_task()) ||
           (HAK_FAULT && hak_os_fault_has_files());
}

/* A signal handler may start a thread before signals are blocked. */
bool hak_os_alone_begin(uint64_t *signals) {
    if (!hak_os_is_alone()) {
        return false;
    }
    *signals = hak_os_block_signals();
    hak_kept_least = 0;
    bool is_alone = hak_os_is_alone();
    if (!is_alone) {
        hak_os_restore_signals(*signals);
    }
    return is_alone;
}

/* The least number to use; INT_MAX, which no number is: none. */
static int kept_least(void) {
    struct rlimit limit = {0};
    if (hak_kept_least == 0) {
        hak_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
        hak_kept_least = limit.rlim_cur >= KEPT_LEAST + KEPT_NUMBERS ? KEPT_LEAST
                         : limit.rlim_cur >= KEPT_TABLE ? (int)limit.rlim_cur - KEPT_NUMBERS
                                                        : INT_MAX;
    }
    return hak_kept_least;
}

/* false: none is open. */
static bool find_file(int fd, hak_os_file_id_t *id) {
    struct stat status = {0};
    bool is_open = hak_syscall(SYS_fstat, fd, &status) == 0;
    *id = (hak_os_file_id_t){status.st_dev, status.st_ino};
    return is_open;
}

size_t hak_os_kept_open(hak_os_kept_t *kept, const char *path, hak_os_kept_wanted_t *is_wanted,
                        char *text, size_t capacity) {
    size_t length = 0;
    kept->number = -1;
    if (HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_READ)) {
        return 0;
    }
    bool is_given = HAK_FAULT && hak_os_fault_file(path, text, capacity, &length);
    int low = is_given ? -1 : hak_os_open_head(path, text, capacity, &length);
    bool is_kept = capacity == 0 || is_wanted(text, length);
    if (HAK_FAULT && is_kept && is_given) {
        kept->number = hak_os_fault_keep(path);
    } else if (is_kept && find_file(low, &kept->id)) {
        long copy = hak_syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, kept_least());
        kept->number = copy < 0 ? -1 : (int)copy;
    }
    if (low >= 0) {
        hak_syscall(SYS_close, low);
    }
    return length;
}

void hak_os_kept_close(hak_os_kept_t *kept) {
    if (kept->number >= 0) {
        hak_syscall(SYS_close, kept->number);
    }
    kept->number = -1;
}

static bool kept_is_ours(const hak_os_kept_t *kept) {
    hak_os_file_id_t id;
    return find_file(kept->number, &id) && id.device == kept->id.device &&
           id.inode == kept->id.inode;
}

size_t hak_os_kept_read(const hak_os_kept_t *kept, char *buffer, size_t capacity) {
    if ((HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_READ)) || kept->number == -1) {
        return 0;
    }
    if (kept->number < 0) {
        return HAK_FAULT ? hak_os_fault_kept(kept->number, buffer, capacity) : 0;
    }
    if (!kept_is_ours(kept)) {
        return 0;
    }
    long length = hak_syscall(SYS_pread64, kept->number, buffer, capacity);
    return length > 0 && kept_is_ours(kept) ? (size_t)length : 0;
}
