/* SPDX-License-Identifier: MIT
 *
 * The standard names: what a preloaded or linked program calls. */
#include "api/api.h"
#include "base/knobs.h"
#include "stat/stat.h"

#if HAK_OVERRIDE

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

HAK_EXPORT void free_sized(void *block, size_t size);
HAK_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);
HAK_EXPORT void *reallocf(void *block, size_t size);
HAK_EXPORT void *recallocarray(void *block, size_t old_count, size_t count, size_t size);
HAK_EXPORT void freezero(void *block, size_t size);

#define HAK_NAME(name) name
#include "api/family.def"
#undef HAK_NAME

HAK_EXPORT size_t malloc_usable_size(void *block) {
    return hak_usable_size(block);
}

HAK_EXPORT void cfree(void *block);
HAK_EXPORT void cfree(void *block) {
    hak_fast_free(block);
}

/* The program knows best what stays, however long nobody needs it. */
static void set_trim_threshold(size_t bytes) {
    hak_life_process_start();
    hak_store_relaxed(&hak_knobs.retain_min_bytes, bytes);
    hak_store_relaxed(&hak_knobs.retain_idle_bytes, bytes);
}

/* Parameters that mean something here take effect; those that only tune another design are accepted
 * and ignored, as programs set them without looking. */
HAK_EXPORT int mallopt(int parameter, int value) {
    switch (parameter) {
    case M_TRIM_THRESHOLD:
        set_trim_threshold(value < 0 ? SIZE_MAX / 2 : (size_t)value);
        return 1;
    case M_MXFAST:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
    default:
        return 0;
    }
}

HAK_EXPORT struct mallinfo2 mallinfo2(void) {
    hak_snapshot_t snapshot;
    hak_stat_collect(&snapshot);
    size_t free_blocks = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        free_blocks += snapshot.sc[sc].free;
    }
    return (struct mallinfo2){
        .arena = snapshot.mapped_bytes - snapshot.huge_bytes,
        .ordblks = free_blocks,
        .hblks = snapshot.huge_count,
        .hblkhd = snapshot.huge_bytes,
        .uordblks = snapshot.in_use_bytes - snapshot.huge_bytes,
        .fordblks = snapshot.mapped_bytes - snapshot.in_use_bytes,
        .keepcost = snapshot.unused_dirty_bytes + snapshot.huge_cached_bytes,
    };
}

static int clamp_int(size_t value) {
    return value > (size_t)__INT_MAX__ ? __INT_MAX__ : (int)value;
}

HAK_EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = clamp_int(wide.arena),
        .ordblks = clamp_int(wide.ordblks),
        .hblks = clamp_int(wide.hblks),
        .hblkhd = clamp_int(wide.hblkhd),
        .uordblks = clamp_int(wide.uordblks),
        .fordblks = clamp_int(wide.fordblks),
        .keepcost = clamp_int(wide.keepcost),
    };
}

HAK_EXPORT void malloc_stats(void) {
    hak_snapshot_t snapshot;
    hak_stat_collect(&snapshot);
    hak_stat_report_text(2, &snapshot);
}

static void put_stream(void *stream, const char *data, size_t length) {
    fwrite(data, 1, length, stream);
}

HAK_EXPORT int malloc_info(int options, FILE *stream) {
    if (options != 0) {
        return EINVAL;
    }
    hak_snapshot_t snapshot;
    hak_stat_collect(&snapshot);
    hak_stat_report_xml(put_stream, stream, &snapshot);
    return 0;
}

#endif
