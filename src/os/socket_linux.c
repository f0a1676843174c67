/* SPDX-License-Identifier: MIT
 *
 * Linux: sockets of the unix domain, output files, and a thread's own descriptor table. */
#include "base/fmt.h"
#include "os/optional.h"
#include "os/socket.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

enum {
    SOCKET_BACKLOG = 64,
    SOCKET_CLOSE_UNSHARE = 2,      /* CLOSE_RANGE_UNSHARE: older headers lack it, and the */
    SOCKET_CLOSE_RANGE = 436,      /* call, which has this number everywhere */
    SOCKET_LOCK_TRIES = 20,        /* any reader of the folder may hold its lock */
    SOCKET_LOCK_NAP_NS = 10000000, /* delays program start by at most a fifth of a second */
    SOCKET_DRAIN_BYTES = 4096,
    SOCKET_DRAINS = 64,
};

typedef struct socket_name {
    struct sockaddr_un address;
    long length;
} socket_name_t;

void hak_os_close_file(int fd) {
    hak_syscall(SYS_close, fd);
}

bool hak_os_own_descriptors(void) {
    return hak_syscall(SOCKET_CLOSE_RANGE, 0, ~0u, SOCKET_CLOSE_UNSHARE) == 0;
}

static bool socket_name_make(const char *path, socket_name_t *name) {
    size_t length = strlen(path);
    bool is_abstract = path[0] == '@';
    if (length >= sizeof name->address.sun_path) {
        return false;
    }
    memset(&name->address, 0, sizeof name->address);
    name->address.sun_family = AF_UNIX;
    memcpy(name->address.sun_path + is_abstract, path + is_abstract, length - is_abstract);
    name->length = (long)(offsetof(struct sockaddr_un, sun_path) + length + !is_abstract);
    return true;
}

static long socket_make(void) {
    return hak_syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static hak_os_file_id_t file_id(const struct stat *status) {
    return (hak_os_file_id_t){.device = status->st_dev,
                              .inode = status->st_ino,
                              .is_stream = S_ISFIFO(status->st_mode) || S_ISCHR(status->st_mode)};
}

bool hak_os_find_socket(const char *path, hak_os_file_id_t *id) {
    struct stat status = {0};
    *id = (hak_os_file_id_t){0};
    if (hak_syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISSOCK(status.st_mode)) {
        return false;
    }
    *id = file_id(&status);
    return true;
}

bool hak_os_remove_socket(const char *path, const hak_os_file_id_t *id) {
    hak_os_file_id_t there;
    return hak_os_find_socket(path, &there) && hak_os_is_same_file(&there, id) &&
           hak_syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0;
}

bool hak_os_is_deserted(const char *path) {
    socket_name_t name = {0};
    long fd = socket_name_make(path, &name) ? socket_make() : -1;
    long result = hak_syscall(SYS_connect, fd, &name.address, name.length);
    if (fd >= 0) {
        hak_os_close_file((int)fd);
    }
    return fd >= 0 && result == -ECONNREFUSED;
}

/* A descriptor's lock ends with the process. If the folder is unreadable or another process holds
 * the lock, the caller goes on unlocked. */
int hak_os_lock_folder(const char *path) {
    struct sockaddr_un address;
    const char *name = strrchr(path, '/');
    size_t length = name != NULL ? (size_t)(name - path) + 1 : 0; /* with the slash: "/" is one */
    if (length == 0 || length >= sizeof address.sun_path) {
        return -1;
    }
    memcpy(address.sun_path, path, length);
    address.sun_path[length] = '\0';
    long fd =
        hak_syscall(SYS_openat, AT_FDCWD, address.sun_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && i < SOCKET_LOCK_TRIES; i++) {
        if (hak_syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) != -EAGAIN) {
            break;
        }
        hak_os_sleep(SOCKET_LOCK_NAP_NS);
    }
    return fd < 0 ? -1 : (int)fd;
}

/* --- users ------------------------------------------------------------------------------------
 *
 * The kernel shows all users without an ID in the caller's user namespace as the same overflow ID,
 * which may also be a mapped user's ID: nobody's, or the process's own. So that ID names one user
 * only where every user has an ID. Without /proc the overflow ID is assumed to be the kernel's
 * default, and some user to lack an ID. */

enum { USERS_OVERFLOW = 65534 };
static const uint64_t USERS_ALL = 0xffffffff; /* number of IDs; (uid_t)-1 is none */

/* Line "inside outside count": the ranges of a map do not overlap. */
static void users_add_range(char *line, void *sum) {
    const char *at = line, *end = strchr(line, '\0');
    uint64_t number[3];
    bool is_range = hak_parse_number(&at, end, &number[0]) &&
                    hak_parse_number(&at, end, &number[1]) &&
                    hak_parse_number(&at, end, &number[2]);
    *(uint64_t *)sum += is_range ? number[2] : 0;
}

static bool users_have_ids(void) {
    char text[256];
    uint64_t sum = 0;
    return hak_os_read_lines("/proc/self/uid_map", text, sizeof text, users_add_range, &sum) &&
           sum >= USERS_ALL;
}

static uid_t users_overflow(void) {
    char text[32];
    const char *at = text;
    uint64_t id;
    size_t length = hak_os_read_file("/proc/sys/kernel/overflowuid", text, sizeof text);
    return hak_parse_number(&at, text + length, &id) ? (uid_t)id : USERS_OVERFLOW;
}

static uid_t user_own(void) {
    return (uid_t)hak_syscall(SYS_geteuid, 0);
}

/* Whether the ID names one user. */
static bool user_is_told(uid_t user) {
    return user != users_overflow() || users_have_ids();
}

/* --- the socket ------------------------------------------------------------------------------- */

/* [thread] the listening one. Read once: the program may change its root and lose /proc, but a user
 * namespace never loses an ID, and a process with two threads never changes its namespace. */
static bool socket_users_have_ids;

/* The file takes its mode from the socket before bind: nobody else can connect in between. */
hak_os_listen_t hak_os_listen(const char *path, int *listener) {
    socket_name_t name;
    if (!socket_name_make(path, &name)) {
        return HAK_OS_LISTEN_FAILED;
    }
    long fd = socket_make();
    hak_syscall(SYS_fchmod, fd, 0600);
    long result = hak_syscall(SYS_bind, fd, &name.address, name.length);
    if (result == 0) {
        result = hak_syscall(SYS_listen, fd, SOCKET_BACKLOG);
    }
    if (result != 0 && fd >= 0) {
        hak_os_close_file((int)fd);
    }
    *listener = (int)fd;
    socket_users_have_ids = users_have_ids();
    return result == 0             ? HAK_OS_LISTEN_DONE
           : result == -EADDRINUSE ? HAK_OS_LISTEN_TAKEN
                                   : HAK_OS_LISTEN_FAILED;
}

bool hak_os_await(int fd, bool is_to_send, uint64_t ns) {
    struct pollfd poll = {.fd = fd, .events = is_to_send ? POLLOUT : POLLIN};
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return hak_syscall(SYS_ppoll, &poll, 1, &time) > 0;
}

static bool socket_is_allowed(long fd) {
    struct ucred peer = {.uid = (uid_t)-1};
    uint32_t length = sizeof peer;
    if (hak_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
        return false;
    }
    return (peer.uid == 0 || peer.uid == user_own()) &&
           (socket_users_have_ids || user_is_told(peer.uid));
}

bool hak_os_accept(int listener, int *peer) {
    long fd = hak_syscall(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !socket_is_allowed(fd)) {
        hak_os_close_file((int)fd);
        *peer = -1;
        return true;
    }
    *peer = (int)fd;
    return fd >= 0;
}

static long socket_result(long done) {
    if (done == -EAGAIN || done == -EINTR) {
        return HAK_OS_NOT_NOW;
    }
    return done < 0 ? 0 : done;
}

long hak_os_receive(int fd, char *buffer, size_t capacity) {
    return socket_result(hak_syscall(SYS_recvfrom, fd, buffer, capacity, MSG_DONTWAIT));
}

long hak_os_send(int fd, const char *data, size_t length) {
    return socket_result(hak_syscall(SYS_sendto, fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* Unread input would make the kernel send the peer a reset in place of the end. */
void hak_os_hang_up(int fd) {
    char rest[SOCKET_DRAIN_BYTES];
    hak_syscall(SYS_shutdown, fd, SHUT_WR);
    for (unsigned i = 0; i < SOCKET_DRAINS && hak_os_receive(fd, rest, sizeof rest) > 0; i++) {
    }
    hak_os_close_file(fd);
}

/* --- files --------------------------------------------------------------------------------------
 */

int hak_os_copy_descriptor(int fd, int least) {
    long copy = hak_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least);
    return copy < 0 ? -1 : (int)copy;
}

bool hak_os_find_file(int fd, hak_os_file_id_t *id) {
    struct stat status = {0};
    bool is_open = hak_syscall(SYS_fstat, fd, &status) == 0;
    *id = file_id(&status);
    return is_open;
}

/* Until complete, or broken. */
void hak_os_write(int fd, const char *data, size_t length) {
    while (length > 0) {
        long done = hak_syscall(SYS_write, fd, data, length);
        if (done <= 0 && done != -EINTR) {
            return;
        }
        done = done > 0 ? done : 0;
        data += done;
        length -= (size_t)done;
    }
}

/* --- rights of a thread ----------------------------------------------------------------------- */

/* capset of the calling thread alone. */
void hak_os_drop_rights(void) {
    struct __user_cap_header_struct caller = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = {0};
    const uint32_t kept = 1u << CAP_SETGID | 1u << CAP_SETUID | 1u << CAP_IPC_LOCK;
    if (hak_syscall(SYS_capget, &caller, set) == 0) {
        set[0].effective &= kept;
        set[0].permitted &= kept;
        set[0].inheritable = 0;
        memset(&set[1], 0, sizeof set[1]);
        hak_syscall(SYS_capset, &caller, set);
    }
    hak_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
}
