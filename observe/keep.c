/* SPDX-License-Identifier: MIT
 *
 * Keeps the profile of the process that this is in in a file. Its room is taken at once: a write to
 * memory of a file without room ends the process. */
#include "kept.h"
#include "library.h"
#include "profile.h"

#include "base/atomics.h"
#include "base/version.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KEEP_PATH = 1536, KEEP_PAUSE = 50 /* times what it took */, KEEP_TRIES = 4 };

_Static_assert(sizeof(obs_kept_t) <= OBS_KEPT_HEAD, "the head has room");

/* All [lock: obs_enter] */
static obs_kept_t *kept;  /* NULL: none. Not mapped in a child */
static uint32_t kept_pid; /* whose it is */
static char kept_path[KEEP_PATH];
static obs_file_id_t kept_file;
static uint64_t seen_sites, due_ns;
static uint32_t over_pid; /* the process that wrote its report, and keeps nothing any more */

static uint64_t clock_ns(int clock) {
    struct timespec now = {0};
    hak_syscall(SYS_clock_gettime, clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void line_put(hak_text_t *text, const obs_copy_t *copy, const obs_module_t *module) {
    static const char digits[] = "0123456789abcdef";
    hak_text_format(text, "%x %x %x ", (uint64_t)module->start, (uint64_t)module->end,
                    (uint64_t)module->offset);
    for (uint32_t i = 0; i < module->build_id_bytes; i++) {
        hak_text_format(text, "%c%c", digits[module->build_id[i] >> 4],
                        digits[module->build_id[i] & 15]);
    }
    hak_text_format(text, "%s %s\n", module->build_id_bytes == 0 ? "-" : "",
                    copy->text + module->path);
}

/* Into the list that is not whole, which then is. What does not fit is left out. */
static void modules_list(void) {
    static obs_reader_t reader;
    obs_copy_t copy = {0};
    uint32_t at = 1 - kept->modules_at;
    hak_text_t text = {.data = (char *)kept + OBS_KEPT_HEAD + at * (size_t)OBS_KEPT_MODULES,
                       .capacity = OBS_KEPT_MODULES};
    size_t whole = 0;
    if (obs_open_self(&reader, false)) {
        obs_list_modules(&reader, &copy);
    }
    for (size_t i = 0; i < copy.module_count && whole == text.length; i++) {
        line_put(&text, &copy, &copy.module[i]);
        whole = text.length < text.capacity ? text.length : whole;
    }
    kept->modules_bytes[at] = (uint32_t)whole;
    hak_store_release(&kept->modules_at, at); /* pairs KEPT: a reader of what is left */
    obs_drop(copy.module);
    obs_drop(copy.text);
    obs_close(&reader);
}

/* Signals interrupt it, those of a profiler's timer again and again. */
static long room_wait(int fd, size_t bytes) {
    long result = -EINTR;
    for (unsigned i = 0; i < 100 && result == -EINTR; i++) {
        result = hak_syscall(SYS_fallocate, fd, 0, 0, bytes);
    }
    return result;
}

static bool room_take(int fd, size_t bytes) {
    struct rlimit limit = {0};
    return hak_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 &&
           limit.rlim_cur >= bytes && room_wait(fd, bytes) == 0;
}

static void head_fill(const char *program) {
    *kept = (obs_kept_t){.version = OBS_KEPT_VERSION,
                         .pid = (uint32_t)getpid(),
                         .site_bytes = sizeof(hak_profile_site_t),
                         .sample_bytes = sizeof(hak_profile_sample_t),
                         .frames = HAK_PROFILE_FRAMES,
                         .lifetimes = HAK_PROFILE_LIFETIMES,
                         .opened_ns = clock_ns(CLOCK_MONOTONIC),
                         .opened_wall_ns = clock_ns(CLOCK_REALTIME),
                         .library = HAK_VERSION_TEXT};
    memcpy(kept->program, program, strnlen(program, OBS_KEPT_PROGRAM - 1));
}

/* A new file, which is locked: others leave it alone from now on. Before it was, one of them may
 * have taken it for left behind, and replaced or emptied it. -1: none. */
static int file_open(const char *path) {
    for (unsigned i = 0; i < KEEP_TRIES; i++) {
        int fd = obs_file_replace(path);
        if (fd < 0 || obs_file_lock(path, fd)) {
            return fd;
        }
        hak_syscall(SYS_close, fd);
    }
    return -1;
}

/* NULL: the file has no room. Its lock is the mapping's alone once the file is closed, so a child
 * does not hold it. */
static void *file_map(int fd, size_t bytes) {
    if (!room_take(fd, bytes) || !obs_file_find(fd, &kept_file)) {
        return NULL;
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    /* else a child, which may have fewer rights, could write to what this process trusts */
    if (madvise(map, bytes, MADV_DONTFORK) != 0) {
        munmap(map, bytes);
        return NULL;
    }
    return map;
}

static void file_keep(void *map, const char *program, size_t (*move)(char *to, void *head)) {
    kept = map;
    kept_pid = (uint32_t)getpid();
    head_fill(program);
    modules_list();
    (void)move((char *)map + OBS_KEPT_STORE, &kept->store);
    memcpy(kept->magic, OBS_KEPT_MAGIC, sizeof kept->magic);
}

obs_keep_t obs_keep(const char *path, const char *program, size_t (*move)(char *to, void *head)) {
    size_t length = strlen(path) + 1;
    bool has_room = true;
    if (length > sizeof kept_path || move(NULL, NULL) == 0) {
        return OBS_KEEP_DONE;
    }
    if (!obs_enter(false)) {
        return OBS_KEEP_AGAIN;
    }
    kept = NULL; /* in the child of a fork it is the parent's */
    int fd = over_pid != (uint32_t)getpid() ? file_open(path) : -1;
    if (fd >= 0) {
        void *map = file_map(fd, OBS_KEPT_STORE + move(NULL, NULL));
        memcpy(kept_path, path, length);
        has_room = map != NULL;
        if (!has_room) {
            hak_syscall(SYS_unlinkat, AT_FDCWD, path, 0); /* still locked */
        }
        hak_syscall(SYS_close, fd);
        if (has_room) {
            file_keep(map, program, move);
        }
    }
    obs_leave();
    return has_room ? OBS_KEEP_DONE : OBS_KEEP_NO_ROOM;
}

void obs_keep_modules(uint64_t sites) {
    uint64_t now = sites != seen_sites ? clock_ns(CLOCK_MONOTONIC) : 0;
    if (now < due_ns || sites == seen_sites || !obs_enter(false)) {
        return;
    }
    seen_sites = sites;
    if (kept != NULL && kept_pid == (uint32_t)getpid()) {
        modules_list();
    }
    uint64_t end = clock_ns(CLOCK_MONOTONIC);
    due_ns = end + KEEP_PAUSE * (end - now);
    obs_leave();
}

/* The memory stays: threads may sample on. */
void obs_keep_end(void) {
    if (!obs_enter(true)) {
        return;
    }
    over_pid = (uint32_t)getpid();
    if (kept != NULL && kept_pid == over_pid && obs_file_is_at(kept_path, &kept_file)) {
        hak_syscall(SYS_unlinkat, AT_FDCWD, kept_path, 0);
    }
    obs_leave();
}
