/* SPDX-License-Identifier: MIT
 *
 * The CPU time that control groups (version 2) leave the process: of its group and of all above it
 * the least quota holds. Whatever cannot be read or understood is none. */
#include "base/fmt.h"
#include "os/os.h"

#include <string.h>

enum {
    CGROUP_TEXT_BYTES = 2048, /* of /proc/self/cgroup; the stack may be small */
    CGROUP_PATH_BYTES = 512,
    CGROUP_NAME_BYTES = CGROUP_PATH_BYTES + 64,
    CGROUP_VALUE_BYTES = 48, /* two numbers */
    CGROUP_LEVELS = 32,
};

/* The next number of a text; what is left of the text. */
static bool quota_number(const char **text, const char *end, uint64_t *value) {
    const char *from = *text;
    while (from < end && strchr(" \n", *from) != NULL) {
        from++;
    }
    const char *to = from;
    while (to < end && *to >= '0' && *to <= '9') {
        to++;
    }
    *text = to;
    return (to == end || strchr(" \n", *to) != NULL) &&
           hak_parse_size(from, (size_t)(to - from), value);
}

unsigned hak_os_quota_parse(const char *text, size_t length) {
    const char *end = text + length;
    uint64_t quota, period;
    if (!quota_number(&text, end, &quota) || !quota_number(&text, end, &period) || quota == 0 ||
        period == 0) {
        return HAK_OS_NO_QUOTA;
    }
    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus < HAK_OS_NO_QUOTA ? (unsigned)cpus : HAK_OS_NO_QUOTA;
}

/* The line "0::PATH" of version 2. */
bool hak_os_cgroup_path(const char *text, char *path) {
    const char *line = text;
    while (line != NULL && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (line == NULL) {
        return false;
    }
    size_t length = strcspn(line + 3, "\n");
    if (length >= CGROUP_PATH_BYTES || (length > 0 && line[3] != '/')) {
        return false;
    }
    memcpy(path, line + 3, length);
    path[length] = '\0';
    if (strcmp(path, "/") == 0 || strstr(path, "/..") != NULL) {
        path[0] = '\0'; /* outside of what the process sees: the root will have to do */
    }
    return true;
}

/* The quota of one group. */
static unsigned cgroup_quota(const char *path) {
    char name[CGROUP_NAME_BYTES], value[CGROUP_VALUE_BYTES];
    hak_text_t text;
    hak_text_init(&text, name, sizeof name);
    hak_text_str(&text, "/sys/fs/cgroup");
    hak_text_str(&text, path);
    hak_text_str(&text, "/cpu.max");
    hak_text_mem(&text, "", 1);
    return hak_os_quota_parse(value, hak_os_read_file(name, value, sizeof value));
}

unsigned hak_os_cpu_quota(void) {
    char text[CGROUP_TEXT_BYTES], path[CGROUP_PATH_BYTES];
    unsigned least = HAK_OS_NO_QUOTA;
    text[hak_os_read_file("/proc/self/cgroup", text, sizeof text - 1)] = '\0';
    char *end = hak_os_cgroup_path(text, path) ? path : NULL;
    for (unsigned level = 0; end != NULL && level < CGROUP_LEVELS; level++) {
        unsigned quota = cgroup_quota(path);
        least = quota < least ? quota : least;
        end = strrchr(path, '/');
        if (end != NULL) {
            *end = '\0';
        }
    }
    return least;
}
