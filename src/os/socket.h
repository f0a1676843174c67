/* SPDX-License-Identifier: MIT
 *
 * Sockets and output files for control channel and report at exit. The rules of os.h hold. */
#ifndef HAK_OS_SOCKET_H
#define HAK_OS_SOCKET_H

#include "base/compiler.h"
#include "base/words.h"

/* Gives the calling thread an empty descriptor table of its own: it uses up no numbers of the
 * program, the program cannot close its descriptors, and no forked child inherits them. false:
 * needs Linux 5.9, and a sandbox that allows close_range. */
bool hak_os_own_descriptors(void);

typedef struct hak_os_file_id {
    uint64_t device, inode;
    bool is_stream; /* a pipe, or a device such as a terminal */
} hak_os_file_id_t;

HAK_INLINE bool hak_os_is_same_file(const hak_os_file_id_t *a, const hak_os_file_id_t *b) {
    return a->device == b->device && a->inode == b->inode;
}

/* Opens a listening stream socket: a path, which gets mode 0600, or @ and an abstract name. */
typedef enum hak_os_listen {
    HAK_OS_LISTEN_DONE,
    HAK_OS_LISTEN_TAKEN, /* the name exists */
    HAK_OS_LISTEN_FAILED,
} hak_os_listen_t;
hak_os_listen_t hak_os_listen(const char *path, int *listener);
/* Locks the path's folder (advisory), within a fifth of a second; a descriptor to close; -1: no
 * lock. */
int hak_os_lock_folder(const char *path);
/* Whether the path is a socket; follows no link. */
bool hak_os_find_socket(const char *path, hak_os_file_id_t *id);
/* Whether connections to the socket are refused: it has no listener. */
bool hak_os_is_deserted(const char *path);
/* Removes the path if it is still that socket. */
bool hak_os_remove_socket(const char *path, const hak_os_file_id_t *id);
/* Waits until the descriptor is readable, or writable, or broken. false: out of time, or a
 * signal. */
bool hak_os_await(int fd, bool is_to_send, uint64_t ns);
/* The next peer; *peer is -1 if there is none, if its user is neither root nor the process's
 * effective user, or if the kernel does not tell: it shows users without an ID in a user namespace
 * as the overflow ID. false: no connection can be accepted. */
bool hak_os_accept(int listener, int *peer);
/* Bytes; 0: the end, or broken; HAK_OS_NOT_NOW: it would block. */
enum { HAK_OS_NOT_NOW = -1 };
long hak_os_receive(int fd, char *buffer, size_t capacity);
long hak_os_send(int fd, const char *data, size_t length);
/* Closes the connection; the peer can still read everything sent, and then the end. */
void hak_os_hang_up(int fd);
/* A copy of a descriptor, at number `least` or above, closed by exec. -1: none. */
int hak_os_copy_descriptor(int fd, int least);
/* Identifies the open file. false: none is open. */
bool hak_os_find_file(int fd, hak_os_file_id_t *id);
void hak_os_close_file(int fd);
/* Drops the calling thread's capabilities, present and future, except those that setuid and its kin
 * need (the C library calls these in all threads, and ends the process if only some succeed), and
 * the one to map memory where all of it is locked. */
void hak_os_drop_rights(void);

#endif
