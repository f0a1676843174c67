/* SPDX-License-Identifier: MIT
 *
 * The profile as text: gperftools' form for pprof, and jemalloc's heap_v2 for jeprof. Both divide a
 * line by the chance of its mean size at the rate of the head. As the sums have their weights, no
 * rate is given, or one of a byte, which changes nothing. */
#include "profile.h"

#include "profile/chance.h"

/* The head, the sums of a site, its end; jemalloc has the sums behind the stack. */
static const char heap_forms[2][3][48] = {
    {"heap profile: %l: %l [%l: %l] @ heapprofile\n", "%l: %l [%l: %l] ", "\n"},
    {"heap_v2/1\n  t*: %l: %l [%l: %l]\n", "", "\n  t*: %l: %l [%l: %l]\n"},
};

static void heap_sums(const hak_sink_t *sink, const char *form, const hak_profile_sum_t *in_use,
                      const hak_profile_sum_t *all) {
    hak_sink_format(sink, form, hak_chance_whole(in_use->objects), hak_chance_whole(in_use->bytes),
                    hak_chance_whole(all->objects), hak_chance_whole(all->bytes));
}

static void heap_add(hak_profile_sum_t *to, const hak_profile_sum_t *sum) {
    to->objects += (double)hak_chance_whole(sum->objects); /* as its line has it */
    to->bytes += (double)hak_chance_whole(sum->bytes);
}

/* As the kernel lists it, but in one line and without control characters. */
static void module_put(const hak_sink_t *sink, const obs_copy_t *copy, const obs_module_t *module) {
    char line[96];
    snprintf(line, sizeof line, "%08lx-%08lx r-xp %08lx 00:00 0 ", module->start, module->end,
             module->offset);
    hak_sink_format(sink, "%s", line);
    for (const char *at = copy->text + module->path; *at != '\0'; at++) {
        hak_sink_format(sink, "%c", (unsigned char)*at < ' ' ? '?' : *at);
    }
    hak_sink_format(sink, "\n");
}

static void heap_put(const hak_sink_t *sink, const obs_copy_t *copy, const char (*form)[48]) {
    hak_profile_sum_t in_use = {0}, all = {0};
    const hak_profile_site_t *site = NULL;
    while ((site = obs_copy_next(copy, site)) != NULL) {
        heap_add(&in_use, &site->in_use);
        heap_add(&all, &site->all);
    }
    heap_sums(sink, form[0], &in_use, &all);
    while ((site = obs_copy_next(copy, site)) != NULL) {
        heap_sums(sink, form[1], &site->in_use, &site->all);
        hak_sink_format(sink, "@");
        for (uint32_t i = 0; i < site->depth; i++) {
            hak_sink_format(sink, " %x", (uint64_t)site->stack[i]);
        }
        heap_sums(sink, form[2], &site->in_use, &site->all);
    }
    hak_sink_format(sink, "\nMAPPED_LIBRARIES:\n");
    for (size_t i = 0; i < copy->module_count; i++) {
        module_put(sink, copy, &copy->module[i]);
    }
}

void obs_write_heap(const hak_sink_t *sink, const obs_copy_t *copy) {
    heap_put(sink, copy, heap_forms[0]);
}

void obs_write_heap_v2(const hak_sink_t *sink, const obs_copy_t *copy) {
    heap_put(sink, copy, heap_forms[1]);
}
