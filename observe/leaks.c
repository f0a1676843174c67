/* SPDX-License-Identifier: MIT
 *
 * What is still allocated, by call site, as text for people. */
#include "profile.h"

#include "profile/chance.h"
#include "put.h"

enum { LEAKS_SITES = 50, LEAKS_FRAMES = 12 };

static const obs_module_t *leaks_module(const obs_copy_t *copy, uintptr_t address) {
    for (size_t i = 0; i < copy->module_count; i++) {
        if (address >= copy->module[i].start && address < copy->module[i].end) {
            return &copy->module[i];
        }
    }
    return NULL;
}

/* The file and the offset in it, for addr2line and its like. */
static void leaks_frame(const hak_sink_t *sink, const obs_copy_t *copy, unsigned number,
                        uintptr_t address) {
    const obs_module_t *module = leaks_module(copy, address);
    hak_sink_format(sink, "    #%u %x", number, (uint64_t)address);
    if (module != NULL) {
        hak_sink_format(sink, " %s+%x", copy->text + module->path,
                        (uint64_t)(address - module->start + module->offset));
    }
    hak_sink_format(sink, "\n");
}

static void leaks_site(const hak_sink_t *sink, const obs_copy_t *copy,
                       const hak_profile_site_t *site) {
    hak_sink_format(sink, "  %s +- %s in %l objects, from %l samples\n",
                    OBS_SIZE(hak_chance_whole(site->in_use.bytes)),
                    OBS_SIZE(hak_chance_whole(obs_square_root(site->variance))),
                    hak_chance_whole(site->in_use.objects), site->in_use.samples);
    for (uint32_t i = 0; i < site->depth && i < LEAKS_FRAMES; i++) {
        leaks_frame(sink, copy, i, site->stack[i]);
    }
}

/* The site with most bytes among those below `last`; of two with as many, the first. */
static hak_profile_site_t *leaks_next(const obs_copy_t *copy, const hak_profile_site_t *last) {
    hak_profile_site_t *site = NULL, *best = NULL;
    while ((site = obs_copy_next(copy, site)) != NULL) {
        bool is_later = last == NULL || site->in_use.bytes < last->in_use.bytes ||
                        (site->in_use.bytes <= last->in_use.bytes && site > last);
        if (is_later && site->in_use.samples != 0 &&
            (best == NULL || site->in_use.bytes > best->in_use.bytes)) {
            best = site;
        }
    }
    return best;
}

void obs_write_leaks(const hak_sink_t *sink, const obs_copy_t *copy) {
    const hak_profile_store_t *store = &copy->store;
    hak_sink_format(sink,
                    "hakmem: leaks: %s +- %s are still allocated, from %l samples (one in %s)\n",
                    OBS_SIZE(hak_chance_whole(store->live_bytes)),
                    OBS_SIZE(hak_chance_whole(obs_square_root(store->variance))), store->live,
                    OBS_SIZE(store->rate));
    const hak_profile_site_t *site = NULL;
    for (unsigned i = 0; i < LEAKS_SITES && (site = leaks_next(copy, site)) != NULL; i++) {
        leaks_site(sink, copy, site);
    }
    if (store->dropped != 0) {
        hak_sink_format(sink, "hakmem: leaks: %l samples more found no room (profile_bytes)\n",
                        store->dropped);
    }
}
