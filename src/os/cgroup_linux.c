/* SPDX-License-Identifier: MIT
 *
 * CPU time (version 2) and memory (either version) that control groups allow the process: the
 * tightest bound of its group and those above. An unreadable file sets no bound. All files are
 * opened on a walk up from the group, while the process has one thread; files of groups with a
 * memory limit stay open. */
#include "base/atomics.h"
#include "base/fmt.h"
#include "os/kept.h"
#include "os/optional.h"

#include <string.h>

enum {
    CGROUP_TEXT_BYTES = 2048, /* /proc/self/cgroup, head of memory.stat; stacks are small */
    CGROUP_PATH_BYTES = 512,
    CGROUP_NAME_BYTES = CGROUP_PATH_BYTES + 64,
    CGROUP_LEVELS = 32,
};

/* The walk from the group of the process to the root. */
typedef struct cgroup_walk {
    char path[CGROUP_PATH_BYTES]; /* of the present group */
    unsigned levels;              /* left to go up */
    bool has_cpu, has_memory;     /* in this hierarchy: version 2, then that of version 1 */
    bool is_version_1, has_path_1;
    char path_1[CGROUP_PATH_BYTES]; /* of the group in a memory controller of version 1 */
    char text[CGROUP_TEXT_BYTES];   /* head of the file read last, zero-terminated */
} cgroup_walk_t;

unsigned hak_os_quota_parse(const char *text, size_t length) {
    const char *end = text + length;
    uint64_t quota, period;
    if (!hak_parse_number(&text, end, &quota) || !hak_parse_number(&text, end, &period) ||
        quota == 0 || period == 0) {
        return HAK_OS_NO_QUOTA;
    }
    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus < HAK_OS_NO_QUOTA ? (unsigned)cpus : HAK_OS_NO_QUOTA;
}

/* A path up to the end of its line; false: none that can be followed. */
static bool path_copy(const char *from, char *path) {
    size_t length = from != NULL ? (size_t)(strchrnul(from, '\n') - from) : CGROUP_PATH_BYTES;
    if (length >= CGROUP_PATH_BYTES || (length > 0 && from[0] != '/')) {
        return false;
    }
    memcpy(path, from, length);
    path[length] = '\0';
    if (strcmp(path, "/") == 0 || strstr(path, "/..") != NULL) {
        path[0] = '\0'; /* outside our namespace: use the root */
    }
    return true;
}

/* The path in the line "0::PATH" of version 2. */
bool hak_os_cgroup_path(const char *text, char *path) {
    const char *line = text;
    while (line != NULL && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return path_copy(line != NULL ? line + 3 : NULL, path);
}

/* PATH of "NUMBER:CONTROLLERS:PATH": a hierarchy of version 1 has the controller, so version 2
 * lacks it. NULL: there is none. */
static const char *version_1_path(const char *line, const char *controller) {
    size_t length = strlen(controller);
    for (; *line != '\0'; line = strchrnul(line, '\n'), line += *line == '\n') {
        const char *at = strchr(line, ':'), *end = at != NULL ? strchr(at + 1, ':') : NULL;
        while (end != NULL && at < end) {
            if (strncmp(at + 1, controller, length) == 0 && strchr(",:", at[1 + length]) != NULL) {
                return end + 1;
            }
            const char *comma = memchr(at + 1, ',', (size_t)(end - at - 1));
            at = comma != NULL ? comma : end;
        }
    }
    return NULL;
}

/* Goes on with the memory controller of version 1; false: there is none. */
static bool walk_change(cgroup_walk_t *walk) {
    bool is_there = walk->has_path_1;
    if (is_there) {
        memcpy(walk->path, walk->path_1, sizeof walk->path);
        walk->levels = CGROUP_LEVELS;
        walk->has_path_1 = walk->has_cpu = false;
        walk->has_memory = walk->is_version_1 = true;
    }
    return is_there;
}

static bool walk_begin(cgroup_walk_t *walk) {
    size_t length = hak_os_read_file("/proc/self/cgroup", walk->text, sizeof walk->text - 1);
    walk->text[length] = '\0';
    walk->levels = CGROUP_LEVELS;
    const char *memory_1 = version_1_path(walk->text, "memory");
    walk->has_cpu = version_1_path(walk->text, "cpu") == NULL;
    walk->has_memory = memory_1 == NULL;
    walk->has_path_1 = path_copy(memory_1, walk->path_1);
    walk->is_version_1 = false;
    return hak_os_cgroup_path(walk->text, walk->path) || walk_change(walk);
}

/* Moves to the group above; false: that was the root. */
static bool walk_up(cgroup_walk_t *walk) {
    char *end = strrchr(walk->path, '/');
    if (end == NULL || --walk->levels == 0) {
        return walk_change(walk);
    }
    *end = '\0';
    return true;
}

/* The path of a file of the group. */
static void walk_name(const cgroup_walk_t *walk, const char *file, char name[CGROUP_NAME_BYTES]) {
    hak_text_t text = {.data = name, .capacity = CGROUP_NAME_BYTES};
    const char *root = walk->is_version_1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    hak_text_format(&text, "%s%s/%s", root, walk->path, file);
    hak_text_mem(&text, "", 1);
}

HAK_LOCKED_STATE uint32_t hak_cgroup_quota = HAK_OS_NO_QUOTA; /* [atomic] as read last */

unsigned hak_os_cpu_quota(void) {
    return hak_load_relaxed(&hak_cgroup_quota);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Groups with a limit, from the process's own upward. */
enum { KEPT_LEVELS = 3 }; /* kept; higher groups span many processes and are seldom short */
typedef enum group_file { GROUP_USED, GROUP_STAT, GROUP_HIGH, GROUP_MAX, GROUP_FILES } group_file_t;

typedef struct cgroup_level {
    hak_os_kept_t files[GROUP_FILES]; /* high and max only if they set a bound */
} cgroup_level_t;
static const char group_names[2][GROUP_FILES][24] = {
    {"memory.current", "memory.stat", "memory.high", "memory.max"},
    {"memory.usage_in_bytes", "memory.stat", "", "memory.limit_in_bytes"}, /* of version 1 */
};

/* Written while there is one thread. After a loss the other descriptors stay open. */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) cgroup_level_t hak_cgroup_levels[KEPT_LEVELS];
HAK_LOCKED_STATE uint32_t hak_cgroup_level_count; /* [atomic] */
HAK_LOCKED_STATE bool hak_cgroup_is_begun;        /* [atomic] */

static const uint64_t NO_BOUND = UINT64_MAX;
static const uint64_t BOUND_MOST = 1ull << 60; /* version 1 says 2^63 less a page for none */
static const hak_os_memory_t UNLIMITED = {.limit_bytes = UINT64_MAX};

static uint64_t memory_room(const hak_os_memory_t *memory) {
    return memory->limit_bytes > memory->used_bytes ? memory->limit_bytes - memory->used_bytes : 0;
}

static void memory_take_least(hak_os_memory_t *least, const hak_os_memory_t *memory) {
    *least = memory_room(memory) < memory_room(least) ? *memory : *least;
}

static uint64_t cgroup_number(const char *text, size_t length) {
    uint64_t value;
    return hak_parse_number(&text, text + length, &value) && value < BOUND_MOST ? value : NO_BOUND;
}

static bool cgroup_is_bound(const char *text, size_t length) {
    return cgroup_number(text, length) != NO_BOUND;
}

/* Reads a file, zero-terminated; returns its length, 0: unreadable. */
static size_t level_read(const cgroup_level_t *level, group_file_t file,
                         char text[CGROUP_TEXT_BYTES]) {
    size_t length = hak_os_kept_read(&level->files[file], text, CGROUP_TEXT_BYTES - 1);
    text[length] = '\0';
    return length;
}

/* Reads the bound of a kept file; a file that is not kept has none. false: unreadable. */
static bool level_number(const cgroup_level_t *level, group_file_t file, uint64_t *value) {
    char text[CGROUP_TEXT_BYTES];
    bool is_kept = level->files[file].number != -1;
    size_t length = is_kept ? level_read(level, file, text) : 0;
    *value = cgroup_number(text, length);
    return length != 0 || !is_kept;
}

static uint64_t stat_number(const char *stat, const char *key) {
    const char *text = strstr(stat, key);
    uint64_t value =
        text != NULL ? cgroup_number(text + strlen(key), strlen(text + strlen(key))) : 0;
    return value != NO_BOUND ? value : 0;
}

enum { MEMORY_NEAR_DIVISOR = 4 }; /* of the limit; with more room no exact value is needed */

/* If little is left, subtracts file pages, which the kernel can drop: memory.stat has them in its
 * first kilobyte. Recently used ones, too: else a program that keeps reading its files would purge
 * memory that it needs soon. Earlier counts do not help: in a full group memory displaces such
 * pages. false: unreadable. */
static bool level_memory(const cgroup_level_t *level, hak_os_memory_t *memory) {
    char stat[CGROUP_TEXT_BYTES];
    if (memory_room(memory) >= memory->limit_bytes / MEMORY_NEAR_DIVISOR ||
        level->files[GROUP_STAT].number == -1) {
        return true;
    }
    if (level_read(level, GROUP_STAT, stat) == 0) {
        return false;
    }
    uint64_t files = stat_number(stat, "\ninactive_file ") + stat_number(stat, "\nactive_file ");
    uint64_t below =
        stat_number(stat, "\ntotal_inactive_file ") + /* version 1: with its children */
        stat_number(stat, "\ntotal_active_file ");
    files = files > below ? files : below;
    memory->used_bytes -= files < memory->used_bytes ? files : memory->used_bytes;
    return true;
}

/* The kept level with least room, of those that can be read. */
static void levels_read(hak_os_memory_t *least) {
    hak_os_memory_t memory;
    uint64_t high = NO_BOUND, max = NO_BOUND;
    uint32_t count = hak_load_relaxed(&hak_cgroup_level_count);
    for (const cgroup_level_t *level = hak_cgroup_levels; level < hak_cgroup_levels + count;
         level++) {
        bool is_read = level_number(level, GROUP_HIGH, &high) &&
                       level_number(level, GROUP_MAX, &max) &&
                       level_number(level, GROUP_USED, &memory.used_bytes);
        memory.limit_bytes = high < max ? high : max;
        if (is_read && memory.used_bytes != NO_BOUND && level_memory(level, &memory)) {
            memory_take_least(least, &memory);
        }
    }
}

/* Opens a file and returns its bound; NO_BOUND if the file is not kept. */
static uint64_t level_keep(cgroup_walk_t *walk, cgroup_level_t *level, group_file_t file,
                           size_t *length) {
    char name[CGROUP_NAME_BYTES];
    walk_name(walk, group_names[walk->is_version_1][file], name);
    *length = hak_os_kept_open(&level->files[file], name, cgroup_is_bound, walk->text,
                               file == GROUP_STAT ? 0 : sizeof walk->text);
    return level->files[file].number != -1 ? cgroup_number(walk->text, *length) : NO_BOUND;
}

/* Opens the files of a group. false, and none is kept: the group has no limit, or files cannot be
 * kept. memory.high exists wherever memory.max does; version 1 has none. */
static bool level_open(cgroup_walk_t *walk, cgroup_level_t *level, hak_os_memory_t *memory) {
    size_t length;
    uint64_t max = level_keep(walk, level, GROUP_MAX, &length);
    bool has_high = length != 0 && !walk->is_version_1;
    uint64_t high = has_high ? level_keep(walk, level, GROUP_HIGH, &length) : NO_BOUND;
    memory->limit_bytes = high < max ? high : max;
    if (memory->limit_bytes != NO_BOUND) {
        memory->used_bytes = level_keep(walk, level, GROUP_USED, &length);
        if (level->files[GROUP_USED].number != -1) {
            (void)level_keep(walk, level, GROUP_STAT, &length);
            (void)level_memory(level, memory);
            return true;
        }
    }
    for (unsigned i = 0; i < GROUP_FILES; i++) {
        hak_os_kept_close(&level->files[i]);
    }
    return false;
}

/* Opens all levels anew. Without a new limit the old files stay in use. Old descriptors are never
 * closed: the program may have opened the same file under the same number. */
static void levels_open(hak_os_memory_t *least) {
    cgroup_walk_t walk;
    char name[CGROUP_NAME_BYTES];
    cgroup_level_t levels[KEPT_LEVELS];
    hak_os_memory_t memory;
    uint32_t count = 0, cpus = HAK_OS_NO_QUOTA;
    *least = UNLIMITED;
    memset(levels, -1, sizeof levels); /* no file is kept */
    for (bool is_on = walk_begin(&walk); is_on; is_on = walk_up(&walk)) {
        walk_name(&walk, "cpu.max", name);
        size_t length = walk.has_cpu ? hak_os_read_file(name, walk.text, sizeof walk.text) : 0;
        uint32_t quota = hak_os_quota_parse(walk.text, length);
        cpus = quota < cpus ? quota : cpus;
        if (walk.has_memory && count < KEPT_LEVELS && level_open(&walk, &levels[count], &memory)) {
            memory_take_least(least, &memory);
            count++;
        }
    }
    hak_store_relaxed(&hak_cgroup_quota, cpus);
    if (count != 0) {
        memcpy(hak_cgroup_levels, levels, count * sizeof *levels);
        hak_store_relaxed(&hak_cgroup_level_count, count);
    }
}

/* Opens no file again, whatever the program closes: it may have forbidden itself that. */
HAK_COLD bool hak_os_memory_limit(hak_os_memory_t *memory) {
    hak_os_memory_t least = UNLIMITED;
    uint64_t signals;
    if (hak_load_relaxed(&hak_cgroup_is_begun)) {
        levels_read(&least);
    } else if (hak_os_alone_begin(&signals)) {
        hak_store_relaxed(&hak_cgroup_is_begun, true);
        levels_open(&least);
        hak_os_restore_signals(signals);
    }
    bool is_limited = least.limit_bytes != NO_BOUND;
    if (is_limited) {
        *memory = least;
    }
    return is_limited;
}
