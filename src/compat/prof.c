/* SPDX-License-Identifier: MIT
 *
 * prof.*: jemalloc's names for the heap profiler, whose sampling may begin at any time. */
#include "compat/prof.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/observer.h"
#include "compat/compat.h"
#include "compat/names.h"
#include "conf/conf.h"
#include "front/hooks.h"
#include "life/life.h"
#include "os/os.h"
#include "profile/profile.h"

#include <errno.h>
#include <string.h>

enum { PROF_PATH_BYTES = 512 };

enum { PROF_LOG2_MOST = 40 };                               /* what the option profile_rate takes */
static uint64_t prof_sample_log2 = UINT64_MAX;              /* [atomic] as at the start */
static uint64_t prof_files;                                 /* [atomic] */
static HAK_LARGE_STATE(4) char prof_names[PROF_PATH_BYTES]; /* of files; [thread] that sets it */

static uint64_t sample_log2(void) {
    uint64_t log2 = hak_load_relaxed(&prof_sample_log2);
    hak_life_process_start();
    return log2 != UINT64_MAX ? log2 : hak_jemalloc_conf.sample_log2;
}

/* Without the profile's lock, which code that a signal handler interrupted may hold. */
static bool prof_is_active(void) {
    return hak_load_relaxed(&hak_profile_rate) != 0;
}

/* The observer's, looked for once: as sampling begins, as the process may change its root later.
 * NULL: it is not there, as a line has said. */
static hak_observer_dump_t *prof_writer(void) {
    enum { ABSENT = 1 };
    static uintptr_t known; /* [atomic] */
    uintptr_t writer = hak_load_relaxed(&known);
    if (writer == 0) {
        if (HAK_REPORT) {
            writer = (uintptr_t)hak_life_observer((void *)hak_observer_dump, "hak_observer_dump");
        }
        if (writer == 0) {
            hak_warn("prof.dump: %s", HAK_REPORT ? "needs " HAK_OBSERVER_LIBRARY
                                                 : "not in this build (HAK_REPORT=0)");
            writer = ABSENT;
        }
        hak_store_relaxed(&known, writer);
    }
    return writer != ABSENT ? (hak_observer_dump_t *)writer : NULL;
}

static int prof_activate(bool is_active) {
    HAK_TEXT(text, 24);
    if (is_active) {
        (void)prof_writer();
    }
    hak_text_uint(&text, is_active ? 1ull << hak_least(sample_log2(), PROF_LOG2_MOST) : 0);
    hak_conf_result_t result = hak_conf_set("profile_rate", hak_text_string(&text));
    hak_profile_follow(NULL);
    return result == HAK_CONF_DONE && prof_is_active() == is_active ? 0 : EPERM;
}

/* NULL: prefix.PID.N.mN.heap, as jemalloc calls a file that was asked for. */
static int prof_dump(const char *path) {
    HAK_TEXT(text, PROF_PATH_BYTES + 64);
    if (path == NULL) {
        uint64_t number = hak_add_relaxed(&prof_files, 1);
        hak_text_format(&text, "%s.%u.%l.m%l.heap",
                        prof_names[0] != '\0' ? prof_names : hak_jemalloc_conf.prefix,
                        hak_os_process_id(), number, number);
        path = hak_text_string(&text);
    }
    hak_observer_dump_t *dump = prof_writer();
    return dump != NULL && dump(path) ? 0 : EFAULT;
}

static int prof_reset(const uint64_t *log2) {
    if (log2 != NULL && *log2 > 40) {
        return EINVAL;
    }
    if (log2 != NULL) {
        hak_store_relaxed(&prof_sample_log2, *log2);
    }
    int error = log2 != NULL && prof_is_active() ? prof_activate(true) : 0;
    hak_profile_reset();
    return error;
}

static int prof_name_files(const char *prefix) {
    if (prefix == NULL || strlen(prefix) >= PROF_PATH_BYTES) {
        return EINVAL;
    }
    memcpy(prof_names, prefix, strlen(prefix) + 1);
    return 0;
}

uint64_t hak_compat_prof_read(unsigned kind) {
    return kind == HAK_JE_PROF_ACTIVE ? prof_is_active() : sample_log2();
}

int hak_compat_prof_change(unsigned kind, const uint64_t *value) {
    switch (kind) {
    case HAK_JE_PROF_ACTIVE:
        return prof_activate(*value != 0);
    case HAK_JE_PROF_DUMP:
        return prof_dump(value != NULL ? (const char *)(uintptr_t)*value : NULL);
    case HAK_JE_PROF_RESET:
        return prof_reset(value);
    case HAK_JE_PROF_PREFIX:
        return prof_name_files((const char *)(uintptr_t)*value);
    default:
        return 0;
    }
}
