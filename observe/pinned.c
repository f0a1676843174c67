/* SPDX-License-Identifier: MIT
 *
 * What else the writers of the profile ask: the memory that a sample's block pins, the name of the
 * program, the mappings with code. */
#include "profile.h"

#include "base/bits.h"
#include "slab/slab_inl.h"

#include <elf.h>

enum { NAME_MOST = 4096 /* of a program, with its folder */ };

/* --- pinned memory ---------------------------------------------------------------------------- */

/* The slab that has the address, if it is one of the class. */
static bool slab_find(obs_image_t *image, uint64_t address, size_t bytes, obs_slab_t *slab) {
    uint64_t pointer;
    uint32_t entry;
    obs_leaf_t leaf;
    obs_superslab_t superslab;
    if (!obs_leaf_of(image, address, &leaf) ||
        !obs_read(image->reader, leaf.entry + ((uint32_t)address >> HAK_UNIT_LOG2) * 4, &entry,
                  sizeof entry) ||
        !hak_slab_is_entry(entry) || hak_sc_of_entry(entry) >= HAK_SC_COUNT ||
        hak_sc_info[hak_sc_of_entry(entry)].bytes != bytes ||
        !obs_read_word(image->reader,
                       leaf.superslab + ((uint32_t)address >> HAK_SUPERSLAB_LOG2) * 8, &pointer) ||
        pointer == 0 || !obs_fetch(image, superslab, pointer, &superslab)) {
        return false;
    }
    unsigned unit = (unsigned)(address / HAK_UNIT_BYTES % HAK_SUPERSLAB_UNITS);
    unsigned back = superslab.units_to_first[unit];
    return back <= unit &&
           obs_fetch(image, slab, superslab.unit + (unit - back) * (uint64_t)obs_size(image, unit),
                     slab);
}

double obs_copy_pinned(const hak_profile_sample_t *sample) {
    obs_slab_t slab;
    if (sample->companion <= HAK_PROFILE_LARGE) {
        return 0;
    }
    uint64_t live = 0, idle_bytes = hak_excess(obs_current->reader->page_bytes, sample->bytes);
    if (slab_find(obs_current, sample->companion, sample->bytes, &slab)) {
        uint64_t carved = slab.carved, free = slab.free_count;
        live = hak_excess(carved, free);
        idle_bytes = hak_excess(hak_least(free, carved) * sample->bytes, slab.purged_bytes);
    }
    return sample->weight * (double)idle_bytes / (double)(live + 1);
}

/* --- the program ------------------------------------------------------------------------------ */

/* The last part of the path that was executed; the name of the process where that cannot be read.
 */
const char *obs_program(void) {
    static char path[NAME_MOST];
    obs_reader_t *reader = obs_current->reader;
    size_t length = 0;
    while (length < sizeof path && reader->program_at != 0 &&
           obs_read(reader, reader->program_at + length, &path[length], 1)) {
        if (path[length++] == '\0') {
            const char *slash = strrchr(path, '/');
            return slash != NULL ? slash + 1 : path;
        }
    }
    return reader->command;
}

/* --- modules ---------------------------------------------------------------------------------- */

static bool module_add(obs_copy_t *copy, const obs_mapping_t *mapping, size_t *text_bytes) {
    size_t length = strlen(mapping->path) + 1, count = copy->module_count;
    char *text = obs_grow(copy->text, *text_bytes + length);
    copy->text = text != NULL ? text : copy->text;
    bool is_full = (count & (count - 1)) == 0; /* room is a power of two */
    obs_module_t *all =
        is_full ? obs_grow(copy->module, (count != 0 ? 2 * count : 1) * sizeof *all) : copy->module;
    copy->module = all != NULL ? all : copy->module;
    if (text == NULL || all == NULL || *text_bytes + length > UINT32_MAX) {
        return false;
    }
    memcpy(text + *text_bytes, mapping->path, length);
    all[copy->module_count++] = (obs_module_t){.start = mapping->start,
                                               .end = mapping->end,
                                               .offset = mapping->offset,
                                               .path = (uint32_t)*text_bytes};
    *text_bytes += length;
    return true;
}

static void build_id_read(obs_reader_t *reader, uint64_t base, obs_module_t *module) {
    obs_note_t note;
    if (obs_memory_note(reader, base, "GNU", NT_GNU_BUILD_ID, &note) &&
        note.bytes <= OBS_BUILD_ID_BYTES &&
        obs_read(reader, note.at, module->build_id, note.bytes)) {
        module->build_id_bytes = (uint32_t)note.bytes;
    }
}

/* The mapping of the same file's first byte comes before those of its code. */
void obs_list_modules(obs_reader_t *reader, obs_copy_t *copy) {
    const obs_mapping_t *first = NULL;
    size_t text_bytes = 0;
    for (size_t i = 0; i < reader->mapping_count; i++) {
        const obs_mapping_t *mapping = &reader->mapping[i];
        first = mapping->offset == 0 ? mapping : first;
        if (!mapping->is_code) {
            continue;
        }
        if (!module_add(copy, mapping, &text_bytes)) {
            return;
        }
        if (first != NULL && mapping->path[0] != '\0' && strcmp(mapping->path, first->path) == 0) {
            build_id_read(reader, first->start, &copy->module[copy->module_count - 1]);
        }
    }
}
