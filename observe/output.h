/* SPDX-License-Identifier: MIT
 *
 * Where reports of the library go: a text in memory, then a descriptor or a file. */
#ifndef OBS_OUTPUT_H
#define OBS_OUTPUT_H

#include "base/fmt.h"

#include <stdbool.h>

/* A text of any length. */
typedef struct obs_page {
    char *data;
    size_t length, room;
    bool is_cut; /* memory ran out */
} obs_page_t;
/* The `put` of a sink whose context is a page. */
void obs_page_put(void *page, const char *data, size_t length);

/* Identifies an open file. */
typedef struct obs_file_id {
    uint64_t device, inode;
    bool is_stream; /* a pipe, or a device such as a terminal */
} obs_file_id_t;
/* false: none is open. */
bool obs_file_find(int fd, obs_file_id_t *id);
/* A copy at a number that programs do not count on, closed by exec. -1: none. */
int obs_file_keep(int fd);
/* Opens a file for writing, mode 0600: new, or emptied if it is the effective user's and has no
 * other name; or a device, or a pipe of that user. Follows no link, waits for no pipe. -1: none. */
int obs_file_create(const char *path);
/* Opens a new file for reading and writing, mode 0600, in place of one that obs_file_create would
 * empty. -1: none. */
int obs_file_replace(const char *path);
/* Locks such a file, so that no other process of this library replaces or empties it while it is
 * open or mapped. false: one did, or is about to. Where the file system has no locks only the name
 * is looked at. */
bool obs_file_lock(const char *path, int fd);
/* Whether the path leads to this file. */
bool obs_file_is_at(const char *path, const obs_file_id_t *file);
/* Writes all of it; a reader who is slow has 2 seconds, if the descriptor does not block. false:
 * cut short. */
bool obs_file_write(int fd, const char *data, size_t length);
/* The same, without a signal for a pipe that nobody reads, or a file that is too large. */
bool obs_file_write_calmly(int fd, const char *data, size_t length);

#endif
