/* SPDX-License-Identifier: MIT
 *
 * Files that are opened once and read by any thread while they are ours.
 *
 *   KEPT-1  A descriptor of ours is opened, moved and closed only while the process has one thread,
 *           with signals blocked: nobody can close it or reuse its number in between. With other
 *           threads a kept number is only read, and the read counts only if the file is ours before
 *           and after: the program may have closed it and opened another file there, which is left
 *           alone.
 *
 * The rules of os.h hold. */
#ifndef HAK_OS_KEPT_H
#define HAK_OS_KEPT_H

#include "base/compiler.h"
#include "base/words.h"

typedef struct hak_os_file_id {
    uint64_t device, inode;
} hak_os_file_id_t;

typedef struct hak_os_kept {
    int number; /* -1: none; high: the program uses low ones */
    hak_os_file_id_t id;
} hak_os_kept_t;

/* Whether the kernel counts one thread: used where the C library does not tell. */
bool hak_os_has_one_task(void);
/* Blocks signals. false: there may be other threads; signals are unchanged. */
bool hak_os_alone_begin(uint64_t *signals);
/* These two while alone. Reads the head of a file, and keeps it open if the text is wanted, or
 * capacity is 0, and a high number is available; returns the bytes read. */
typedef bool hak_os_kept_wanted_t(const char *text, size_t length);
size_t hak_os_kept_open(hak_os_kept_t *kept, const char *path, hak_os_kept_wanted_t *is_wanted,
                        char *text, size_t capacity);
void hak_os_kept_close(hak_os_kept_t *kept);
/* Reads the head of the file anew; 0: the program closed it, the kernel removed its group or
 * refuses the call. */
size_t hak_os_kept_read(const hak_os_kept_t *kept, char *buffer, size_t capacity);

bool hak_os_fault_has_files(void); /* the test provides files: none is opened */
/* Keeps a file of the test open: a number below -1; -1: it is empty. */
int hak_os_fault_keep(const char *path);
/* Reads the head of its present content; 0: no longer open. */
size_t hak_os_fault_kept(int number, char *buffer, size_t capacity);

#endif
