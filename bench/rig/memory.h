/* SPDX-License-Identifier: MIT
 * The memory of a process and all its living descendants, over time: found through /proc, summed
 * up, kept as a curve of bounded length. Part of measure.c. Allocates nothing, so that sampling
 * costs the same all the time. */
#ifndef HAK_RIG_MEMORY_H
#define HAK_RIG_MEMORY_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    CURVE_POINTS = 320, /* two neighbours become one when it is full: 160 to 320 in the end */
    FAMILY_MAX = 4096,
};

typedef struct point {
    uint64_t ns, kib;
} point_t;

static struct {
    pid_t family[FAMILY_MAX]; /* PROGRAM and its descendants */
    unsigned family_count;
    long newest_pid; /* of the machine, when the family was last looked up */
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

/* Orphans are ours as well: measure is the reaper of everything below it. */
static void adopt(pid_t pid) {
    if (memory.family_count == FAMILY_MAX || in_family(pid)) {
        return;
    }
    pid_t parent = parent_of(pid);
    if (parent == getpid() || in_family(parent)) {
        memory.family[memory.family_count++] = pid;
    }
}

/* Looks for new descendants: among the processes started since the last look, which cost nothing
 * if there are none. Parents come before children in /proc, unless the numbers have wrapped: then
 * it looks at all. */
static void find_family(void) {
    struct entry {
        uint64_t inode, offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    static _Alignas(8) char entries[16384];
    long newest = newest_pid(), oldest = newest >= memory.newest_pid ? memory.newest_pid : 0;
    if (newest == memory.newest_pid) {
        return;
    }
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return;
    }
    memory.newest_pid = newest;
    long size;
    while ((size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < size;) {
            const struct entry *entry = (const struct entry *)(entries + at);
            long pid = strtol(entry->name, NULL, 10); /* 0 for all that are no processes */
            if (pid > oldest) {
                adopt((pid_t)pid);
            }
            at += entry->length;
        }
    }
    close(folder);
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

/* Before PROGRAM starts. */
static void memory_begin(void) {
    memory.newest_pid = newest_pid();
}

/* PROGRAM itself: the first of the family. */
static void memory_follow(pid_t pid) {
    memory.family[memory.family_count++] = pid;
}

static void memory_sample(uint64_t ns_since_start) {
    find_family();
    add_sample((point_t){ns_since_start, family_kib()});
}

/* The fields of the result, each after a comma. */
static void memory_write(FILE *file, uint64_t duration_ns) {
    add_sample((point_t){duration_ns, 0}); /* closes the last interval */
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
