/* SPDX-License-Identifier: MIT
 *
 * Names of the C library beside the family (family.c), and the hit path of operator new. */
#include "base/knobs.h"
#include "front/fast.h"
#include "stat/stat.h"

#if HAK_OVERRIDE

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

/* Hit path of operator new for entry_cxx.cpp, which also has the cold exit, as that throws. A
 * program without C++ leaves that file out of the archive. */
HAK_HIDDEN extern void *hak_new_rest(size_t size) HAK_WEAK;
HAK_HIDDEN extern void *hak_new_quiet_rest(size_t size) HAK_WEAK;
void *hak_new(size_t size);
void *hak_new_quiet(size_t size, const void *quiet);

HAK_HOT void *hak_new(size_t size) {
    void *block = HAK_LIKELY(size <= HAK_SC_SMALL_SIZE) ? hak_fast_pop(size) : NULL;
    return HAK_LIKELY(block != NULL) ? block : hak_new_rest(size);
}

void *hak_new_quiet(size_t size, const void *quiet) {
    (void)quiet;
    void *block = HAK_LIKELY(size <= HAK_SC_SMALL_SIZE) ? hak_fast_pop(size) : NULL;
    return HAK_LIKELY(block != NULL) ? block : hak_new_quiet_rest(size);
}

HAK_EXPORT size_t malloc_usable_size(void *block) {
    return hak_usable_size(block);
}

/* The program decides how much stays, also while idle. */
static void set_trim_threshold(size_t bytes) {
    hak_life_process_start();
    hak_store_relaxed(&hak_knobs.retain_min_bytes, bytes);
    hak_store_relaxed(&hak_knobs.retain_idle_bytes, bytes);
}

/* Serves parameters that apply here; ignores those of other designs: programs set them blindly. */
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

/* The C library's terms: arena is all memory without a mapping of its own, uordblks its used part,
 * fordblks the rest; fsmblks: thread caches; keepcost: whole units that malloc_trim would purge. */
static void fill_mallinfo(void *context, const hak_snapshot_t *snapshot) {
    struct mallinfo2 *info = context;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        info->ordblks += snapshot->sc[sc].free;
        info->smblks += snapshot->sc[sc].cached + snapshot->sc[sc].outbox;
    }
    info->arena = snapshot->mapped_bytes - snapshot->huge_bytes;
    info->hblks = snapshot->huge_count;
    info->hblkhd = snapshot->huge_bytes;
    info->fsmblks = snapshot->cached_bytes + snapshot->outbox_bytes;
    info->uordblks = snapshot->live_bytes + snapshot->large_bytes;
    info->fordblks = info->arena - info->uordblks;
    info->keepcost = snapshot->unused_dirty_bytes + snapshot->huge_cached_bytes;
}

HAK_EXPORT struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 info = {0};
    hak_stat_use(fill_mallinfo, &info);
    return info;
}

static int clamp_int(size_t value) {
    return value > (size_t)__INT_MAX__ ? __INT_MAX__ : (int)value;
}

HAK_EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = clamp_int(wide.arena),
        .ordblks = clamp_int(wide.ordblks),
        .smblks = clamp_int(wide.smblks),
        .hblks = clamp_int(wide.hblks),
        .hblkhd = clamp_int(wide.hblkhd),
        .fsmblks = clamp_int(wide.fsmblks),
        .uordblks = clamp_int(wide.uordblks),
        .fordblks = clamp_int(wide.fordblks),
        .keepcost = clamp_int(wide.keepcost),
    };
}

HAK_EXPORT void malloc_stats(void) {
    hak_stat_print(HAK_REPORT_TEXT, 2);
}

static void put_stream(void *stream, const char *data, size_t length) {
    fwrite(data, 1, length, stream);
}

HAK_EXPORT int malloc_info(int options, FILE *stream) {
    if (options != 0) {
        return EINVAL;
    }
    const hak_sink_t sink = {.put = put_stream, .context = stream};
    hak_stat_report(HAK_REPORT_XML, &sink);
    return 0;
}

#endif
