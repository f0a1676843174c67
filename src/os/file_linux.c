/* SPDX-License-Identifier: MIT
 *
 * Linux: reads files, all of them in /proc and /sys, writes lines. */
#include "base/bits.h"
#include "base/fmt.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* Reads at least a byte, unless at the end. */
static size_t file_read(long fd, char *buffer, size_t capacity) {
    long done;
    do {
        done = hak_syscall(SYS_read, fd, buffer, capacity);
    } while (done == -EINTR);
    return done < 0 ? 0 : (size_t)done;
}

/* The kernel produces each of these texts at once: a short read is the end. */
int hak_os_open_head(const char *path, char *buffer, size_t capacity, size_t *length) {
    long fd = hak_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    *length = fd < 0 || capacity == 0 ? 0 : file_read(fd, buffer, capacity);
    return fd < 0 ? -1 : (int)fd;
}

size_t hak_os_read_file(const char *path, char *buffer, size_t capacity) {
    size_t length;
    if (HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_READ)) {
        return 0;
    }
    if (HAK_FAULT && hak_os_fault_file(path, buffer, capacity, &length)) {
        return length;
    }
    int fd = hak_os_open_head(path, buffer, capacity, &length);
    if (fd >= 0) {
        hak_syscall(SYS_close, fd);
    }
    return length;
}

bool hak_os_read_link(const char *path, char *buffer, size_t capacity) {
    long length = hak_syscall(SYS_readlinkat, AT_FDCWD, path, buffer, capacity - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Until complete, or broken. */
void hak_os_write(int fd, const char *data, size_t length) {
    if (HAK_FAULT && fd == 2 && hak_os_fault_report(data, length)) {
        return;
    }
    while (length > 0) {
        long done = hak_syscall(SYS_write, fd, data, length);
        if (done <= 0 && done != -EINTR) {
            return;
        }
        done = done > 0 ? done : 0;
        data += done;
        length -= (size_t)done;
    }
}

typedef struct file_lines {
    hak_os_line_t *take;
    void *context;
    bool is_rest; /* the next bytes continue a line that did not fit */
} file_lines_t;

/* Passes on whole lines, and a line that fills the buffer; returns the bytes left. */
static size_t lines_take(file_lines_t *lines, char *text, size_t length, size_t capacity) {
    size_t taken = 0;
    for (;;) {
        char *end = memchr(text + taken, '\n', length - taken);
        bool is_cut = end == NULL && taken == 0 && length == capacity;
        if (end == NULL && !is_cut) {
            break;
        }
        end = is_cut ? text + length - 1 : end;
        *end = '\0';
        if (!lines->is_rest) {
            lines->take(text + taken, lines->context);
        }
        lines->is_rest = is_cut;
        taken = (size_t)(end - text) + 1;
    }
    memmove(text, text + taken, length - taken);
    return length - taken;
}

bool hak_os_read_lines(const char *path, char *buffer, size_t capacity, hak_os_line_t *take,
                       void *context) {
    file_lines_t lines = {.take = take, .context = context};
    size_t length = 0, more;
    if (HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_READ)) {
        return false;
    }
    if (HAK_FAULT && hak_os_fault_file(path, buffer, capacity, &length)) {
        (void)lines_take(&lines, buffer, length, capacity);
        return true;
    }
    int fd = hak_os_open_head(path, buffer, 0, &length);
    if (fd < 0) {
        return false;
    }
    while ((more = file_read(fd, buffer + length, capacity - length)) != 0) {
        length = lines_take(&lines, buffer, length + more, capacity);
    }
    hak_syscall(SYS_close, fd);
    return true;
}

/* --- mappings of the process: /proc/self/maps ------------------------------------------------- */

typedef struct maps_reader {
    hak_os_mapping_visit_t *visit;
    void *context;
} maps_reader_t;

/* Moves behind a field and the blanks that follow it. */
static const char *field_skip(const char *at) {
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

/* start-end rwxp offset device inode path */
static void maps_line(char *line, void *context) {
    const maps_reader_t *reader = context;
    const char *at = line;
    hak_os_mapping_t mapping = {.start = hak_parse_hex(&at)};
    if (*at != '-') {
        return;
    }
    at++;
    mapping.end = hak_parse_hex(&at);
    at = field_skip(at);
    size_t rights = strcspn(at, " ");
    mapping.is_code = rights > 2 && at[2] == 'x';
    at = field_skip(at);
    mapping.offset = hak_parse_hex(&at);
    mapping.path = field_skip(field_skip(field_skip(at)));
    reader->visit(&mapping, reader->context);
}

bool hak_os_mappings(char *buffer, size_t capacity, hak_os_mapping_visit_t *visit, void *context) {
    maps_reader_t reader = {.visit = visit, .context = context};
    return hak_os_read_lines("/proc/self/maps", buffer, capacity, maps_line, &reader);
}

static uint64_t number_after(const char *at) {
    uint64_t value;
    return hak_parse_number(&at, strchr(at, '\0'), &value) ? value : 0;
}

static void peak_line(char *line, void *bytes) {
    if (strncmp(line, "VmHWM:\t", 7) == 0) {
        *(uint64_t *)bytes = number_after(line + 7) << 10;
    }
}

/* Not by getrusage: it counts memory from before exec. */
uint64_t hak_os_resident_peak(void) {
    char text[512];
    uint64_t bytes = 0;
    (void)hak_os_read_lines("/proc/self/status", text, sizeof text, peak_line, &bytes);
    return bytes;
}
