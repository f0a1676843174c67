/* SPDX-License-Identifier: MIT
 *
 * The CPU time that control groups leave the process: of its group and of all above it, the least
 * quota holds. Version 2 keeps quota and period in one file ("150000 100000", "max 100000"),
 * version 1 in two. A container may see its own group as the root. Whatever cannot be read or
 * understood is no quota. */
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

static bool is_blank(char c) {
    return c == ' ' || c == '\n';
}

/* The next number of a text; what is left of the text. */
static bool quota_number(const char **text, const char *end, uint64_t *value) {
    const char *from = *text;
    while (from < end && is_blank(*from)) {
        from++;
    }
    const char *to = from;
    while (to < end && *to >= '0' && *to <= '9') {
        to++;
    }
    *text = to;
    return (to == end || is_blank(*to)) && hak_parse_size(from, (size_t)(to - from), value);
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

/* Whether a list, separated by commas, has the word; an empty list has the empty one. */
static bool list_has(const char *list, size_t length, const char *word) {
    size_t word_length = strlen(word);
    const char *end = list + length;
    for (;;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *to = comma != NULL ? comma : end;
        if ((size_t)(to - list) == word_length && memcmp(list, word, word_length) == 0) {
            return true;
        }
        if (comma == NULL) {
            return false;
        }
        list = comma + 1;
    }
}

/* "ID:CONTROLLERS:PATH" */
static bool cgroup_line(const char *line, size_t length, const char *controller, char *path) {
    const char *end = line + length;
    const char *list = memchr(line, ':', length);
    const char *colon = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list) - 1);
    if (colon == NULL || !list_has(list + 1, (size_t)(colon - list) - 1, controller)) {
        return false;
    }
    const char *from = colon + 1;
    size_t path_length = (size_t)(end - from);
    if (path_length >= CGROUP_PATH_BYTES || (path_length > 0 && *from != '/')) {
        return false;
    }
    memcpy(path, from, path_length);
    path[path_length] = '\0';
    if (strcmp(path, "/") == 0 || strstr(path, "/..") != NULL) {
        path[0] =
            '\0'; /* the root; or outside of what the process sees: the root will have to do */
    }
    return true;
}

bool hak_os_cgroup_path(const char *text, const char *controller, char *path) {
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (cgroup_line(text, length, controller, path)) {
            return true;
        }
        text += length + (text[length] == '\n');
    }
    return false;
}

typedef struct cgroup_kind {
    const char *controller, *root, *quota, *period;
} cgroup_kind_t;

static const cgroup_kind_t cgroup_kinds[] = {
    {"", "/sys/fs/cgroup", "/cpu.max", NULL},
    {"cpu", "/sys/fs/cgroup/cpu", "/cpu.cfs_quota_us", "/cpu.cfs_period_us"},
};

static size_t cgroup_read(const cgroup_kind_t *kind, const char *path, const char *file,
                          char *value, size_t capacity) {
    char name[CGROUP_NAME_BYTES];
    hak_text_t text;
    hak_text_init(&text, name, sizeof name);
    hak_text_str(&text, kind->root);
    hak_text_str(&text, path);
    hak_text_str(&text, file);
    hak_text_mem(&text, "", 1);
    return hak_os_read_file(name, value, capacity);
}

/* The quota of one group. */
static unsigned cgroup_quota(const cgroup_kind_t *kind, const char *path) {
    char value[CGROUP_VALUE_BYTES];
    size_t half = sizeof value / 2;
    size_t length = cgroup_read(kind, path, kind->quota, value, half);
    if (length != 0 && kind->period != NULL) {
        value[length - 1] = ' '; /* instead of the end of the line */
        length += cgroup_read(kind, path, kind->period, value + length, half);
    }
    return hak_os_quota_parse(value, length);
}

/* The least of a group and those above it. */
static unsigned cgroup_walk(const cgroup_kind_t *kind, char *path) {
    unsigned least = HAK_OS_NO_QUOTA;
    for (unsigned level = 0; level < CGROUP_LEVELS; level++) {
        unsigned quota = cgroup_quota(kind, path);
        least = quota < least ? quota : least;
        char *last = strrchr(path, '/');
        if (last == NULL) {
            break;
        }
        *last = '\0';
    }
    return least;
}

unsigned hak_os_cpu_quota(void) {
    char text[CGROUP_TEXT_BYTES], path[CGROUP_PATH_BYTES];
    unsigned least = HAK_OS_NO_QUOTA;
    text[hak_os_read_file("/proc/self/cgroup", text, sizeof text - 1)] = '\0';
    for (size_t i = 0; i < sizeof cgroup_kinds / sizeof *cgroup_kinds; i++) {
        const cgroup_kind_t *kind = &cgroup_kinds[i];
        if (hak_os_cgroup_path(text, kind->controller, path)) {
            unsigned quota = cgroup_walk(kind, path);
            least = quota < least ? quota : least;
        }
    }
    return least;
}
