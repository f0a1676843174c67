/* SPDX-License-Identifier: MIT
 *
 * Names of the C library beside the family (family.c), and the hit path of operator new. */
#include "base/bits.h"
#include "base/knobs.h"
#include "front/fast.h"
#include "os/os.h"
#include "stat/stat.h"

#if HAK_OVERRIDE

#include <errno.h>
#include <stdio.h>

/* What glibc's malloc.h declares, with which programs are compiled; musl's lacks it. */
enum { M_MXFAST = 1, M_TRIM_THRESHOLD = -1, M_ARENA_MAX = -8 };
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo {
    int figure[10]; /* the same */
};
_Static_assert(sizeof(struct mallinfo2) / sizeof(size_t) == sizeof(struct mallinfo) / sizeof(int),
               "the same figures");

size_t malloc_usable_size(void *block);
int mallopt(int parameter, int value);
struct mallinfo2 mallinfo2(void);
struct mallinfo mallinfo(void);
void malloc_stats(void);
int malloc_info(int options, FILE *stream);

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

/* Serves the parameter that applies here: the program decides how much stays, also while idle.
 * Ignores those of other designs, which programs set blindly; their numbers are consecutive. */
HAK_EXPORT int mallopt(int parameter, int value) {
    if (parameter == M_TRIM_THRESHOLD) {
        size_t bytes = value < 0 ? SIZE_MAX / 2 : (size_t)value;
        hak_life_process_start();
        hak_store_relaxed(&hak_knobs.retain_min_bytes, bytes);
        hak_store_relaxed(&hak_knobs.retain_idle_bytes, bytes);
    }
    return parameter == M_MXFAST || (parameter <= M_TRIM_THRESHOLD && parameter >= M_ARENA_MAX);
}

/* The C library's terms: arena is all memory without a mapping of its own, uordblks its used part,
 * fordblks the rest; fsmblks: thread caches; keepcost: whole units that malloc_trim would purge. */
static void fill_mallinfo(void *context, hak_snapshot_t *snapshot) {
    struct mallinfo2 *info = context;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        info->ordblks += snapshot->sc[sc].free;
        info->smblks += snapshot->sc[sc].cached;
    }
    info->arena = snapshot->mapped_bytes - snapshot->huge_bytes;
    info->hblks = snapshot->huge_count;
    info->hblkhd = snapshot->huge_bytes;
    info->fsmblks = snapshot->cached_bytes;
    info->uordblks = snapshot->live_bytes + snapshot->large_bytes;
    info->fordblks = info->arena - info->uordblks;
    info->keepcost = snapshot->unused_dirty_bytes + snapshot->huge_cached_bytes;
}

HAK_EXPORT struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 info = {0};
    hak_stat_use(fill_mallinfo, &info);
    return info;
}

HAK_EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo narrow;
    for (size_t i = 0; i < sizeof narrow / sizeof(int); i++) {
        narrow.figure[i] = (int)hak_least(((const size_t *)&wide)[i], __INT_MAX__);
    }
    return narrow;
}

static void put_error(void *unused, const char *data, size_t length) {
    (void)unused;
    hak_os_write(2, data, length);
}

HAK_EXPORT void malloc_stats(void) {
    const hak_sink_t sink = {.put = put_error};
    hak_stat_write_text(&sink);
}

static void put_stream(void *stream, const char *data, size_t length) {
    fwrite(data, 1, length, stream);
}

HAK_EXPORT int malloc_info(int options, FILE *stream) {
    if (options != 0) {
        return EINVAL;
    }
    const hak_sink_t sink = {.put = put_stream, .context = stream};
    hak_stat_write_xml(&sink);
    return 0;
}

#endif
