/* SPDX-License-Identifier: MIT
 *
 * The report at exit, written without the C library's streams, which may be gone. Many programs,
 * all GNU coreutils among them, close standard error before that: then the report goes to a copy of
 * it, unless the program closed that, too. */
#include "base/check.h"
#include "control/control.h"
#include "os/lock.h"

#include <string.h>

bool hak_control_is_meant(const char *only) {
    size_t length = (size_t)(strchrnul(only, '/') - only);
    return length == 0 || hak_is_word(hak_os_program(), only, length);
}

bool hak_control_least(const char *only, uint64_t *bytes) {
    const char *slash = strchr(only, '/');
    *bytes = 0;
    return slash == NULL || hak_parse_size(slash + 1, strlen(slash + 1), bytes);
}

enum { ERROR_FD = 2, KEPT_FD = 100 }; /* at least: programs count on low numbers */

static int kept_fd = -1;           /* [init] */
static hak_os_file_id_t kept_file; /* [init] identifies its file */

void hak_control_keep_error(void) {
    (void)hak_os_find_file(ERROR_FD, &kept_file);
    kept_fd = hak_os_copy_descriptor(ERROR_FD, KEPT_FD);
}

static bool is_kept(const hak_os_file_id_t *file) {
    return hak_os_is_same_file(file, &kept_file);
}

/* Standard error, if it is open; else the copy, unless its number is another file's by now. What
 * got descriptor 2 after the start holds data, or talks to another process, unless it is a terminal
 * or a pipe. -1: none. */
static int exit_error(void) {
    hak_os_file_id_t there;
    if (hak_os_find_file(ERROR_FD, &there) && (there.is_stream || is_kept(&there))) {
        return ERROR_FD;
    }
    return hak_os_find_file(kept_fd, &there) && is_kept(&there) ? kept_fd : -1;
}

static const uint64_t EXIT_WAIT_NS = 2000000000; /* for the reader, in total */

typedef struct exit_file {
    int fd;
    uint64_t due_ns;
    bool is_broken;
} exit_file_t;

static void exit_put(void *context, const char *data, size_t length) {
    exit_file_t *file = context;
    file->is_broken = file->is_broken || !hak_os_write_calmly(file->fd, data, length, file->due_ns);
}

/* Writes in one piece, so that reports of several processes do not mix; without memory in many.
 * false: a part is missing. */
static bool exit_write(const hak_control_topic_t *topic, int fd) {
    exit_file_t file = {.fd = fd, .due_ns = hak_os_now_ns() + EXIT_WAIT_NS};
    hak_body_t body;
    hak_body_make(&body, topic);
    if (body.is_cut) {
        const hak_sink_t sink = {.put = exit_put, .context = &file};
        topic->write(topic->which, &sink);
    } else {
        exit_put(&file, body.data, body.length);
    }
    hak_body_drop(&body);
    return !file.is_broken;
}

/* A signal handler may call exit inside an operation, whose locks stay taken: then no report. */
void hak_control_report(const char *name, const char *pattern) {
    char path[HAK_CONTROL_PATH_BYTES];
    const hak_control_topic_t *topic = hak_control_find(name, strlen(name), false);
    if (!hak_lock_holds_none()) {
        hak_warn("report: none, as exit was called inside of an allocation");
        return;
    }
    if (pattern[0] == '\0') {
        int error = exit_error();
        if (error >= 0) {
            (void)exit_write(topic, error);
        }
        return;
    }
    int fd = hak_control_path(pattern, path, sizeof path) ? hak_os_create_file(path) : -1;
    if (fd < 0) {
        hak_control_warn("report_file", pattern, "no file of this user can be written there");
        return;
    }
    if (!exit_write(topic, fd)) {
        hak_control_warn("report_file", pattern, "its end is missing: no room, or no reader");
    }
    hak_os_close_file(fd);
}
