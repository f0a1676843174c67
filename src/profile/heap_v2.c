/* SPDX-License-Identifier: MIT
 *
 * The profile as text: for jeprof, in the format heap_v2 of jemalloc; and what is still allocated,
 * for people. A reader of heap_v2 divides a line's sums by the chance of its mean size at the one
 * rate of the file; sites have samples of several sizes and rates. So sums are written with their
 * weights, and the rate is one byte, which changes nothing. */
#include "profile/copy.h"

#include "base/bits.h"
#include "os/optional.h"
#include "profile/chance.h"
#include "profile/profile.h"

static void heap_v2_line(const hak_sink_t *sink, const hak_profile_sum_t *in_use,
                         const hak_profile_sum_t *all) {
    hak_sink_format(sink, "  t*: %l: %l [%l: %l]\n", hak_chance_whole(in_use->objects),
                    hak_chance_whole(in_use->bytes), hak_chance_whole(all->objects),
                    hak_chance_whole(all->bytes));
}

/* As in /proc/self/maps, where numbers have no prefix. */
static void heap_v2_hex(hak_text_t *text, uint64_t value) {
    HAK_TEXT(hex, 20);
    hak_text_hex(&hex, value);
    hak_text_str(text, hak_text_string(&hex) + 2);
}

static void heap_v2_mappings(const hak_sink_t *sink, const hak_profile_copy_t *copy) {
    hak_sink_format(sink, "\nMAPPED_LIBRARIES:\n");
    for (size_t i = 0; i < copy->module_count; i++) {
        const hak_profile_module_t *module = &copy->module[i];
        HAK_TEXT(line, 80);
        heap_v2_hex(&line, module->start);
        hak_text_str(&line, "-");
        heap_v2_hex(&line, module->end);
        hak_text_str(&line, " r-xp ");
        heap_v2_hex(&line, module->offset);
        hak_sink_format(sink, "%s 00:00 0 %s\n", hak_text_string(&line), copy->text + module->path);
    }
}

void hak_profile_write_heap_v2(const hak_sink_t *sink) {
    hak_profile_copy_t copy;
    hak_profile_sum_t in_use = {0}, all = {0};
    hak_profile_site_t *site = NULL;
    hak_profile_copy_make(&copy);
    while ((site = hak_profile_copy_next(&copy, site)) != NULL) {
        in_use.objects += site->in_use.objects;
        in_use.bytes += site->in_use.bytes;
        all.objects += site->all.objects;
        all.bytes += site->all.bytes;
    }
    hak_sink_format(sink, "heap_v2/1\n");
    heap_v2_line(sink, &in_use, &all);
    while ((site = hak_profile_copy_next(&copy, site)) != NULL) {
        hak_sink_format(sink, "@");
        for (uint32_t i = 0; i < site->depth; i++) {
            hak_sink_format(sink, " %x", (uint64_t)site->stack[i]);
        }
        hak_sink_format(sink, "\n");
        heap_v2_line(sink, &site->in_use, &site->all);
    }
    heap_v2_mappings(sink, &copy);
    hak_profile_copy_drop(&copy);
}

/* --- leaks ------------------------------------------------------------------------------------ */

enum { LEAKS_SITES = 50, LEAKS_FRAMES = 12 };

static const hak_profile_module_t *leaks_module(const hak_profile_copy_t *copy, uintptr_t address) {
    for (size_t i = 0; i < copy->module_count; i++) {
        if (address >= copy->module[i].start && address < copy->module[i].end) {
            return &copy->module[i];
        }
    }
    return NULL;
}

/* The file and the offset in it, for addr2line and its like. */
static void leaks_frame(const hak_sink_t *sink, const hak_profile_copy_t *copy, unsigned number,
                        uintptr_t address) {
    const hak_profile_module_t *module = leaks_module(copy, address);
    hak_sink_format(sink, "    #%u %x", number, (uint64_t)address);
    if (module != NULL) {
        hak_sink_format(sink, " %s+%x", copy->text + module->path,
                        (uint64_t)(address - module->start + module->offset));
    }
    hak_sink_format(sink, "\n");
}

static void leaks_site(const hak_sink_t *sink, const hak_profile_copy_t *copy,
                       const hak_profile_site_t *site) {
    hak_sink_format(sink, "  %b +- %b in %l objects, from %l samples\n",
                    hak_chance_whole(site->in_use.bytes),
                    hak_chance_whole(hak_chance_root(site->variance)),
                    hak_chance_whole(site->in_use.objects), site->in_use.samples);
    for (uint32_t i = 0; i < site->depth && i < LEAKS_FRAMES; i++) {
        leaks_frame(sink, copy, i, site->stack[i]);
    }
}

/* The site with most bytes among those below `last`; of two with as many, the first. */
static hak_profile_site_t *leaks_next(const hak_profile_copy_t *copy,
                                      const hak_profile_site_t *last) {
    hak_profile_site_t *site = NULL, *best = NULL;
    while ((site = hak_profile_copy_next(copy, site)) != NULL) {
        bool is_later = last == NULL || site->in_use.bytes < last->in_use.bytes ||
                        (site->in_use.bytes <= last->in_use.bytes && site > last);
        if (is_later && site->in_use.samples != 0 &&
            (best == NULL || site->in_use.bytes > best->in_use.bytes)) {
            best = site;
        }
    }
    return best;
}

void hak_profile_write_leaks(const hak_sink_t *sink) {
    hak_profile_copy_t copy;
    hak_profile_copy_make(&copy);
    const hak_profile_store_t *store = &copy.store;
    hak_sink_format(
        sink, "hakmem: leaks: %b +- %b are still allocated, from %l samples (one in %b)\n",
        hak_chance_whole(store->live_bytes), hak_chance_whole(hak_chance_root(store->variance)),
        store->live, (uint64_t)store->rate);
    const hak_profile_site_t *site = NULL;
    for (unsigned i = 0; i < LEAKS_SITES && (site = leaks_next(&copy, site)) != NULL; i++) {
        leaks_site(sink, &copy, site);
    }
    if (store->dropped != 0) {
        hak_sink_format(sink, "hakmem: leaks: %l samples more found no room (profile_bytes)\n",
                        store->dropped);
    }
    hak_profile_copy_drop(&copy);
}
