/* SPDX-License-Identifier: MIT
 *
 * Double of the operating system in the core that tests link with (HAK_FAULT): calls that fail by a
 * script, files with the content a test wants, and a clock that obeys. */
#include "os_fault.h"
#include "base/atomics.h"
#include "os/kept.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

typedef struct os_fault_plan {
    uint64_t first; /* [atomic] number of the first call that fails */
    uint64_t end;   /* [atomic] number of the first call that succeeds again */
    uint64_t calls; /* [atomic] */
} os_fault_plan_t;

static os_fault_plan_t os_fault_plans[HAK_OS_CALL_COUNT];
static hak_os_fault_files_t *os_fault_files; /* [atomic] NULL: none */
static uint64_t os_fault_ahead_ns;           /* [atomic] of the real clock */
static uint64_t os_fault_stopped_ns;         /* [atomic] 0: it goes on */
static uint64_t os_fault_touch_ns;           /* [atomic] */
static uint64_t os_fault_late;               /* [atomic] */
static HAK_TLS uint64_t os_fault_cpu;        /* [thread] CPU + 1; 0: the real one */
static bool os_fault_always;                 /* [atomic] */

void hak_os_fault_plan(hak_os_call_t call, uint64_t first, uint64_t count) {
    os_fault_plan_t *plan = &os_fault_plans[call];
    uint64_t now = hak_load_relaxed(&plan->calls);
    uint64_t start = first > UINT64_MAX - now ? UINT64_MAX : now + first;
    uint64_t end = count > UINT64_MAX - start ? UINT64_MAX : start + count;
    hak_store_relaxed(&plan->first, start);
    hak_store_relaxed(&plan->end, end);
}

void hak_os_fault_clear(void) {
    hak_add_relaxed(&hak_os_unmap_count, 1); /* the kernel has room again */
    for (unsigned i = 0; i < HAK_OS_CALL_COUNT; i++) {
        hak_store_relaxed(&os_fault_plans[i].first, 0);
        hak_store_relaxed(&os_fault_plans[i].end, 0);
        hak_store_relaxed(&os_fault_plans[i].calls, 0);
    }
    hak_store_relaxed(&os_fault_stopped_ns, 0);
    hak_store_relaxed(&os_fault_touch_ns, 0);
    hak_store_relaxed(&os_fault_late, 0);
}

uint64_t hak_os_fault_calls(hak_os_call_t call) {
    return hak_load_relaxed(&os_fault_plans[call].calls);
}

bool hak_os_fault_hit(hak_os_call_t call) {
    os_fault_plan_t *plan = &os_fault_plans[call];
    uint64_t number = hak_add_relaxed(&plan->calls, 1);
    return number >= hak_load_relaxed(&plan->first) && number < hak_load_relaxed(&plan->end);
}

void hak_os_fault_stop_clock(void) {
    hak_store_relaxed(&os_fault_stopped_ns, hak_os_now_ns());
}

/* What was skipped stays skipped: the clock never goes back. */
void hak_os_fault_advance_clock(uint64_t ns) {
    hak_add_relaxed(&os_fault_ahead_ns, ns);
    hak_add_relaxed(&os_fault_stopped_ns, ns);
}

void hak_os_fault_slow_touches(uint64_t ns) {
    hak_store_relaxed(&os_fault_touch_ns, ns);
}

uint64_t hak_os_fault_late_touches(void) {
    return hak_load_relaxed(&os_fault_late);
}

void hak_os_fault_touch(const void *block) {
    unsigned char is_resident = 0;
    void *page = (void *)((uintptr_t)block & ~(uintptr_t)(hak_os_page_bytes() - 1));
    if (mincore(page, 1, &is_resident) == 0 && (is_resident & 1) != 0) {
        hak_add_relaxed(&os_fault_late, 1);
    }
    hak_os_fault_advance_clock(hak_load_relaxed(&os_fault_touch_ns));
}

void hak_os_fault_huge_pages_always(bool is_on) {
    hak_store_relaxed(&os_fault_always, is_on);
}

void hak_os_fault_mapped(void *base, size_t bytes) {
    if (hak_load_relaxed(&os_fault_always)) {
        hak_syscall(SYS_madvise, (long)base, (long)bytes, MADV_HUGEPAGE, 0, 0, 0);
    }
}

static hak_os_fault_reports_t *os_fault_reports; /* [atomic] */

void hak_os_fault_reports(hak_os_fault_reports_t *reports) {
    hak_store_relaxed(&os_fault_reports, reports);
}

bool hak_os_fault_report(const char *data, size_t length) {
    hak_os_fault_reports_t *reports = hak_load_relaxed(&os_fault_reports);
    return reports != NULL && reports(data, length);
}

uint64_t hak_os_fault_clock(uint64_t now_ns) {
    uint64_t stopped = hak_load_relaxed(&os_fault_stopped_ns);
    return stopped != 0 ? stopped : now_ns + hak_load_relaxed(&os_fault_ahead_ns);
}

void hak_os_fault_run_on(uint32_t cpu) {
    os_fault_cpu = (uint64_t)cpu + 1;
}

uint32_t hak_os_fault_cpu(uint32_t cpu) {
    return os_fault_cpu != 0 ? (uint32_t)(os_fault_cpu - 1) : cpu;
}

enum { KEPT_FILES = 64, KEPT_PATH_BYTES = 600, KEPT_FIRST = 2 };

static char os_fault_kept[KEPT_FILES][KEPT_PATH_BYTES]; /* [one thread] paths; "": not open */
static uint32_t os_fault_kept_count;                    /* [atomic] ever kept */

void hak_os_fault_files(hak_os_fault_files_t *files) {
    for (unsigned i = 0; i < KEPT_FILES; i++) {
        os_fault_kept[i][0] = '\0';
    }
    hak_store_release(&os_fault_files, files); /* pairs FILES */
}

extern bool hak_cgroup_is_begun;
extern uint32_t hak_cgroup_level_count;

void hak_os_fault_groups_anew(void) {
    hak_store_relaxed(&hak_cgroup_is_begun, false);
    hak_store_relaxed(&hak_cgroup_level_count, 0);
}

bool hak_os_fault_file(const char *path, char *buffer, size_t capacity, size_t *length) {
    hak_os_fault_files_t *files = hak_load_acquire(&os_fault_files); /* pairs FILES */
    size_t all = files != NULL ? files(path, buffer, capacity) : HAK_OS_FAULT_REAL;
    if (all == HAK_OS_FAULT_REAL) {
        return false;
    }
    *length = all < capacity ? all : capacity;
    return true;
}

bool hak_os_fault_has_files(void) {
    return hak_load_acquire(&os_fault_files) != NULL; /* pairs FILES */
}

int hak_os_fault_keep(const char *path) {
    char byte;
    size_t length;
    if (strlen(path) >= KEPT_PATH_BYTES || !hak_os_fault_file(path, &byte, 1, &length) ||
        length == 0) {
        return -1;
    }
    uint32_t index = hak_add_relaxed(&os_fault_kept_count, 1) % KEPT_FILES;
    memcpy(os_fault_kept[index], path, strlen(path) + 1);
    return -(int)index - KEPT_FIRST;
}

size_t hak_os_fault_kept(int number, char *buffer, size_t capacity) {
    size_t length = 0;
    const char *path = os_fault_kept[-(number + KEPT_FIRST)];
    bool is_open = path[0] != '\0' && hak_os_fault_file(path, buffer, capacity, &length);
    return is_open ? length : 0;
}

/* --- what is resident ------------------------------------------------------------------------- */

size_t hak_os_resident(const void *base, size_t bytes) {
    unsigned char is_in[256] = {0};
    size_t page = hak_os_page_bytes(), resident = 0;
    for (size_t at = 0; at < bytes; at += sizeof is_in * page) {
        size_t length = bytes - at < sizeof is_in * page ? bytes - at : sizeof is_in * page;
        long result = hak_syscall(SYS_mincore, (const char *)base + at, length, is_in);
        if (result == -ENOMEM) { /* unmapped in part */
            continue;
        }
        if (result != 0) {
            return SIZE_MAX;
        }
        for (size_t i = 0; i < (length + page - 1) / page; i++) {
            resident += (is_in[i] & 1u) * page;
        }
    }
    return resident < bytes ? resident : bytes;
}

uint64_t hak_os_resident_all(void) {
    char text[128];
    unsigned long pages = 0;
    text[hak_os_read_file("/proc/self/statm", text, sizeof text - 1)] = '\0';
    return sscanf(text, "%*u %lu", &pages) == 1 ? pages * hak_os_page_bytes() : 0;
}
