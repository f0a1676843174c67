/* SPDX-License-Identifier: MIT
 * A process and all its living descendants, found through /proc: their memory over time, summed up
 * and kept as a curve of bounded length; whether one of them maps a library; and the end of those
 * that outlive the process. Part of measure.c. Allocates nothing, so that sampling costs the same
 * all the time. */
#ifndef HAK_RIG_MEMORY_H
#define HAK_RIG_MEMORY_H

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CURVE_POINTS = 320, /* two neighbours become one when it is full: 160 to 320 in the end */
    FAMILY_MAX = 4096,
    STRANGERS_MAX = 256,
    LOOKS_MIN = 3, /* at so many samples without the library it was not loaded */
};

typedef struct point {
    uint64_t ns, kib;
} point_t;

static struct {
    pid_t family[FAMILY_MAX]; /* PROGRAM and its descendants */
    unsigned family_count;
    long newest_pid;                /* of the machine, when the family was last looked up */
    pid_t strangers[STRANGERS_MAX]; /* children that measure had before it started PROGRAM */
    unsigned stranger_count, orphans;
    char library[PATH_MAX]; /* a real path or a plain name; "": none is looked for */
    unsigned looks;         /* samples at which it was looked for, without success */
    bool loaded;
    point_t curve[CURVE_POINTS];
    unsigned points;
    uint64_t per_point, in_point; /* samples that make one point; of these, in the last one */
    point_t last;
    uint64_t peak;
    double kib_ns; /* KiB × ns: divided by the time it is the average */
} memory = {.per_point = 1, .in_point = 1};

/* A file of /proc as text; false if it cannot be read, as when the process is gone. */
static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, size - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* --- the family ----------------------------------------------------------------------------- */

static long newest_pid(void) {
    char text[128];
    const char *last = read_text("/proc/loadavg", text, sizeof text) ? strrchr(text, ' ') : NULL;
    return last != NULL ? strtol(last, NULL, 10) : -1;
}

static pid_t parent_of(pid_t pid) {
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    /* "PID (NAME) STATE PARENT …"; the name may hold anything, so count from its end. */
    const char *name_end = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return name_end != NULL && strlen(name_end) > 4 ? (pid_t)strtol(name_end + 4, NULL, 10) : 0;
}

static bool in_family(pid_t pid) {
    for (unsigned i = 0; i < memory.family_count; i++) {
        if (memory.family[i] == pid) {
            return true;
        }
    }
    return false;
}

static bool is_stranger(pid_t pid) {
    for (unsigned i = 0; i < memory.stranger_count; i++) {
        if (memory.strangers[i] == pid) {
            return true;
        }
    }
    return false;
}

/* Orphans are ours as well: measure is the reaper of everything below it. */
static void adopt(pid_t pid) {
    if (memory.family_count == FAMILY_MAX || in_family(pid) || is_stranger(pid)) {
        return;
    }
    pid_t parent = parent_of(pid);
    if (parent == getpid() || in_family(parent)) {
        memory.family[memory.family_count++] = pid;
    }
}

/* Visits the processes of the machine whose numbers are above OLDEST; false if it cannot. */
static bool each_process(long oldest, void (*visit)(pid_t)) {
    struct entry {
        uint64_t inode, offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    static char entries[16384];
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return false;
    }
    long size;
    while ((size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < size;) {
            const char *entry = entries + at;
            unsigned short length;
            memcpy(&length, entry + offsetof(struct entry, length), sizeof length);
            /* 0 for all that are no processes */
            long pid = strtol(entry + offsetof(struct entry, name), NULL, 10);
            if (pid > oldest) {
                visit((pid_t)pid);
            }
            at += length;
        }
    }
    close(folder);
    return true;
}

/* Looks for new descendants: among the processes started since the last look, which cost nothing
 * if there are none. Parents come before children in /proc, unless the numbers have wrapped: then
 * it looks at all. */
static void find_family(void) {
    long newest = newest_pid(), oldest = newest >= memory.newest_pid ? memory.newest_pid : 0;
    if (newest != memory.newest_pid && each_process(oldest, adopt)) {
        memory.newest_pid = newest;
    }
}

static uint64_t family_kib(void) {
    static uint64_t page_kib;
    if (page_kib == 0) {
        page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    }
    uint64_t sum = 0;
    for (unsigned i = 0; i < memory.family_count;) {
        char path[40], text[128];
        snprintf(path, sizeof path, "/proc/%d/statm", memory.family[i]);
        if (read_text(path, text, sizeof text)) {
            char *resident;
            strtoull(text, &resident, 10);
            sum += strtoull(resident, NULL, 10) * page_kib;
            i++;
        } else {
            memory.family[i] = memory.family[--memory.family_count];
        }
    }
    return sum;
}

/* --- the curve ------------------------------------------------------------------------------ */

static void halve_curve(void) {
    for (unsigned i = 0; i < CURVE_POINTS / 2; i++) {
        point_t first = memory.curve[2 * i], second = memory.curve[2 * i + 1];
        memory.curve[i] = first.kib >= second.kib ? first : second;
    }
    memory.points = CURVE_POINTS / 2;
    memory.per_point *= 2;
}

static void add_sample(point_t sample) {
    memory.kib_ns += (double)memory.last.kib * (double)(sample.ns - memory.last.ns);
    memory.last = sample;
    memory.peak = sample.kib > memory.peak ? sample.kib : memory.peak;
    if (memory.in_point < memory.per_point) {
        point_t *point = &memory.curve[memory.points - 1];
        *point = sample.kib > point->kib ? sample : *point;
        memory.in_point++;
        return;
    }
    if (memory.points == CURVE_POINTS) {
        halve_curve();
    }
    memory.curve[memory.points++] = sample;
    memory.in_point = 1;
}

/* --- the library ---------------------------------------------------------------------------- */

/* Whether a line of a memory map ("7f00-7f10 r-xp OFFSET DEVICE INODE   PATH") names the library.
 * A plain name also stands for what it leads to: lib.so.2 for lib.so.2.1. */
static bool names_library(char *line) {
    const char *path = strchr(line, '/');
    char *deleted = strstr(line, " (deleted)"); /* replaced since: still what was asked for */
    if (path == NULL) {
        return false;
    }
    if (deleted != NULL) {
        *deleted = '\0';
    }
    if (memory.library[0] == '/') {
        return strcmp(path, memory.library) == 0;
    }
    const char *name = strrchr(path, '/') + 1;
    size_t length = strlen(memory.library);
    return strncmp(name, memory.library, length) == 0 &&
           (name[length] == '\0' || name[length] == '.');
}

/* Looks through the memory map of PID, in pieces; false if there is none, as of a zombie. */
static bool read_map(pid_t pid) {
    static char text[16384]; /* a line has at most about 4200 bytes */
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t kept = 0; /* of a line whose end is in the next piece */
    ssize_t length;
    bool any = false;
    while (!memory.loaded && (length = read(file, text + kept, sizeof text - kept)) > 0) {
        char *line = text, *end = text + kept + length, *stop;
        while ((stop = memchr(line, '\n', (size_t)(end - line))) != NULL) {
            *stop = '\0';
            memory.loaded = memory.loaded || names_library(line);
            line = stop + 1;
        }
        kept = (size_t)(end - line);
        memmove(text, line, kept);
        any = true;
    }
    close(file);
    return any;
}

static void look_for_library(void) {
    bool looked = false;
    for (unsigned i = 0; i < memory.family_count && !memory.loaded; i++) {
        looked = read_map(memory.family[i]) || looked;
    }
    memory.looks += looked;
}

/* PRELOAD as given to LD_PRELOAD; of a list the first. */
static void choose_library(const char *preload) {
    char first[PATH_MAX];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(preload, ": "), preload);
    if (strchr(first, '/') == NULL || realpath(first, memory.library) == NULL) {
        memcpy(memory.library, first, sizeof first);
    }
}

/* As JSON: null if nobody looked, or PROGRAM ended before it had to be loaded. */
static const char *memory_loaded(void) {
    if (memory.loaded) {
        return "true";
    }
    return memory.looks >= LOOKS_MIN ? "false" : "null";
}

/* --- what PROGRAM leaves behind ------------------------------------------------------------- */

/* Only measure itself can wait for its children, so their numbers stay theirs. */
static bool is_child(pid_t pid) {
    siginfo_t info;
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void note_stranger(pid_t pid) {
    if (is_child(pid) && memory.stranger_count < STRANGERS_MAX) {
        memory.strangers[memory.stranger_count++] = pid;
    }
}

static void kill_orphan(pid_t pid) {
    if (is_child(pid) && !is_stranger(pid)) {
        kill(pid, SIGKILL);
        memory.orphans++;
    }
}

/* Kills all orphans; false if there was none. Those of a killed one come to measure as well: to be
 * called again. */
static bool kill_orphans(void) {
    siginfo_t info;
    memory.orphans = 0;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           each_process(0, kill_orphan) && memory.orphans != 0;
}

/* --- for measure.c -------------------------------------------------------------------------- */

/* Before PROGRAM starts. PRELOAD: NULL if no library is to be looked for. */
static void memory_begin(const char *preload) {
    siginfo_t info;
    memory.newest_pid = newest_pid();
    if (preload != NULL) {
        choose_library(preload);
    }
    /* A shell may have started others and then become measure. */
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        each_process(0, note_stranger);
    }
}

/* PROGRAM itself: the first of the family. */
static void memory_follow(pid_t pid) {
    memory.family[memory.family_count++] = pid;
}

static void memory_sample(uint64_t ns_since_start) {
    find_family();
    uint64_t kib = family_kib();
    if (kib != 0) { /* else all have ended and only wait to be waited for */
        add_sample((point_t){ns_since_start, kib});
        if (memory.library[0] != '\0' && !memory.loaded) {
            look_for_library();
        }
    }
}

/* The fields of the result, each after a comma. */
static void memory_write(FILE *file, uint64_t duration_ns) {
    memory.kib_ns += (double)memory.last.kib * (double)(duration_ns - memory.last.ns);
    double average = duration_ns != 0 ? memory.kib_ns / (double)duration_ns : 0;
    fprintf(file, ",\"peak_kib\":%llu,\"average_kib\":%.1f,\"curve\":[",
            (unsigned long long)memory.peak, average);
    for (unsigned i = 0; i < memory.points; i++) {
        fprintf(file, "%s[%.3f,%llu]", i != 0 ? "," : "", (double)memory.curve[i].ns / 1e6,
                (unsigned long long)memory.curve[i].kib);
    }
    fputc(']', file);
}

#endif
