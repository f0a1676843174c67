/* SPDX-License-Identifier: MIT
 *
 * By system calls: nothing here takes memory of the program, is a point where its threads may be
 * cancelled, or changes errno. */
#include "output.h"

#include "memory.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

enum { PAGE_FIRST = 256 << 10, KEPT_LEAST = 100 };
static const size_t PAGE_MOST = (size_t)1 << 30;
static const uint64_t WAIT_NS = 2000000000; /* for the reader, in total */

void obs_page_put(void *context, const char *data, size_t length) {
    obs_page_t *page = context;
    if (page->is_cut || length > PAGE_MOST - page->length) {
        page->is_cut = true;
        return;
    }
    if (page->room - page->length < length) {
        size_t room = page->room != 0 ? page->room : PAGE_FIRST;
        while (room < page->length + length) {
            room *= 2;
        }
        char *grown = obs_grow(page->data, room);
        if (grown == NULL) {
            page->is_cut = true;
            return;
        }
        page->data = grown;
        page->room = room;
    }
    memcpy(page->data + page->length, data, length);
    page->length += length;
}

/* --- users ------------------------------------------------------------------------------------
 *
 * The kernel shows all users without an ID in the caller's user namespace as the same overflow ID,
 * which may also be a mapped user's ID: nobody's, or the process's own. So that ID names one user
 * only where every user has an ID. Without /proc the overflow ID is assumed to be the kernel's
 * default, and some user to lack an ID. */

enum { USERS_OVERFLOW = 65534, TEXT_BYTES = 4096 };
static const uint64_t USERS_ALL = 0xffffffff; /* number of IDs; (uid_t)-1 is none */

/* As many bytes as the kernel gives at once; 0: none. */
static size_t text_read(const char *path, char text[TEXT_BYTES]) {
    long fd = hak_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long length = fd >= 0 ? hak_syscall(SYS_read, fd, text, TEXT_BYTES - 1) : 0;
    if (fd >= 0) {
        hak_syscall(SYS_close, fd);
    }
    length = length > 0 ? length : 0;
    text[length] = '\0';
    return (size_t)length;
}

/* Lines "inside outside count": the ranges of a map do not overlap. */
static bool users_have_ids(void) {
    char text[TEXT_BYTES];
    const char *at = text, *end = text + text_read("/proc/self/uid_map", text);
    uint64_t sum = 0;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        line = line != NULL ? line : end;
        uint64_t number[3];
        if (hak_parse_number(&at, line, &number[0]) && hak_parse_number(&at, line, &number[1]) &&
            hak_parse_number(&at, line, &number[2])) {
            sum += number[2];
        }
        at = line + 1;
    }
    return sum >= USERS_ALL;
}

static uid_t users_overflow(void) {
    char text[TEXT_BYTES];
    const char *at = text, *end = text + text_read("/proc/sys/kernel/overflowuid", text);
    const char *line = memchr(text, '\n', (size_t)(end - text));
    uint64_t id;
    return hak_parse_number(&at, line != NULL ? line : end, &id) ? (uid_t)id : USERS_OVERFLOW;
}

/* Where the ID is ambiguous, fchmod decides: the kernel refuses it to other users. */
static bool file_is_own(long fd, const struct stat *status) {
    bool is_told = status->st_uid != users_overflow() || users_have_ids();
    return status->st_uid == (uid_t)hak_syscall(SYS_geteuid, 0) &&
           (is_told || hak_syscall(SYS_fchmod, fd, status->st_mode & 07777) == 0);
}

/* --- files ------------------------------------------------------------------------------------ */

static uint64_t now_ns(void) {
    struct timespec now = {0};
    hak_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const uint64_t HELD_NS = 2000000; /* who replaces a file holds it for a few system calls */

/* The mapping of a kept profile (kept.h) has the lock, as long as its process lives. It counts only
 * where no other user can read the file, which is all that a lock needs. Where nobody has it, the
 * descriptor has one of this kind until it is closed; or a shared one, as NFS wants a descriptor
 * that writes for an exclusive one. */
static bool file_is_held(long fd, const struct stat *status, int kind) {
    bool counts = (status->st_mode & 077) == 0;
    long result = counts ? hak_syscall(SYS_flock, fd, kind | LOCK_NB) : 0;
    if (result == -EBADF) {
        kind = LOCK_SH;
        result = hak_syscall(SYS_flock, fd, kind | LOCK_NB);
    }
    uint64_t end = result == -EWOULDBLOCK ? now_ns() + HELD_NS : 0;
    while (result == -EWOULDBLOCK && now_ns() < end) {
        hak_syscall(SYS_sched_yield, 0);
        result = hak_syscall(SYS_flock, fd, kind | LOCK_NB);
    }
    return result == -EWOULDBLOCK;
}

static bool file_is(long fd, const obs_file_id_t *file) {
    obs_file_id_t opened = {0};
    return obs_file_find((int)fd, &opened) && opened.device == file->device &&
           opened.inode == file->inode;
}

bool obs_file_is_at(const char *path, const obs_file_id_t *file) {
    long fd = hak_syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    bool is_at = fd >= 0 && file_is(fd, file);
    if (fd >= 0) {
        hak_syscall(SYS_close, fd);
    }
    return is_at;
}

/* Empties an existing file only if it is ours and has no second name: another user may write into
 * the folder. Devices, such as /dev/null, have no content. */
static bool file_prepare(long fd) {
    struct stat status = {0};
    bool is_known = hak_syscall(SYS_fstat, fd, &status) == 0;
    bool is_ours = is_known && file_is_own(fd, &status);
    if (!is_known || !S_ISREG(status.st_mode)) {
        return S_ISCHR(status.st_mode) || (S_ISFIFO(status.st_mode) && is_ours);
    }
    if (!is_ours || status.st_nlink != 1 || file_is_held(fd, &status, LOCK_SH)) {
        return false;
    }
    hak_syscall(SYS_fchmod, fd, 0600); /* some file systems have no modes */
    return hak_syscall(SYS_ftruncate, fd, 0) == 0;
}

/* Takes the name of a file that obs_file_create would empty. The file is locked meanwhile: who has
 * just made it finds lock or name taken (obs_file_lock). The file that was there stays whole for
 * those who have it open. */
static bool path_free(const char *path) {
    enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK };
    struct stat status = {0};
    long there = hak_syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (there < 0) {
        return true;
    }
    bool is_ours = hak_syscall(SYS_fstat, there, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_nlink == 1 && file_is_own(there, &status);
    const obs_file_id_t file = {.device = status.st_dev, .inode = status.st_ino};
    long fd = is_ours ? hak_syscall(SYS_openat, AT_FDCWD, path, FLAGS) : -1;
    bool is_same = fd >= 0 && file_is(fd, &file);
    bool is_free = is_ours && (fd == -EACCES || (is_same && !file_is_held(fd, &status, LOCK_EX))) &&
                   obs_file_is_at(path, &file) && hak_syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0;
    hak_syscall(SYS_close, there);
    if (fd >= 0) {
        hak_syscall(SYS_close, fd);
    }
    return is_free;
}

int obs_file_replace(const char *path) {
    enum { FLAGS = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };
    long fd = path_free(path) ? hak_syscall(SYS_openat, AT_FDCWD, path, FLAGS, 0600) : -1;
    return fd < 0 ? -1 : (int)fd;
}

bool obs_file_lock(const char *path, int fd) {
    struct stat status = {0};
    bool is_ours = hak_syscall(SYS_fstat, fd, &status) == 0 && !file_is_held(fd, &status, LOCK_EX);
    const obs_file_id_t file = {.device = status.st_dev, .inode = status.st_ino};
    return is_ours && obs_file_is_at(path, &file);
}

/* A regular file is emptied only where no new one may take its place: it may be mapped memory of
 * another process (kept.h). Does not wait for a pipe's reader. A new file is ours, whatever owner
 * the file system shows. */
int obs_file_create(const char *path) {
    enum { FLAGS = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK };
    long fd = hak_syscall(SYS_openat, AT_FDCWD, path, FLAGS | O_CREAT | O_EXCL, 0600);
    int fresh = fd == -EEXIST ? obs_file_replace(path) : -1;
    if (fresh >= 0) {
        return fresh;
    }
    if (fd == -EEXIST) {
        fd = hak_syscall(SYS_openat, AT_FDCWD, path, FLAGS);
        if (fd >= 0 && !file_prepare(fd)) {
            hak_syscall(SYS_close, fd);
            fd = -1;
        }
    }
    return fd < 0 ? -1 : (int)fd;
}

int obs_file_keep(int fd) {
    long copy = hak_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KEPT_LEAST);
    return copy < 0 ? -1 : (int)copy;
}

bool obs_file_find(int fd, obs_file_id_t *id) {
    struct stat status = {0};
    bool is_open = hak_syscall(SYS_fstat, fd, &status) == 0;
    *id = (obs_file_id_t){.device = status.st_dev,
                          .inode = status.st_ino,
                          .is_stream = S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)};
    return is_open;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* false: time is up. */
static bool await(int fd, uint64_t *due_ns) {
    uint64_t now = now_ns();
    *due_ns = *due_ns != 0 ? *due_ns : now + WAIT_NS;
    if (now >= *due_ns) {
        return false;
    }
    struct pollfd poll = {.fd = fd, .events = POLLOUT};
    struct timespec left = {(time_t)((*due_ns - now) / 1000000000),
                            (long)((*due_ns - now) % 1000000000)};
    hak_syscall(SYS_ppoll, &poll, 1, &left);
    return true;
}

bool obs_file_write(int fd, const char *data, size_t length) {
    uint64_t due_ns = 0;
    while (length > 0) {
        long done = hak_syscall(SYS_write, fd, data, length);
        if (done > 0) {
            data += done;
            length -= (size_t)done;
        } else if (done != -EINTR && (done != -EAGAIN || !await(fd, &due_ns))) {
            return false;
        }
    }
    return true;
}

/* The signals would come to this thread: takes them back. */
bool obs_file_write_calmly(int fd, const char *data, size_t length) {
    uint64_t ours = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), before = 0, pending = 0;
    struct timespec none = {0};
    hak_syscall(SYS_rt_sigpending, &pending, sizeof pending);
    hak_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &before, sizeof ours);
    bool is_done = obs_file_write(fd, data, length);
    ours &= ~pending;
    while (ours != 0 && hak_syscall(SYS_rt_sigtimedwait, &ours, 0, &none, sizeof ours) > 0) {
    }
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
    return is_done;
}
