/* SPDX-License-Identifier: MIT
 *
 * Reads a profile that was kept in a file (kept.h), of a process that has ended or not. The file is
 * another's: nothing in it is taken for true. */
#include "kept.h"

#include "base/bits.h"
#include "memory.h"
#include "profile.h"
#include "reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MOST = (1 << 30) + OBS_KEPT_STORE }; /* with the most of profile_bytes */

static bool read_all(int fd, void *to, size_t bytes, size_t at) {
    while (bytes != 0) {
        ssize_t done = pread(fd, to, bytes, (off_t)at);
        if (done <= 0) {
            return false;
        }
        to = (char *)to + done;
        at += (size_t)done;
        bytes -= (size_t)done;
    }
    return true;
}

static int kept_open(const char *path) {
    char magic[sizeof((obs_kept_t *)0)->magic];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && read_all(fd, magic, sizeof magic, 0) &&
        memcmp(magic, OBS_KEPT_MAGIC, sizeof magic) == 0) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

bool obs_kept_is(const char *path) {
    int fd = kept_open(path);
    return fd >= 0 && close(fd) == 0;
}

static bool head_is_good(const obs_kept_t *kept, size_t bytes) {
    const hak_profile_store_t *store = &kept->store;
    return kept->site_bytes == sizeof(hak_profile_site_t) &&
           kept->sample_bytes == sizeof(hak_profile_sample_t) &&
           kept->frames == HAK_PROFILE_FRAMES && kept->lifetimes == HAK_PROFILE_LIFETIMES &&
           kept->modules_at < 2 && kept->modules_bytes[0] <= OBS_KEPT_MODULES &&
           kept->modules_bytes[1] <= OBS_KEPT_MODULES && bytes >= OBS_KEPT_STORE &&
           store->bytes <= bytes - OBS_KEPT_STORE && store->low <= store->high &&
           store->high <= store->bytes;
}

/* The sites, which follow one another; what contradicts itself ends them. */
static void sites_take(obs_copy_t *copy, char *store, uint32_t low) {
    size_t buckets = (size_t)copy->store.sample_mask + copy->store.site_mask + 2;
    size_t first = hak_align_up(buckets * sizeof(uint32_t), HAK_LINE_BYTES), at = first;
    while (at < low && low - at >= sizeof(hak_profile_site_t)) {
        const hak_profile_site_t *site = hak_profile_site_at(store, (uint32_t)at);
        if (site->depth > HAK_PROFILE_FRAMES || hak_profile_site_bytes(site->depth) > low - at) {
            break;
        }
        at += hak_profile_site_bytes(site->depth);
    }
    copy->store.base = store + hak_least(first, low);
    copy->site_bytes = first < low ? at - first : 0;
}

static void samples_take(obs_copy_t *copy, char *store) {
    uint32_t begin = (uint32_t)(copy->store.base - store);
    size_t at = hak_align_up(copy->store.high, 8), bytes = sizeof(hak_profile_sample_t);
    copy->sample = obs_take((copy->store.bytes / bytes + 1) * sizeof *copy->sample);
    for (; copy->sample != NULL && copy->store.bytes - at >= bytes && at <= copy->store.bytes;
         at += bytes) {
        hak_profile_sample_t *sample = hak_profile_sample_at(store, (uint32_t)at);
        if (sample->thread_id != 0 && sample->site >= begin &&
            sample->site - begin < copy->site_bytes) {
            sample->site -= begin;
            sample->companion = 0; /* its neighbours are gone */
            copy->now_ns = hak_most(copy->now_ns, sample->time_ns);
            copy->sample[copy->sample_count++] = sample;
        }
    }
    obs_copy_sort(copy);
}

static bool number_take(char **at, uintptr_t *number) {
    char *end;
    *number = (uintptr_t)strtoull(*at, &end, 16);
    bool is_good = end != *at && *end == ' ';
    *at = end + is_good;
    return is_good;
}

static void build_id_take(obs_module_t *module, const char *text, size_t length) {
    for (size_t i = 0; i + 1 < length && i / 2 < OBS_BUILD_ID_BYTES; i += 2) {
        const char two[3] = {text[i], text[i + 1], '\0'};
        module->build_id[i / 2] = (unsigned char)strtoul(two, NULL, 16);
        module->build_id_bytes = (uint32_t)(i / 2 + 1);
    }
}

enum { LINE_LEAST = 7 }; /* bytes of three numbers, each with a space, and the end */

/* A line each, whose end becomes that of its path. */
static void modules_take(obs_copy_t *copy, const char *list, size_t bytes) {
    copy->text = obs_take(bytes + 1);
    size_t most = bytes / LINE_LEAST + 1;
    copy->module = obs_take(most * sizeof *copy->module);
    if (copy->text == NULL || copy->module == NULL) {
        return;
    }
    memcpy(copy->text, list, bytes);
    for (char *at = copy->text, *end; (end = strchr(at, '\n')) != NULL && copy->module_count < most;
         at = end + 1) {
        obs_module_t module = {0};
        *end = '\0';
        if (number_take(&at, &module.start) && number_take(&at, &module.end) &&
            number_take(&at, &module.offset)) {
            size_t length = strcspn(at, " ");
            build_id_take(&module, at, at[0] == '-' ? 0 : length);
            obs_tame(at);
            module.path = (uint32_t)(at - copy->text + (ptrdiff_t)length + (at[length] == ' '));
            copy->module[copy->module_count++] = module;
        }
    }
}

static const char *kept_take(obs_copy_t *copy, char *data, size_t bytes) {
    static obs_kept_t head;
    static char doubt[160];
    memcpy(&head, data, sizeof head);
    if (head.version != OBS_KEPT_VERSION || !head_is_good(&head, bytes)) {
        return "the profile is of another version of hakmem, or damaged";
    }
    head.library[sizeof head.library - 1] = head.program[sizeof head.program - 1] = '\0';
    obs_tame(head.library);
    obs_tame(head.program);
    *copy = (obs_copy_t){.store = head.store,
                         .now_ns = hak_most(head.opened_ns, head.store.peak_time_ns),
                         .live_bytes = OBS_COPY_UNKNOWN,
                         .rate = head.store.rate,
                         .pid = head.pid,
                         .program = head.program,
                         .version = head.library};
    sites_take(copy, data + OBS_KEPT_STORE, head.store.low);
    samples_take(copy, data + OBS_KEPT_STORE);
    modules_take(copy, data + OBS_KEPT_HEAD + head.modules_at * (size_t)OBS_KEPT_MODULES,
                 head.modules_bytes[head.modules_at]);
    copy->wall_ns = head.opened_wall_ns + (copy->now_ns - head.opened_ns);
    uint64_t lost = hak_most(copy->sample_count, head.store.live) -
                    hak_least(copy->sample_count, head.store.live);
    snprintf(doubt, sizeof doubt, "uncertain: %llu samples changed as the process ended",
             (unsigned long long)lost);
    copy->doubt = lost != 0 ? doubt : NULL;
    return NULL;
}

const char *obs_kept_read(const char *path, obs_copy_t *copy) {
    static char *data;
    struct stat status;
    int fd = kept_open(path);
    const char *error = "it cannot be read";
    obs_drop(data);
    data = NULL;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return error;
    }
    size_t bytes = (size_t)status.st_size;
    if (bytes < OBS_KEPT_STORE || bytes > KEPT_MOST) {
        error = "the profile is cut off";
    } else if ((data = obs_take(bytes)) != NULL && read_all(fd, data, bytes, 0)) {
        error = kept_take(copy, data, bytes);
    }
    close(fd);
    return error;
}
