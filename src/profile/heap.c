/* SPDX-License-Identifier: MIT
 *
 * The profile as text: gperftools' form for pprof, and jemalloc's heap_v2 for jeprof. Both divide a
 * line by the chance of its mean size at the rate of the head. As the sums have their weights, no
 * rate is given, or one of a byte, which changes nothing. */
#include "profile/chance.h"
#include "profile/copy.h"
#include "profile/profile.h"

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
    to->objects += sum->objects;
    to->bytes += sum->bytes;
}

/* Without 0x, as in the kernel's list of mappings. */
static void heap_hex(const hak_sink_t *sink, uint64_t value, const char *end) {
    HAK_TEXT(text, 20);
    hak_text_hex(&text, value);
    hak_sink_format(sink, "%s%s", hak_text_string(&text) + 2, end);
}

void hak_profile_write_heap(const hak_sink_t *sink, bool is_jemalloc) {
    const char(*form)[48] = heap_forms[is_jemalloc];
    hak_profile_copy_t copy;
    hak_profile_sum_t in_use = {0}, all = {0};
    hak_profile_copy_make(&copy);
    hak_profile_site_t *site = NULL;
    while ((site = hak_profile_copy_next(&copy, site)) != NULL) {
        heap_add(&in_use, &site->in_use);
        heap_add(&all, &site->all);
    }
    heap_sums(sink, form[0], &in_use, &all);
    while ((site = hak_profile_copy_next(&copy, site)) != NULL) {
        heap_sums(sink, form[1], &site->in_use, &site->all);
        hak_sink_format(sink, "@");
        for (uint32_t i = 0; i < site->depth; i++) {
            hak_sink_format(sink, " %x", (uint64_t)site->stack[i]);
        }
        heap_sums(sink, form[2], &site->in_use, &site->all);
    }
    hak_sink_format(sink, "\nMAPPED_LIBRARIES:\n");
    for (size_t i = 0; i < copy.module_count; i++) {
        const hak_profile_module_t *module = &copy.module[i];
        heap_hex(sink, module->start, "-");
        heap_hex(sink, module->end, " r-xp ");
        heap_hex(sink, module->offset, " 00:00 0 ");
        hak_sink_format(sink, "%s\n", copy.text + module->path);
    }
    hak_profile_copy_drop(&copy);
}
