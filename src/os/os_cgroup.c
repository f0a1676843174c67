/* SPDX-License-Identifier: MIT
 *
 * What control groups (version 2) leave the process of CPU time and of memory: of its group and of
 * all above it the tightest bound holds. Whatever cannot be read or understood is none. Files are
 * opened while the process has one thread; those of groups with a limit of memory stay open for
 * the looks that follow. */
#include "base/atomics.h"
#include "base/fmt.h"
#include "os/os.h"
#include "os/os_kept.h"

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

/* Of a file of the group. */
static void walk_name(const cgroup_walk_t *walk, const char *file, char name[CGROUP_NAME_BYTES]) {
    hak_text_t text;
    hak_text_init(&text, name, CGROUP_NAME_BYTES);
    hak_text_format(&text, "/sys/fs/cgroup%s/%s", walk->path, file);
    hak_text_mem(&text, "", 1);
}

static void walk_read(cgroup_walk_t *walk, const char *file) {
    char name[CGROUP_NAME_BYTES];
    walk_name(walk, file, name);
    walk->length = hak_os_read_file(name, walk->text, sizeof walk->text - 1);
    walk->text[walk->length] = '\0';
}

HAK_LOCKED_STATE uint32_t hak_cgroup_quota = HAK_OS_NO_QUOTA; /* [atomic] as it was last */

unsigned hak_os_cpu_quota(void) {
    cgroup_walk_t walk;
    uint64_t signals;
    if (hak_os_alone_begin(&signals)) {
        unsigned least = HAK_OS_NO_QUOTA;
        for (bool is_on = walk_begin(&walk); is_on; is_on = walk_up(&walk)) {
            walk_read(&walk, "cpu.max");
            unsigned quota = hak_os_quota_parse(walk.text, walk.length);
            least = quota < least ? quota : least;
        }
        hak_store_relaxed(&hak_cgroup_quota, least);
    }
    hak_os_alone_end(signals);
    return hak_load_relaxed(&hak_cgroup_quota);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Of the groups with a limit, from that of the process upward. */
enum { KEPT_LEVELS = 3 }; /* followed; those above are for many processes, and seldom short */
typedef enum group_file {
    GROUP_CURRENT,
    GROUP_STAT,
    GROUP_HIGH,
    GROUP_MAX,
    GROUP_FILES
} group_file_t;

typedef struct cgroup_level {
    hak_os_kept_t files[GROUP_FILES]; /* high and max only if they are a bound */
} cgroup_level_t;

static const char *const group_names[GROUP_FILES] = {"memory.current", "memory.stat", "memory.high",
                                                     "memory.max"};

HAK_LOCKED_STATE uint64_t hak_cgroup_files_bytes;    /* [atomic] */
HAK_LOCKED_STATE const void *hak_cgroup_files_level; /* [atomic] whose that is */
HAK_LOCKED_STATE uint64_t hak_cgroup_files_due_ns;   /* [atomic] to be read again */
/* Written while there is one thread. */
HAK_LOCKED_STATE cgroup_level_t hak_cgroup_levels[KEPT_LEVELS];
HAK_LOCKED_STATE uint32_t hak_cgroup_level_count; /* [atomic] */
/* Descriptors of ours that were left open, as others were lost; and how many that may be. */
HAK_LOCKED_STATE uint32_t hak_cgroup_left_count; /* [atomic] */
enum { KEPT_LEFT_MOST = 2 * KEPT_LEVELS * GROUP_FILES };

static bool level_keep(cgroup_walk_t *walk, cgroup_level_t *level, group_file_t file) {
    char name[CGROUP_NAME_BYTES];
    walk_name(walk, group_names[file], name);
    return hak_os_kept_open(&level->files[file], name);
}

static bool walk_is_number(cgroup_walk_t *walk, group_file_t file) {
    uint64_t value;
    walk_read(walk, group_names[file]);
    const char *text = walk->text;
    return quota_number(&text, text + walk->length, &value);
}

/* false: the group has no limit, or its files cannot be kept. */
static bool level_open(cgroup_walk_t *walk, cgroup_level_t *level) {
    bool is_limited = false;
    for (unsigned i = 0; i < GROUP_FILES; i++) {
        level->files[i] = HAK_OS_KEPT_NONE;
    }
    for (unsigned i = GROUP_HIGH; i <= GROUP_MAX; i++) {
        is_limited = (walk_is_number(walk, i) && level_keep(walk, level, i)) || is_limited;
    }
    if (is_limited && level_keep(walk, level, GROUP_CURRENT)) {
        (void)level_keep(walk, level, GROUP_STAT);
        return true;
    }
    for (unsigned i = 0; i < GROUP_FILES; i++) {
        hak_os_kept_close(&level->files[i]);
    }
    return false;
}

/* Opens all anew. Those that are open stay so: the program may have opened the same file under the
 * same number. */
static void levels_open(void) {
    cgroup_walk_t walk;
    uint32_t count = 0;
    for (bool is_on = walk_begin(&walk); is_on && count < KEPT_LEVELS; is_on = walk_up(&walk)) {
        count += level_open(&walk, &hak_cgroup_levels[count]);
    }
    hak_store_relaxed(&hak_cgroup_level_count, count);
    hak_store_relaxed(&hak_cgroup_files_due_ns, 0);
}

/* Opens them if there are none, or one was lost, as the program closed it. false: nothing was
 * opened; nothing is while there are other threads, and when too many were left open. */
static bool levels_renew(void) {
    uint32_t count = hak_load_relaxed(&hak_cgroup_level_count), left = 0;
    bool is_lost = count == 0;
    for (unsigned i = 0; i < count * GROUP_FILES; i++) {
        const hak_os_kept_t *file = &hak_cgroup_levels[i / GROUP_FILES].files[i % GROUP_FILES];
        bool is_open = hak_os_kept_is_open(file);
        is_lost = is_lost || (file->number != -1 && !is_open);
        left += is_open && file->number >= 0;
    }
    left += hak_load_relaxed(&hak_cgroup_left_count);
    if (!is_lost || left > KEPT_LEFT_MOST) {
        return false;
    }
    uint64_t signals;
    bool is_alone = hak_os_alone_begin(&signals);
    if (is_alone) {
        levels_open();
        hak_store_relaxed(&hak_cgroup_left_count, left);
    }
    hak_os_alone_end(signals);
    return is_alone;
}

typedef struct group_text {
    size_t length;
    char text[CGROUP_TEXT_BYTES]; /* zero-terminated */
} group_text_t;

/* false: the file is lost. */
static bool level_read(const cgroup_level_t *level, group_file_t file, group_text_t *out) {
    out->length = hak_os_kept_read(&level->files[file], out->text, sizeof out->text - 1);
    out->length = out->length < sizeof out->text ? out->length : sizeof out->text - 1;
    out->text[out->length] = '\0';
    return out->length != 0;
}

static bool level_number(const cgroup_level_t *level, group_file_t file, uint64_t *value) {
    group_text_t read;
    const char *text = read.text;
    return level_read(level, file, &read) && quota_number(&text, text + read.length, value);
}

static uint64_t stat_number(const group_text_t *stat, const char *key) {
    uint64_t value;
    const char *text = strstr(stat->text, key);
    if (text == NULL) {
        return 0;
    }
    text += strlen(key);
    return quota_number(&text, stat->text + stat->length, &value) ? value : 0;
}

/* Of memory.stat, where they stand in the first kilobyte: pages of files that the kernel can drop.
 * Those used lately are some of them: counted as in use, a program that reads its files again and
 * again would look as if it had no room, and would give back what it will want. */
static uint64_t level_files(const cgroup_level_t *level) {
    group_text_t stat;
    if (!level_read(level, GROUP_STAT, &stat)) {
        return 0;
    }
    return stat_number(&stat, "\ninactive_file ") + stat_number(&stat, "\nactive_file ");
}

/* To read it costs the kernel much where there are many groups, and it changes slowly. Of one
 * group: there is seldom another one that has little left. */
static const uint64_t FILES_KEPT_NS = 1000u * 1000 * 1000;

static uint64_t files_bytes(const cgroup_level_t *level) {
    uint64_t now = hak_os_now_ns();
    if (now < hak_load_relaxed(&hak_cgroup_files_due_ns) &&
        hak_load_relaxed(&hak_cgroup_files_level) == level) {
        return hak_load_relaxed(&hak_cgroup_files_bytes);
    }
    uint64_t bytes = level_files(level);
    hak_store_relaxed(&hak_cgroup_files_bytes, bytes);
    hak_store_relaxed(&hak_cgroup_files_level, level);
    hak_store_relaxed(&hak_cgroup_files_due_ns, now + FILES_KEPT_NS);
    return bytes;
}

static uint64_t memory_room(const hak_os_memory_t *memory) {
    return memory->limit_bytes > memory->used_bytes ? memory->limit_bytes - memory->used_bytes : 0;
}

enum { MEMORY_NEAR_PART = 4 }; /* of the limit; more room than that need not be known exactly */

/* Limit and use of one group; false: it has no limit any more, or its files are lost. */
static bool level_memory(const cgroup_level_t *level, hak_os_memory_t *memory) {
    uint64_t high = UINT64_MAX, max = UINT64_MAX;
    bool is_limited = level_number(level, GROUP_HIGH, &high);
    is_limited = level_number(level, GROUP_MAX, &max) || is_limited;
    if (!is_limited || !level_number(level, GROUP_CURRENT, &memory->used_bytes)) {
        return false;
    }
    memory->limit_bytes = high < max ? high : max;
    if (memory_room(memory) < memory->limit_bytes / MEMORY_NEAR_PART) {
        uint64_t files = files_bytes(level);
        memory->used_bytes -= files < memory->used_bytes ? files : memory->used_bytes;
    }
    return true;
}

/* Of the kept levels that with least room. false: one says nothing, or there is none. */
static bool levels_read(hak_os_memory_t *least, bool *is_limited) {
    hak_os_memory_t memory;
    uint32_t count = hak_load_relaxed(&hak_cgroup_level_count), told = 0;
    *is_limited = false;
    for (unsigned i = 0; i < count; i++) {
        if (level_memory(&hak_cgroup_levels[i], &memory)) {
            told++;
            if (!*is_limited || memory_room(&memory) < memory_room(least)) {
                *least = memory;
                *is_limited = true;
            }
        }
    }
    return count != 0 && told == count;
}

bool hak_os_memory_limit(hak_os_memory_t *memory) {
    hak_os_memory_t least;
    bool is_limited;
    if (!levels_read(&least, &is_limited) && levels_renew()) {
        (void)levels_read(&least, &is_limited);
    }
    if (is_limited) {
        *memory = least;
    }
    return is_limited;
}
