/* SPDX-License-Identifier: MIT
 *
 * mallctl: checks access and sizes, reads figures and settings, and changes those that have an
 * equal here. */
#include "compat/control.h"
#include "base/bits.h"
#include "base/knobs.h"
#include "compat/names.h"
#include "compat/numbers.h"
#include "compat/prof.h"
#include "compat/thread.h"
#include "conf/conf.h"
#include "front/event.h"
#include "front/fast.h"
#include "large/large.h"
#include "os/lock.h"
#include "os/os.h"
#include "reclaim/reclaim.h"

#include <errno.h>
#include <string.h>

enum { NAMES_MOST = 256, CONTROL_UNSET = -2 };

typedef struct control_call {
    const hak_je_row_t *row;
    size_t number[HAK_NAME_NUMBERS]; /* of the name */
    void *oldp;
    size_t *oldlenp;
    const void *newp;
    size_t newlen;
} control_call_t;

static HAK_LARGE_STATE(4) hak_compat_figures_t control_figures; /* [atomic] */
static HAK_LARGE_STATE(4) bool control_ignored[NAMES_MOST];     /* [atomic] made, without effect */
static HAK_LARGE_STATE(4) uint64_t control_said[NAMES_MOST]; /* [atomic] such a setting's value */
static uint64_t control_epoch;                               /* [atomic] 0: no figures yet */
static int64_t control_decay_ms = CONTROL_UNSET;             /* [atomic] */
static HAK_TLS struct {
    uint16_t arena;
    bool has_no_tcache;
} compat_thread; /* what the thread set: it reads that again */

static void ignore(const hak_je_row_t *row) {
    hak_store_relaxed(&control_ignored[row - hak_je_rows], true);
}

const char *hak_compat_ignored(unsigned *at) {
    for (; hak_je_rows[*at].name[0] != '\0'; ++*at) {
        if (hak_load_relaxed(&control_ignored[*at])) {
            return hak_je_rows[(*at)++].name;
        }
    }
    return NULL;
}

/* --- actions ---------------------------------------------------------------------------------- */

/* Whether the thread is outside of the allocator; else a signal handler of it calls. */
static bool is_outside(void) {
    hak_life_process_start();
    const hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return hak_lock_holds_none() && (hak_tcache_is_empty(tcache) || tcache->changing == 0);
}

static int flush(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!is_outside()) {
        return EAGAIN;
    }
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_flush(tcache);
        hak_owner_collect();
        hak_wanted_serve();
    }
    return 0;
}

/* The work follows the heap: above so many superslabs, 4 GiB, it takes 1/20 of the time at most. */
enum { REFRESH_ALWAYS = 1024, REFRESH_PAUSES = 20 };

static int refresh(void) {
    static uint64_t due_ns; /* [atomic] */
    if (!is_outside()) {
        return EAGAIN;
    }
    hak_lock_acquire(HAK_LOCK_COMPAT);
    uint64_t now = hak_os_now_ns();
    if (now >= hak_load_relaxed(&due_ns)) {
        hak_span_stats_t span;
        hak_compat_refresh(&control_figures);
        hak_span_stats(&span);
        uint64_t pause = span.superslab_count > REFRESH_ALWAYS ? REFRESH_PAUSES : 0;
        hak_store_relaxed(&due_ns, now + (hak_os_now_ns() - now) * pause);
        hak_single_writer_add(&control_epoch, 1);
    }
    hak_lock_release(HAK_LOCK_COMPAT);
    return 0;
}

const hak_compat_figures_t *hak_compat_figures(void) {
    if (hak_load_relaxed(&control_epoch) == 0) {
        (void)refresh();
    }
    return &control_figures;
}

static int purge(bool is_due) {
    if (!is_outside()) {
        return EAGAIN;
    }
    is_due ? hak_event_pass_time() : (void)hak_reclaim_trim(0);
    return 0;
}

static int64_t decay_ms(void) {
    int64_t ms = hak_load_relaxed(&control_decay_ms);
    hak_life_process_start();
    return ms != CONTROL_UNSET ? ms : hak_jemalloc_conf.decay_ms;
}

/* -1: nothing is returned; 0: all at once; else by the options in force, as the keep times are
 * learned. */
static int decay_set(int64_t ms) {
    static uint64_t before[2]; /* [atomic] retain_min, retain_idle */
    uint64_t now[2] = {0};
    if (ms < -1 || !is_outside()) {
        return ms < -1 ? EFAULT : EAGAIN;
    }
    hak_lock_acquire(HAK_LOCK_COMPAT);
    if (decay_ms() > 0) {
        (void)hak_conf_get("retain_min", &now[0]);
        (void)hak_conf_get("retain_idle", &now[1]);
        hak_store_relaxed(&before[0], now[0]);
        hak_store_relaxed(&before[1], now[1]);
    } else if (hak_load_relaxed(&control_decay_ms) == CONTROL_UNSET) {
        hak_store_relaxed(&before[0], hak_jemalloc_conf.retain_min);
        hak_store_relaxed(&before[1], hak_jemalloc_conf.retain_idle);
    }
    size_t bytes = ms == 0 ? 0 : SIZE_MAX / 2;
    hak_store_relaxed(&hak_knobs.retain_min_bytes, ms <= 0 ? bytes : hak_load_relaxed(&before[0]));
    hak_store_relaxed(&hak_knobs.retain_idle_bytes, ms <= 0 ? bytes : hak_load_relaxed(&before[1]));
    hak_store_relaxed(&control_decay_ms, ms);
    hak_lock_release(HAK_LOCK_COMPAT);
    return ms == 0 ? purge(false) : 0;
}

static int dss_set(const hak_je_row_t *row, const char *text) {
    bool is_known =
        text != NULL && (strcmp(text, "disabled") == 0 || strcmp(text, "primary") == 0 ||
                         strcmp(text, "secondary") == 0);
    if (is_known) {
        ignore(row);
    }
    return is_known ? 0 : EINVAL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t bin_value(const control_call_t *call) {
    unsigned bin = (unsigned)call->number[call->row->kind >= HAK_JE_CURREGS];
    if (call->row->kind < HAK_JE_CURREGS) {
        size_t bytes = call->row->kind == HAK_JE_BIN_REGIONS ? 1 : hak_je_bin_bytes(bin);
        return call->row->kind == HAK_JE_BIN_SIZE ? bytes : bytes * hak_je_bin_regions(bin);
    }
    const uint64_t *figure = &hak_compat_figures()->bin[bin].curregs;
    return hak_compat_is_heap(call->number[0])
               ? hak_load_relaxed(figure + (call->row->kind - HAK_JE_CURREGS))
               : 0;
}

/* The arena of the block that *newp names; an error if it is none of ours. */
static int lookup(const control_call_t *call) {
    const void *block;
    memcpy(&block, call->newp, sizeof block);
    uint32_t low = hak_pagemap_get(hak_pagemap_base(), block) & HAK_KIND_MASK;
    return low == 0 || low == HAK_KIND_VACANT ? EINVAL : 0;
}

static uint64_t figure_value(const control_call_t *call) {
    bool is_of_arena = strchr(call->row->name, '#') != NULL;
    const uint64_t *figures = (const uint64_t *)hak_compat_figures();
    return is_of_arena && !hak_compat_is_heap(call->number[0])
               ? 0
               : hak_load_relaxed(figures + call->row->value / sizeof *figures);
}

static uint64_t tally_value(unsigned kind) {
    const hak_tally_t *tally = hak_compat_tally(is_outside());
    bool is_freed = kind == HAK_JE_DEALLOCATED || kind == HAK_JE_DEALLOCATEDP;
    const uint64_t *figure = is_freed ? &tally->deallocated : &tally->allocated;
    return kind >= HAK_JE_ALLOCATEDP ? (uintptr_t)figure : *figure;
}

static uint64_t conf_value(const hak_je_row_t *row) {
    hak_life_process_start();
    const uint64_t *field = (const uint64_t *)&hak_jemalloc_conf + row->value / sizeof *field;
    return row->kind == HAK_JE_FIRST_PREFIX ? (uintptr_t)hak_jemalloc_conf.prefix : *field;
}

static uint64_t other_value(const control_call_t *call) {
    unsigned kind = call->row->kind;
    if (kind == HAK_JE_KIND_AT_START || kind == HAK_JE_FIRST_PREFIX) {
        return conf_value(call->row);
    }
    if (kind == HAK_JE_KIND_SETTING &&
        hak_load_relaxed(&control_ignored[call->row - hak_je_rows])) {
        return hak_load_relaxed(&control_said[call->row - hak_je_rows]);
    }
    return kind >= HAK_JE_PROF_ACTIVE ? hak_compat_prof_read(kind)
           : kind >= HAK_JE_ALLOCATED ? tally_value(kind)
           : kind >= HAK_JE_BIN_SIZE  ? bin_value(call)
                                      : (uint64_t)call->row->value;
}

static int value_read(const control_call_t *call, uint64_t *value) {
    static const char version[] = HAK_COMPAT_VERSION;
    switch ((hak_je_kind_t)call->row->kind) {
    case HAK_JE_KIND_TEXT:
        *value = (uintptr_t)call->row->text;
        break;
    case HAK_JE_KIND_FIGURE:
        *value = figure_value(call);
        break;
    case HAK_JE_VERSION:
        *value = (uintptr_t)version;
        break;
    case HAK_JE_EPOCH:
        (void)hak_compat_figures();
        *value = hak_load_relaxed(&control_epoch);
        break;
    case HAK_JE_BACKGROUND:
        hak_life_process_start();
        *value = hak_load_relaxed(&hak_knobs.scavenger);
        break;
    case HAK_JE_THREAD_ARENA:
        *value = compat_thread.arena;
        break;
    case HAK_JE_TCACHE_ENABLED:
        *value = !compat_thread.has_no_tcache;
        break;
    case HAK_JE_TCACHE_CREATE:
        return hak_compat_tcache_create(value);
    case HAK_JE_CREATE:
        return hak_compat_arena_create(value);
    case HAK_JE_LOOKUP:
        return lookup(call);
    case HAK_JE_PAGE:
        hak_life_process_start();
        *value = hak_os_page_bytes();
        break;
    case HAK_JE_NARENAS:
        *value = hak_compat_arenas();
        break;
    case HAK_JE_DECAY:
        *value = (uint64_t)decay_ms();
        break;
    case HAK_JE_DSS:
        *value = (uintptr_t) "disabled";
        break;
    case HAK_JE_HOOKS:
        return EFAULT;
    case HAK_JE_LEXTENT_SIZE:
        *value = hak_lextent_bytes((unsigned)call->number[0]);
        break;
    default:
        *value = other_value(call);
    }
    return 0;
}

/* --- changing --------------------------------------------------------------------------------- */

static int thread_arena_set(const hak_je_row_t *row, uint64_t arena) {
    if (!hak_compat_is_arena(arena)) {
        return EFAULT;
    }
    compat_thread.arena = (uint16_t)arena;
    if (arena != 0) {
        ignore(row);
    }
    return 0;
}

static int tcache_enabled_set(const hak_je_row_t *row, bool is_enabled) {
    compat_thread.has_no_tcache = !is_enabled;
    if (!is_enabled) {
        ignore(row);
    }
    return is_enabled ? 0 : flush();
}

static int tcache_number_end(uint64_t tcache, bool is_destroyed) {
    if (tcache > UINT32_MAX || !hak_compat_is_tcache((unsigned)tcache)) {
        return EFAULT;
    }
    int error = flush();
    if (error == 0 && is_destroyed) {
        hak_compat_tcache_end((unsigned)tcache);
    }
    return error;
}

/* Acts, with the new value where the row has one. */
static int value_change(const control_call_t *call, uint64_t value) {
    const hak_je_row_t *row = call->row;
    if (row->kind >= HAK_JE_PROF_ACTIVE) {
        return is_outside() ? hak_compat_prof_change(row->kind, call->newp != NULL ? &value : NULL)
                            : EAGAIN;
    }
    switch ((hak_je_kind_t)row->kind) {
    case HAK_JE_KIND_SETTING:
        if (strstr(row->name, "decay_ms") != NULL && (int64_t)value < -1) {
            return EFAULT;
        }
        hak_store_relaxed(&control_said[row - hak_je_rows], value);
        ignore(row);
        return 0;
    case HAK_JE_BACKGROUND:
        hak_life_process_start();
        return hak_conf_set("scavenger", value != 0 ? "1" : "0") == HAK_CONF_DONE ? 0 : EPERM;
    case HAK_JE_THREAD_ARENA:
        return thread_arena_set(row, value);
    case HAK_JE_TCACHE_ENABLED:
        return tcache_enabled_set(row, value != 0);
    case HAK_JE_TCACHE_FLUSH:
        return flush();
    case HAK_JE_TCACHE_FLUSH_ONE:
    case HAK_JE_TCACHE_DESTROY:
        return tcache_number_end(value, row->kind == HAK_JE_TCACHE_DESTROY);
    case HAK_JE_DECAY:
        return decay_set((int64_t)value);
    case HAK_JE_MAINTAIN:
    case HAK_JE_PURGE:
        return purge(row->kind == HAK_JE_MAINTAIN);
    case HAK_JE_DSS:
        return dss_set(row, (const char *)(uintptr_t)value);
    case HAK_JE_RESET:
    case HAK_JE_HOOKS:
        return EFAULT;
    default:
        return 0;
    }
}

/* --- mallctl ---------------------------------------------------------------------------------- */

/* As much as fits of a value's bytes. */
static int put_old(const control_call_t *call, uint64_t value) {
    size_t bytes = call->row->bytes, has;
    if (call->oldp == NULL || call->oldlenp == NULL) {
        return 0;
    }
    memcpy(&has, call->oldlenp, sizeof has);
    size_t copied = hak_least(has, bytes);
    memcpy(call->oldp, &value, copied); /* little-endian */
    memcpy(call->oldlenp, &copied, sizeof copied);
    return has == bytes ? 0 : EINVAL;
}

static int query(const control_call_t *call) {
    bool is_batch = call->row->kind == HAK_JE_BATCH_QUERY;
    size_t count = call->newlen / sizeof(void *);
    size_t each = is_batch ? 3 * sizeof(size_t) : sizeof(hak_utilization_t);
    if (call->oldp == NULL || call->oldlenp == NULL || call->newp == NULL || count == 0 ||
        (!is_batch && count != 1) || call->newlen % sizeof(void *) != 0 ||
        *call->oldlenp != count * each) {
        return EINVAL;
    }
    const hak_compat_figures_t *figures = is_batch ? NULL : hak_compat_figures();
    for (size_t i = 0; i < count; i++) {
        const void *block;
        hak_utilization_t out;
        memcpy(&block, (const char *)call->newp + i * sizeof block, sizeof block);
        hak_compat_utilization(block, figures, &out);
        memcpy((char *)call->oldp + i * each, is_batch ? (void *)&out.free : (void *)&out, each);
    }
    return 0;
}

/* What of the arguments the name does not allow. */
static int call_check(const control_call_t *call, size_t new_bytes) {
    unsigned access = call->row->access;
    if (((access & HAK_JE_R) == 0 && (call->oldp != NULL || call->oldlenp != NULL)) ||
        ((access & HAK_JE_W) == 0 && (call->newp != NULL || call->newlen != 0))) {
        return EPERM;
    }
    bool lacks_new = (access & HAK_JE_MUST_WRITE) != 0 && call->newp == NULL;
    if (lacks_new || (call->newp != NULL && call->newlen != new_bytes)) {
        return EINVAL;
    }
    if ((access & HAK_JE_MUST_READ) != 0 &&
        (call->oldp == NULL || call->oldlenp == NULL || *call->oldlenp != call->row->bytes)) {
        if (call->oldlenp != NULL) {
            *call->oldlenp = 0;
        }
        return EINVAL;
    }
    return 0;
}

static int control(const control_call_t *call) {
    const hak_je_row_t *row = call->row;
    bool has_pointer = row->kind == HAK_JE_CREATE || row->kind == HAK_JE_LOOKUP;
    uint64_t new_value = 0, old = 0;
    if (row->kind == HAK_JE_QUERY || row->kind == HAK_JE_BATCH_QUERY) {
        return query(call);
    }
    int error = call_check(call, has_pointer ? sizeof(void *) : row->bytes);
    if (error == 0 && call->newp != NULL) {
        memcpy(&new_value, call->newp, call->newlen);
        /* figures are read before, and hooks refused */
        error = row->kind == HAK_JE_EPOCH                      ? refresh()
                : row->kind == HAK_JE_CREATE && new_value != 0 ? EFAULT
                                                               : 0;
    }
    if (error == 0 && ((row->access & HAK_JE_R) != 0)) {
        error = value_read(call, &old);
        error = error == 0 ? put_old(call, old) : error;
    }
    bool acts = call->newp != NULL || row->access == HAK_JE_N || row->kind >= HAK_JE_PROF_DUMP;
    return error == 0 && acts ? value_change(call, new_value) : error;
}

int hak_je_mallctlbymib(const size_t *mib, size_t miblen, void *oldp, size_t *oldlenp, void *newp,
                        size_t newlen) {
    control_call_t call = {
        .oldp = oldp, .oldlenp = oldlenp, .newp = newp, .newlen = newlen, .number = {0}};
    if (mib == NULL) {
        return EINVAL;
    }
    call.row = hak_je_row_find(mib, miblen, call.number);
    int saved = errno;
    int error = call.row == NULL ? ENOENT : control(&call);
    errno = saved;
    return error;
}

int hak_je_mallctl(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen) {
    size_t mib[8], length = 8;
    int error = hak_je_mallctlnametomib(name, mib, &length);
    return error == 0 ? hak_je_mallctlbymib(mib, length, oldp, oldlenp, newp, newlen) : error;
}

HAK_JE_ALIAS(mallctl)
HAK_JE_ALIAS(mallctlbymib)
