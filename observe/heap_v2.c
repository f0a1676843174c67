/* SPDX-License-Identifier: MIT
 *
 * The profile as jemalloc's heap_v2, which jeprof reads. It divides a line by the chance of its
 * mean size at the rate of the first line; sites have samples of several sizes and rates. So the
 * sums have their weights, and the rate is one byte, which changes nothing. */
#include "profile.h"

#include "profile/chance.h"

typedef struct counts {
    uint64_t objects, bytes, all_objects, all_bytes;
} counts_t;

static counts_t counts_of(const hak_profile_site_t *site) {
    return (counts_t){hak_chance_whole(site->in_use.objects), hak_chance_whole(site->in_use.bytes),
                      hak_chance_whole(site->all.objects), hak_chance_whole(site->all.bytes)};
}

static void counts_put(const hak_sink_t *sink, const counts_t *counts) {
    hak_sink_format(sink, "  t*: %l: %l [%l: %l]\n", counts->objects, counts->bytes,
                    counts->all_objects, counts->all_bytes);
}

void obs_write_heap_v2(const hak_sink_t *sink, const hak_profile_copy_t *copy) {
    const hak_profile_site_t *site = NULL;
    counts_t sum = {0};
    while ((site = hak_profile_copy_next(copy, site)) != NULL) {
        counts_t counts = counts_of(site);
        sum.objects += counts.objects;
        sum.bytes += counts.bytes;
        sum.all_objects += counts.all_objects;
        sum.all_bytes += counts.all_bytes;
    }
    hak_sink_format(sink, "heap_v2/1\n");
    counts_put(sink, &sum);
    while ((site = hak_profile_copy_next(copy, site)) != NULL) {
        counts_t counts = counts_of(site);
        hak_sink_format(sink, "@");
        for (uint32_t i = 0; i < site->depth; i++) {
            hak_sink_format(sink, " %x", (uint64_t)site->stack[i]);
        }
        hak_sink_format(sink, "\n");
        counts_put(sink, &counts);
    }
    hak_sink_format(sink, "\nMAPPED_LIBRARIES:\n");
    for (size_t i = 0; i < copy->module_count; i++) {
        const hak_profile_module_t *module = &copy->module[i];
        char line[96];
        snprintf(line, sizeof line, "%08lx-%08lx r-xp %08lx 00:00 0 ", module->start, module->end,
                 module->offset);
        hak_sink_format(sink, "%s", line);
        for (const char *at = copy->text + module->path; *at != '\0'; at++) {
            hak_sink_format(sink, "%c", (unsigned char)*at < ' ' ? '?' : *at);
        }
        hak_sink_format(sink, "\n");
    }
}
