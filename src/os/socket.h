/* SPDX-License-Identifier: MIT
 *
 * Services for the control channel and the report at exit: sockets, and files to write to. The
 * rules of os.h hold. */
#ifndef HAK_OS_SOCKET_H
#define HAK_OS_SOCKET_H

#include "base/compiler.h"
#include "base/words.h"

/* Gives the calling thread an empty descriptor table of its own: its descriptors take no numbers of
 * the program, the program cannot close them, and no child of a fork inherits them. false: this
 * takes Linux 5.9, and a sandbox that allows close_range. */
bool hak_os_own_descriptors(void);

typedef struct hak_os_file_id {
    uint64_t device, inode;
} hak_os_file_id_t;

HAK_INLINE bool hak_os_is_same_file(const hak_os_file_id_t *a, const hak_os_file_id_t *b) {
    return a->device == b->device && a->inode == b->inode;
}

/* A socket of the unix domain that listens, for streams: a path, which gets the mode 0600, or @ and
 * an abstract name. */
typedef enum hak_os_listen {
    HAK_OS_LISTEN_DONE,
    HAK_OS_LISTEN_TOO_LONG,
    HAK_OS_LISTEN_TAKEN, /* something of that name is there */
    HAK_OS_LISTEN_FAILED,
} hak_os_listen_t;
hak_os_listen_t hak_os_listen(const char *path, int *listener);
/* Takes an advisory lock of the path's folder; returns the descriptor to close, -1: none. Waits for
 * at most a fifth of a second. */
int hak_os_lock_folder(const char *path);
/* A socket has that path; links are not followed. */
bool hak_os_find_socket(const char *path, hak_os_file_id_t *id);
/* Nobody listens to the socket: a connection is refused. */
bool hak_os_is_deserted(const char *path);
/* If the path is still that socket's. */
bool hak_os_remove_socket(const char *path, const hak_os_file_id_t *id);
/* Waits until the descriptor can be read from, or sent to, or is broken. false: it is not, in this
 * time; a signal may end the wait. */
bool hak_os_await(int fd, bool is_to_send, uint64_t ns);
/* The next peer; *peer is -1 if there is none, or if it is neither of the process's effective user
 * nor root's, or if the kernel does not tell: the overflow ID of a user namespace that has no ID
 * for some user. false: none can be had. */
bool hak_os_accept(int listener, int *peer);
/* Bytes, 0 at the end or when it is broken, HAK_OS_NOT_NOW if it would have to wait. */
enum { HAK_OS_NOT_NOW = -1 };
long hak_os_receive(int fd, char *buffer, size_t capacity);
long hak_os_send(int fd, const char *data, size_t length);
/* Closes the connection; the peer can still read all that was sent, and then the end. */
void hak_os_hang_up(int fd);
/* A copy of a descriptor, of that number or above, which no exec keeps. -1: none. */
int hak_os_copy_descriptor(int fd, int least);
/* What is open there. false: nothing. */
bool hak_os_find_file(int fd, hak_os_file_id_t *id);
/* A file to write to, 0600: new, or emptied if it is the effective user's and has no other name; or
 * a device, or a pipe of that user. No link is followed, no pipe waited for. -1: none. */
int hak_os_create_file(const char *path);
void hak_os_close_file(int fd);
/* hak_os_write without SIGPIPE and SIGXFSZ; waits for the reader until `due_ns`. false: it is not
 * all written. */
bool hak_os_write_calmly(int fd, const char *data, size_t length, uint64_t due_ns);
/* The calling thread gives up the capabilities it has and may get, but those that setuid and its
 * kin need: the C library calls these in all threads, and ends the process where only some may; and
 * that to map memory where all of it is locked. */
void hak_os_drop_rights(void);

#endif
