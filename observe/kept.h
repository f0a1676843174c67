/* SPDX-License-Identifier: MIT
 *
 * A heap profile in a file while its process lives (options report:profile and report:leaks with a
 * report_file): what a process leaves that is killed.
 *
 *   obs_kept_t | the modules, twice | the store, as src/profile/store.h has it */
#ifndef OBS_KEPT_H
#define OBS_KEPT_H

#include "copy.h"

#define OBS_KEPT_MAGIC "hakmem profile\n"
enum {
    OBS_KEPT_VERSION = 1,
    OBS_KEPT_PROGRAM = 64,
    OBS_KEPT_HEAD = 64 << 10,
    OBS_KEPT_MODULES = 256 << 10, /* lines: start end offset build-id path; - for no build ID */
    OBS_KEPT_STORE = OBS_KEPT_HEAD + 2 * OBS_KEPT_MODULES, /* a multiple of all OS pages */
};

typedef struct obs_kept {
    char magic[16]; /* written last */
    uint32_t version, pid;
    uint32_t site_bytes, sample_bytes, frames, lifetimes; /* of the structures in the store */
    uint64_t opened_ns, opened_wall_ns;                   /* the same moment by both clocks */
    char library[20], program[OBS_KEPT_PROGRAM];
    uint32_t modules_at; /* [atomic] which list of modules is whole */
    uint32_t modules_bytes[2];
    hak_profile_store_t store;
} obs_kept_t;

typedef enum { OBS_KEEP_DONE, OBS_KEEP_NO_ROOM, OBS_KEEP_AGAIN } obs_keep_t;
/* Of the library. Keeps the profile of this process in a new file, in place of a regular one of the
 * user; nothing where there is none, or no room. AGAIN: another thread makes a report. */
obs_keep_t obs_keep(const char *path, const char *program, size_t (*move)(char *to, void *head));
/* Lists the modules anew if call sites were added, in a fiftieth of the time at most. */
void obs_keep_modules(uint64_t sites);
/* The report comes in its place. */
void obs_keep_end(void);

/* Of the program. Whether a file has a profile that was kept; then it is read. An error is a line
 * without its end, NULL: none. */
bool obs_kept_is(const char *path);
const char *obs_kept_read(const char *path, obs_copy_t *copy);

#endif
