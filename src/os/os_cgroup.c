/* SPDX-License-Identifier: MIT
 *
 * What control groups (version 2) leave the process of CPU time and of memory: of its group and of
 * all above it the tightest bound holds. Whatever cannot be read or understood is none. */
#include "base/atomics.h"
#include "base/fmt.h"
#include "os/os.h"

#include <string.h>

enum {
    CGROUP_TEXT_BYTES = 2048, /* of /proc/self/cgroup, the head of memory.stat; stacks are small */
    CGROUP_PATH_BYTES = 512,
    CGROUP_NAME_BYTES = CGROUP_PATH_BYTES + 64,
    CGROUP_LEVELS = 32,
};

/* On the way from the group of the process to the root. */
typedef struct cgroup_walk {
    char path[CGROUP_PATH_BYTES]; /* of the group it is at */
    unsigned levels;              /* it may still go up */
    size_t length;                /* of the file read last */
    char text[CGROUP_TEXT_BYTES]; /* its head, zero-terminated */
} cgroup_walk_t;

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

static bool walk_begin(cgroup_walk_t *walk) {
    walk->levels = CGROUP_LEVELS;
    walk->length = hak_os_read_file("/proc/self/cgroup", walk->text, sizeof walk->text - 1);
    walk->text[walk->length] = '\0';
    return hak_os_cgroup_path(walk->text, walk->path);
}

/* To the group above; false: that was the root. */
static bool walk_up(cgroup_walk_t *walk) {
    char *end = strrchr(walk->path, '/');
    if (end == NULL || --walk->levels == 0) {
        return false;
    }
    *end = '\0';
    return true;
}

/* Reads a file of the group. */
static void walk_read(cgroup_walk_t *walk, const char *file) {
    char name[CGROUP_NAME_BYTES];
    hak_text_t text;
    hak_text_init(&text, name, sizeof name);
    hak_text_format(&text, "/sys/fs/cgroup%s/%s", walk->path, file);
    hak_text_mem(&text, "", 1);
    walk->length = hak_os_read_file(name, walk->text, sizeof walk->text - 1);
    walk->text[walk->length] = '\0';
}

static void walk_quota(void *context) {
    unsigned *least = context;
    cgroup_walk_t walk;
    for (bool is_on = walk_begin(&walk); is_on; is_on = walk_up(&walk)) {
        walk_read(&walk, "cpu.max");
        unsigned quota = hak_os_quota_parse(walk.text, walk.length);
        *least = quota < *least ? quota : *least;
    }
}

unsigned hak_os_cpu_quota(void) {
    unsigned least = HAK_OS_NO_QUOTA;
    (void)hak_os_run_apart(walk_quota, &least);
    return least;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool walk_number(cgroup_walk_t *walk, const char *file, uint64_t *value) {
    walk_read(walk, file);
    const char *text = walk->text;
    return quota_number(&text, text + walk->length, value);
}

static uint64_t stat_number(const cgroup_walk_t *walk, const char *key) {
    uint64_t value;
    const char *text = strstr(walk->text, key);
    if (text == NULL) {
        return 0;
    }
    text += strlen(key);
    return quota_number(&text, walk->text + walk->length, &value) ? value : 0;
}

/* Of memory.stat, where they stand in the first kilobyte: pages of files that the kernel can drop.
 * Those used lately are some of them: counted as in use, a program that reads its files again and
 * again would look as if it had no room, and would give back what it will want. */
static uint64_t walk_files(cgroup_walk_t *walk) {
    walk_read(walk, "memory.stat");
    return stat_number(walk, "\ninactive_file ") + stat_number(walk, "\nactive_file ");
}

/* To read it costs the kernel much where there are many groups, and it changes slowly. Of one
 * group: there is seldom another one that has little left. */
static const uint64_t FILES_KEPT_NS = 1000u * 1000 * 1000;

HAK_LOCKED_STATE uint64_t hak_cgroup_files_bytes;  /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_cgroup_files_levels; /* [atomic] whose that is */
HAK_LOCKED_STATE uint64_t hak_cgroup_files_due_ns; /* [atomic] to be read again */

static uint64_t files_bytes(cgroup_walk_t *walk) {
    uint64_t now = hak_os_now_ns();
    if (now < hak_load_relaxed(&hak_cgroup_files_due_ns) &&
        hak_load_relaxed(&hak_cgroup_files_levels) == walk->levels) {
        return hak_load_relaxed(&hak_cgroup_files_bytes);
    }
    uint64_t bytes = walk_files(walk);
    hak_store_relaxed(&hak_cgroup_files_bytes, bytes);
    hak_store_relaxed(&hak_cgroup_files_levels, walk->levels);
    hak_store_relaxed(&hak_cgroup_files_due_ns, now + FILES_KEPT_NS);
    return bytes;
}

static uint64_t memory_room(const hak_os_memory_t *memory) {
    return memory->limit_bytes > memory->used_bytes ? memory->limit_bytes - memory->used_bytes : 0;
}

enum { MEMORY_NEAR_PART = 4 }; /* of the limit; more room than that need not be known exactly */

/* Limit and use of one group; false: it has no limit. */
static bool walk_memory(cgroup_walk_t *walk, hak_os_memory_t *memory) {
    uint64_t high = UINT64_MAX, max = UINT64_MAX;
    bool is_limited = walk_number(walk, "memory.high", &high);
    is_limited = walk_number(walk, "memory.max", &max) || is_limited;
    if (!is_limited || !walk_number(walk, "memory.current", &memory->used_bytes)) {
        return false;
    }
    memory->limit_bytes = high < max ? high : max;
    if (memory_room(memory) < memory->limit_bytes / MEMORY_NEAR_PART) {
        uint64_t files = files_bytes(walk);
        memory->used_bytes -= files < memory->used_bytes ? files : memory->used_bytes;
    }
    return true;
}

typedef struct memory_search {
    hak_os_memory_t least; /* of the level with least room, if one is limited */
    bool is_limited;
} memory_search_t;

static void walk_limits(void *context) {
    memory_search_t *search = context;
    cgroup_walk_t walk;
    hak_os_memory_t level;
    for (bool is_on = walk_begin(&walk); is_on; is_on = walk_up(&walk)) {
        if (walk_memory(&walk, &level) &&
            (!search->is_limited || memory_room(&level) < memory_room(&search->least))) {
            search->least = level;
            search->is_limited = true;
        }
    }
}

bool hak_os_memory_limit(hak_os_memory_t *memory) {
    memory_search_t search = {.is_limited = false};
    (void)hak_os_run_apart(walk_limits, &search);
    if (search.is_limited) {
        *memory = search.least;
    }
    return search.is_limited;
}
