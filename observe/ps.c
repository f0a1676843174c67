/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe ps */
#include "command.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 3000 }; /* for one process */

typedef struct row {
    uint32_t pid;
    uint64_t rss_bytes;
    bool is_hardened;
    char command[OBS_COMMAND_BYTES], library[20], path[256];
} row_t;

typedef struct table {
    row_t *row;
    size_t count, room;
} table_t;

static bool table_add(table_t *table, const row_t *row) {
    if (table->count == table->room) {
        size_t room = table->room * 2 + 64;
        row_t *all = realloc(table->row, room * sizeof *all);
        if (all == NULL) {
            return false;
        }
        table->row = all;
        table->room = room;
    }
    table->row[table->count++] = *row;
    return true;
}

/* false: it is not on hakmem, or may not be read. */
static bool row_read(row_t *row, uint32_t pid) {
    static obs_reader_t reader;
    static obs_image_t image;
    bool is_read = obs_open_process_quickly(&reader, pid) && obs_image_open(&image, &reader);
    if (is_read) {
        *row = (row_t){.pid = pid,
                       .rss_bytes = obs_process_rss(&reader),
                       .is_hardened = obs_is_hardened(&image)};
        snprintf(row->command, sizeof row->command, "%s", reader.command);
        snprintf(row->library, sizeof row->library, "%s", image.library);
        snprintf(row->path, sizeof row->path, "%s", image.path);
        obs_tame(row->command);
        obs_tame(row->path);
    }
    obs_close(&reader);
    return is_read;
}

static void child_wait(pid_t child, int from, row_t *row, bool *is_read, bool *is_late) {
    struct pollfd poll_one = {.fd = from, .events = POLLIN};
    *is_late = poll(&poll_one, 1, WAIT_MS) == 0;
    if (*is_late) {
        kill(child, SIGKILL);
    } else {
        *is_read = read(from, row, sizeof *row) == (ssize_t)sizeof *row;
    }
    waitpid(child, NULL, 0);
}

/* In a child of ours: a page of a file that nobody serves (FUSE) holds up whoever reads it. A row
 * is shorter than what a pipe takes at once. */
static bool process_add(table_t *table, uint32_t pid) {
    row_t row;
    bool is_read = false, is_late = false;
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        is_read = row_read(&row, pid);
        _exit(is_read && write(ends[1], &row, sizeof row) == (ssize_t)sizeof row ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0) {
        child_wait(child, ends[0], &row, &is_read, &is_late);
    }
    close(ends[0]);
    if (is_late) {
        fprintf(stderr, "hakmem-observe: process %u could not be read within %d s\n", pid,
                WAIT_MS / 1000);
    }
    return child > 0 && (!is_read || table_add(table, &row));
}

/* By RSS, the largest first. */
static int row_compare(const void *a, const void *b) {
    const row_t *x = a, *y = b;
    return x->rss_bytes != y->rss_bytes
               ? (x->rss_bytes < y->rss_bytes) - (x->rss_bytes > y->rss_bytes)
               : (x->pid > y->pid) - (x->pid < y->pid);
}

int obs_command_ps(int argc, char **argv) {
    table_t table = {0};
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    bool is_good = folder != NULL;
    (void)argv;
    if (argc != 1) {
        return obs_usage();
    }
    while (is_good && (entry = readdir(folder)) != NULL) {
        unsigned long pid = strtoul(entry->d_name, NULL, 10);
        is_good = pid == 0 || pid > INT32_MAX || (pid_t)pid == getpid() ||
                  process_add(&table, (uint32_t)pid);
    }
    if (!is_good) {
        return obs_say(folder != NULL ? "no memory, or no more processes" : "/proc cannot be read");
    }
    closedir(folder);
    if (table.count != 0) {
        qsort(table.row, table.count, sizeof *table.row, row_compare);
    }
    printf("%10s %10s  %-15s %-10s %s\n", "PID", "RSS KiB", "COMMAND", "HAKMEM", "LIBRARY");
    for (size_t i = 0; i < table.count; i++) {
        const row_t *row = &table.row[i];
        printf("%10u %10lu  %-15s %s%-*s %s\n", row->pid, (unsigned long)(row->rss_bytes >> 10),
               row->command, row->library, (int)(10 - strlen(row->library)),
               row->is_hardened ? "+h" : "", row->path);
    }
    free(table.row);
    return 0;
}
