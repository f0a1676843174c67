/* SPDX-License-Identifier: MIT
 *
 * The profile as pprof reads it: profile.proto of github.com/google/pprof, in gzip; plain where
 * this was built without zlib, which pprof reads, too. Names of functions are pprof's to find: it
 * gets addresses, and the files that they are in. */
#include "profile.h"

#include "profile/chance.h"

#include <stdlib.h>

/* --- protocol buffers ------------------------------------------------------------------------- */

enum { PROTO_VARINT = 0, PROTO_BYTES = 2 }; /* wire types */
/* Fields of Profile. */
enum {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_MAPPING = 3,
    PPROF_LOCATION = 4,
    PPROF_STRING = 6,
    PPROF_DROP = 7,
    PPROF_KEEP = 8,
    PPROF_TIME = 9,
    PPROF_DURATION = 10,
    PPROF_PERIOD_TYPE = 11,
    PPROF_PERIOD = 12,
    PPROF_DEFAULT_TYPE = 14,
};

typedef struct proto {
    char *data;
    size_t length, room;
    bool is_cut; /* memory ran out */
} proto_t;

static void proto_raw(proto_t *proto, const void *data, size_t length) {
    if (proto->room - proto->length < length) {
        size_t room = proto->room * 2 + length + 256;
        char *grown = realloc(proto->data, room);
        proto->is_cut = proto->is_cut || grown == NULL;
        if (grown == NULL) {
            return;
        }
        proto->data = grown;
        proto->room = room;
    }
    if (length != 0) {
        memcpy(proto->data + proto->length, data, length);
    }
    proto->length += length;
}

static void proto_varint(proto_t *proto, uint64_t value) {
    unsigned char byte[10];
    size_t count = 0;
    for (; value > 0x7f; value >>= 7) {
        byte[count++] = (unsigned char)(value | 0x80);
    }
    byte[count++] = (unsigned char)value;
    proto_raw(proto, byte, count);
}

static void proto_number(proto_t *proto, unsigned field, uint64_t value) {
    proto_varint(proto, field << 3 | PROTO_VARINT);
    proto_varint(proto, value);
}

static void proto_bytes(proto_t *proto, unsigned field, const void *data, size_t length) {
    proto_varint(proto, field << 3 | PROTO_BYTES);
    proto_varint(proto, length);
    proto_raw(proto, data, length);
}

/* Empties the part. */
static void proto_part(proto_t *proto, unsigned field, proto_t *part) {
    proto_bytes(proto, field, part->data, part->length);
    proto->is_cut = proto->is_cut || part->is_cut;
    part->length = 0;
}

/* --- the profile ------------------------------------------------------------------------------ */

/* Strings have numbers, in the order in which they come: first these, then two of each module. */
enum {
    STRING_NONE,
    STRING_ALLOC_OBJECTS,
    STRING_COUNT,
    STRING_ALLOC_SPACE,
    STRING_BYTES,
    STRING_IN_USE_OBJECTS,
    STRING_IN_USE_SPACE,
    STRING_SPACE,
    STRING_DROP,
    STRING_KEEP,
    STRING_MODULES,
};

/* pprof takes away a function that matches the first, with all that it calls: what only passes a
 * wish for memory on, so that the functions of the program are named. Those that call functions of
 * the program match the second. Beside tools/hakmem_view/profile_pprof.py. */
#define DROP_FRAMES                                                                                \
    "alloc::.*|<alloc::.*|(std|core)::alloc::.*|hashbrown::raw::.*|__rust_.*|__rdl_.*|__rg_.*|"    \
    "(hak_|__libc_|je_|mi_|tc_|x)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|"     \
    "posix_memalign)|operator new.*|__gnu_cxx::.*|std::(__new_)?allocator(_traits)?<.*|"           \
    "std::_Vector_base<.*|std::(__cxx11::)?basic_string<.*"
#define KEEP_FRAMES                                                                                \
    ".*::(call|call_once|call_mut|from_iter|extend|extend_desugared|extend_trusted|fold|for_each|" \
    "map|retain|sort|sort_by|sort_by_key|resize_with|or_insert_with|new_cyclic|drop|fmt|clone|eq|" \
    "cmp|hash|next|collect)(::<.*>)?"
static const char *const pprof_strings[] = {
    "",      "alloc_objects", "count",     "alloc_space", "bytes", "inuse_objects", "inuse_space",
    "space", DROP_FRAMES,     KEEP_FRAMES,
};

typedef struct pprof {
    const obs_copy_t *copy;
    uintptr_t *address; /* of all stacks, ascending, each once: a location */
    size_t address_count;
    proto_t all, part, list; /* a message, one inside it, and a list inside that */
} pprof_t;

static int address_compare(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

/* false: no memory. */
static bool addresses_list(pprof_t *pprof) {
    const hak_profile_site_t *site = NULL;
    size_t most = pprof->copy->site_bytes / sizeof(uintptr_t) + 1, count = 0;
    pprof->address = malloc(most * sizeof(uintptr_t));
    while (pprof->address != NULL && (site = obs_copy_next(pprof->copy, site)) != NULL) {
        memcpy(pprof->address + count, site->stack, site->depth * sizeof(uintptr_t));
        count += site->depth;
    }
    if (count != 0) {
        qsort(pprof->address, count, sizeof(uintptr_t), address_compare);
    }
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = pprof->address[i];
        if (i == 0 || pprof->address[pprof->address_count - 1] != address) {
            pprof->address[pprof->address_count++] = address;
        }
    }
    return pprof->address != NULL;
}

/* Numbers of locations count from 1. */
static uint64_t location_of(const pprof_t *pprof, uintptr_t address) {
    const uintptr_t *found =
        bsearch(&address, pprof->address, pprof->address_count, sizeof(uintptr_t), address_compare);
    return (uint64_t)(found - pprof->address) + 1;
}

static void put_type(pprof_t *pprof, unsigned field, unsigned type, unsigned unit) {
    proto_number(&pprof->part, 1, type);
    proto_number(&pprof->part, 2, unit);
    proto_part(&pprof->all, field, &pprof->part);
}

static void put_site(pprof_t *pprof, const hak_profile_site_t *site) {
    for (uint32_t i = 0; i < site->depth; i++) {
        proto_varint(&pprof->list, location_of(pprof, site->stack[i]));
    }
    proto_part(&pprof->part, 1, &pprof->list);
    proto_varint(&pprof->list, hak_chance_whole(site->all.objects));
    proto_varint(&pprof->list, hak_chance_whole(site->all.bytes));
    proto_varint(&pprof->list, hak_chance_whole(site->in_use.objects));
    proto_varint(&pprof->list, hak_chance_whole(site->in_use.bytes));
    proto_part(&pprof->part, 2, &pprof->list);
    proto_part(&pprof->all, PPROF_SAMPLE, &pprof->part);
}

static void put_module(pprof_t *pprof, size_t index) {
    const obs_module_t *module = &pprof->copy->module[index];
    proto_number(&pprof->part, 1, index + 1);
    proto_number(&pprof->part, 2, module->start);
    proto_number(&pprof->part, 3, module->end);
    proto_number(&pprof->part, 4, module->offset);
    proto_number(&pprof->part, 5, STRING_MODULES + 2 * index);
    proto_number(&pprof->part, 6, STRING_MODULES + 2 * index + 1);
    proto_part(&pprof->all, PPROF_MAPPING, &pprof->part);
}

/* Addresses and modules ascend both. A location is in the call, not behind it; mapping 0: none. */
static void put_locations(pprof_t *pprof) {
    const obs_copy_t *copy = pprof->copy;
    size_t at = 0;
    for (size_t i = 0; i < pprof->address_count; i++) {
        uintptr_t address = pprof->address[i] != 0 ? pprof->address[i] - 1 : 0;
        while (at < copy->module_count && copy->module[at].end <= address) {
            at++;
        }
        bool is_there = at < copy->module_count && copy->module[at].start <= address;
        proto_number(&pprof->part, 1, i + 1);
        proto_number(&pprof->part, 2, is_there ? at + 1 : 0);
        proto_number(&pprof->part, 3, address);
        proto_part(&pprof->all, PPROF_LOCATION, &pprof->part);
    }
}

static void put_strings(pprof_t *pprof) {
    const obs_copy_t *copy = pprof->copy;
    for (size_t i = 0; i < sizeof pprof_strings / sizeof *pprof_strings; i++) {
        proto_bytes(&pprof->all, PPROF_STRING, pprof_strings[i], strlen(pprof_strings[i]));
    }
    for (size_t i = 0; i < copy->module_count; i++) {
        const obs_module_t *module = &copy->module[i];
        const char *path = copy->text + module->path;
        char id[2 * OBS_BUILD_ID_BYTES + 1];
        for (uint32_t j = 0; j < module->build_id_bytes; j++) {
            snprintf(&id[2 * j], 3, "%02x", module->build_id[j]);
        }
        proto_bytes(&pprof->all, PPROF_STRING, path, strlen(path));
        proto_bytes(&pprof->all, PPROF_STRING, id, 2 * (size_t)module->build_id_bytes);
    }
}

static void put_all(pprof_t *pprof) {
    const obs_copy_t *copy = pprof->copy;
    const hak_profile_site_t *site = NULL;
    put_type(pprof, PPROF_SAMPLE_TYPE, STRING_ALLOC_OBJECTS, STRING_COUNT);
    put_type(pprof, PPROF_SAMPLE_TYPE, STRING_ALLOC_SPACE, STRING_BYTES);
    put_type(pprof, PPROF_SAMPLE_TYPE, STRING_IN_USE_OBJECTS, STRING_COUNT);
    put_type(pprof, PPROF_SAMPLE_TYPE, STRING_IN_USE_SPACE, STRING_BYTES);
    while ((site = obs_copy_next(copy, site)) != NULL) {
        put_site(pprof, site);
    }
    for (size_t i = 0; i < copy->module_count; i++) {
        put_module(pprof, i);
    }
    put_locations(pprof);
    put_strings(pprof);
    proto_number(&pprof->all, PPROF_TIME, copy->wall_ns);
    uint64_t began_ns = copy->store.started_ns;
    proto_number(&pprof->all, PPROF_DURATION,
                 copy->wall_ns > began_ns ? copy->wall_ns - began_ns : 0);
    put_type(pprof, PPROF_PERIOD_TYPE, STRING_SPACE, STRING_BYTES);
    proto_number(&pprof->all, PPROF_PERIOD, copy->store.rate);
    proto_number(&pprof->all, PPROF_DEFAULT_TYPE, STRING_IN_USE_SPACE);
    proto_number(&pprof->all, PPROF_DROP, STRING_DROP);
    proto_number(&pprof->all, PPROF_KEEP, STRING_KEEP);
}

void obs_write_pprof(const hak_sink_t *sink, const obs_copy_t *copy) {
    pprof_t pprof = {.copy = copy};
    if (addresses_list(&pprof)) {
        put_all(&pprof);
    }
    if (!pprof.all.is_cut && !obs_gzip(sink, pprof.all.data, pprof.all.length)) {
        sink->put(sink->context, pprof.all.data, pprof.all.length);
    }
    free(pprof.address);
    free(pprof.all.data);
    free(pprof.part.data);
    free(pprof.list.data);
}
