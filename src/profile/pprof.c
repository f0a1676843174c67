/* SPDX-License-Identifier: MIT
 *
 * The profile as pprof reads it: profile.proto of github.com/google/pprof, in gzip. Without a
 * compressor: stored blocks. Messages inside the profile are short, so that each is put together on
 * the stack, behind its length. */
#include "profile/copy.h"

#include "base/bits.h"
#include "os/os.h"
#include "profile/chance.h"
#include "profile/profile.h"

#include <string.h>

/* --- gzip: RFC 1952, RFC 1951 ----------------------------------------------------------------- */

enum { GZIP_BLOCK_BYTES = 32 << 10 };

/* In a mapping, as the block is too large for small stacks. */
typedef struct gzip {
    const hak_sink_t *sink;
    uint32_t crc, length; /* of all; length is modulo 2^32 */
    size_t used;          /* of the block */
    uint32_t table[256];
    unsigned char block[GZIP_BLOCK_BYTES];
} gzip_t;

static void gzip_put(const hak_sink_t *sink, const void *data, size_t length) {
    sink->put(sink->context, data, length);
}

static void gzip_begin(gzip_t *gzip, const hak_sink_t *sink) {
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    gzip->sink = sink;
    gzip->crc = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (unsigned bit = 0; bit < 8; bit++) {
            value = (value & 1) != 0 ? value >> 1 ^ 0xedb88320u : value >> 1;
        }
        gzip->table[i] = value;
    }
    gzip_put(sink, head, sizeof head);
}

static void gzip_block(gzip_t *gzip, bool is_last) {
    uint16_t length = (uint16_t)gzip->used, inverse = (uint16_t)~length;
    const unsigned char head[] = {is_last, (unsigned char)length, (unsigned char)(length >> 8),
                                  (unsigned char)inverse, (unsigned char)(inverse >> 8)};
    gzip_put(gzip->sink, head, sizeof head);
    gzip_put(gzip->sink, gzip->block, gzip->used);
    gzip->used = 0;
}

static void gzip_add(gzip_t *gzip, const void *data, size_t length) {
    const unsigned char *at = data;
    gzip->length += (uint32_t)length;
    for (; length != 0; length--, at++) {
        gzip->crc = gzip->table[(gzip->crc ^ *at) & 0xff] ^ gzip->crc >> 8;
        gzip->block[gzip->used++] = *at;
        if (gzip->used == GZIP_BLOCK_BYTES) {
            gzip_block(gzip, false);
        }
    }
}

static void gzip_end(gzip_t *gzip) {
    uint32_t tail[2] = {~gzip->crc, gzip->length}; /* both targets are little-endian */
    gzip_block(gzip, true);
    gzip_put(gzip->sink, tail, sizeof tail);
}

/* --- protocol buffers ------------------------------------------------------------------------- */

enum { PROTO_VARINT = 0, PROTO_BYTES = 2 }; /* wire types */
/* Fields of Profile. */
enum {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_MAPPING = 3,
    PPROF_LOCATION = 4,
    PPROF_STRING = 6,
    PPROF_TIME = 9,
    PPROF_DURATION = 10,
    PPROF_PERIOD_TYPE = 11,
    PPROF_PERIOD = 12,
    PPROF_DEFAULT_TYPE = 14,
};
/* A stack, each address a location of up to 5 bytes, or the path of a mapping's file. */
enum { PROTO_MOST_BYTES = 4096 };

typedef struct proto {
    size_t length;
    unsigned char data[PROTO_MOST_BYTES];
} proto_t;

static void proto_begin(proto_t *proto) {
    proto->length = 0;
}

/* What does not fit is left out: by the bounds above all does. */
static void proto_raw(proto_t *proto, uint64_t value) {
    do {
        if (proto->length < PROTO_MOST_BYTES) {
            proto->data[proto->length++] =
                (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        }
        value >>= 7;
    } while (value != 0);
}

static void proto_number(proto_t *proto, unsigned field, uint64_t value) {
    proto_raw(proto, field << 3 | PROTO_VARINT);
    proto_raw(proto, value);
}

static void proto_bytes(proto_t *proto, unsigned field, const void *data, size_t length) {
    proto_raw(proto, field << 3 | PROTO_BYTES);
    proto_raw(proto, length);
    length = hak_least(length, PROTO_MOST_BYTES - proto->length);
    memcpy(proto->data + proto->length, data, length);
    proto->length += length;
}

static void proto_message(gzip_t *gzip, unsigned field, const proto_t *message) {
    proto_t head;
    proto_begin(&head);
    proto_raw(&head, field << 3 | PROTO_BYTES);
    proto_raw(&head, message->length);
    gzip_add(gzip, head.data, head.length);
    gzip_add(gzip, message->data, message->length);
}

static void proto_top(gzip_t *gzip, unsigned field, uint64_t value) {
    proto_t number;
    proto_begin(&number);
    proto_number(&number, field, value);
    gzip_add(gzip, number.data, number.length);
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
    STRING_MODULES,
};
static const char pprof_strings[][16] = {
    "", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "space",
};

typedef struct pprof {
    const hak_profile_copy_t *copy;
    uintptr_t *address; /* of all stacks, ascending, each once */
    size_t address_count;
    size_t mapped_bytes;
    gzip_t gzip;
} pprof_t;

static void address_sift(uintptr_t *address, size_t root, size_t count) {
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        child += child + 1 < count && address[child] < address[child + 1];
        if (address[root] >= address[child]) {
            return;
        }
        uintptr_t moving = address[root];
        address[root] = address[child];
        address[child] = moving;
        root = child;
    }
}

static size_t address_sort(uintptr_t *address, size_t count) {
    size_t kept = 0;
    for (size_t root = count / 2; root-- > 0;) {
        address_sift(address, root, count);
    }
    for (size_t end = count; end-- > 1;) {
        uintptr_t last = address[end];
        address[end] = address[0];
        address[0] = last;
        address_sift(address, 0, end);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || address[kept - 1] != address[i]) {
            address[kept++] = address[i];
        }
    }
    return kept;
}

/* Numbers of locations count from 1. */
static uint64_t pprof_location(const pprof_t *pprof, uintptr_t address) {
    size_t low = 0, high = pprof->address_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pprof->address[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low + 1;
}

/* NULL: memory is out. */
static pprof_t *pprof_make(const hak_profile_copy_t *copy) {
    size_t most = copy->store.base != NULL ? copy->store.low / sizeof(uintptr_t) : 0;
    size_t bytes = hak_align_up(sizeof(pprof_t) + most * sizeof(uintptr_t), HAK_UNIT_BYTES);
    pprof_t *pprof = hak_os_map(bytes, HAK_UNIT_BYTES);
    if (pprof == NULL) {
        return NULL;
    }
    pprof->copy = copy;
    pprof->mapped_bytes = bytes;
    pprof->address = (uintptr_t *)(pprof + 1);
    hak_profile_site_t *site = NULL;
    while ((site = hak_profile_copy_next(copy, site)) != NULL) {
        memcpy(pprof->address + pprof->address_count, site->stack, site->depth * sizeof(uintptr_t));
        pprof->address_count += site->depth;
    }
    pprof->address_count = address_sort(pprof->address, pprof->address_count);
    return pprof;
}

static void pprof_type(pprof_t *pprof, unsigned field, unsigned type, unsigned unit) {
    proto_t message;
    proto_begin(&message);
    proto_number(&message, 1, type);
    proto_number(&message, 2, unit);
    proto_message(&pprof->gzip, field, &message);
}

static void pprof_site(pprof_t *pprof, const hak_profile_site_t *site) {
    proto_t message, list;
    proto_begin(&message);
    proto_begin(&list);
    for (uint32_t i = 0; i < site->depth; i++) {
        proto_raw(&list, pprof_location(pprof, site->stack[i]));
    }
    proto_bytes(&message, 1, list.data, list.length);
    proto_begin(&list);
    proto_raw(&list, hak_chance_whole(site->all.objects));
    proto_raw(&list, hak_chance_whole(site->all.bytes));
    proto_raw(&list, hak_chance_whole(site->in_use.objects));
    proto_raw(&list, hak_chance_whole(site->in_use.bytes));
    proto_bytes(&message, 2, list.data, list.length);
    proto_message(&pprof->gzip, PPROF_SAMPLE, &message);
}

static void pprof_module(pprof_t *pprof, size_t index) {
    const hak_profile_module_t *module = &pprof->copy->module[index];
    proto_t message;
    proto_begin(&message);
    proto_number(&message, 1, index + 1);
    proto_number(&message, 2, module->start);
    proto_number(&message, 3, module->end);
    proto_number(&message, 4, module->offset);
    proto_number(&message, 5, STRING_MODULES + 2 * index);
    proto_number(&message, 6, STRING_MODULES + 2 * index + 1);
    proto_message(&pprof->gzip, PPROF_MAPPING, &message);
}

/* 0: the address is in none. */
static uint64_t pprof_module_of(const pprof_t *pprof, uintptr_t address) {
    for (size_t i = 0; i < pprof->copy->module_count; i++) {
        const hak_profile_module_t *module = &pprof->copy->module[i];
        if (address >= module->start && address < module->end) {
            return i + 1;
        }
    }
    return 0;
}

static void pprof_locations(pprof_t *pprof) {
    for (size_t i = 0; i < pprof->address_count; i++) {
        proto_t message;
        proto_begin(&message);
        proto_number(&message, 1, i + 1);
        proto_number(&message, 2, pprof_module_of(pprof, pprof->address[i] - 1));
        proto_number(&message, 3, pprof->address[i] - 1); /* in the call, not behind it */
        proto_message(&pprof->gzip, PPROF_LOCATION, &message);
    }
}

static void pprof_string(pprof_t *pprof, const char *text, size_t length) {
    proto_t message;
    proto_begin(&message);
    message.length = hak_least(length, PROTO_MOST_BYTES);
    memcpy(message.data, text, message.length);
    proto_message(&pprof->gzip, PPROF_STRING, &message);
}

static void pprof_strings_put(pprof_t *pprof) {
    static const char digits[] = "0123456789abcdef";
    const hak_profile_copy_t *copy = pprof->copy;
    for (size_t i = 0; i < sizeof pprof_strings / sizeof pprof_strings[0]; i++) {
        pprof_string(pprof, pprof_strings[i], strlen(pprof_strings[i]));
    }
    for (size_t i = 0; i < copy->module_count; i++) {
        const hak_profile_module_t *module = &copy->module[i];
        char id[2 * HAK_OS_BUILD_ID_BYTES];
        for (uint32_t j = 0; j < module->build_id_bytes; j++) {
            id[2 * j] = digits[module->build_id[j] >> 4];
            id[2 * j + 1] = digits[module->build_id[j] & 15];
        }
        pprof_string(pprof, copy->text + module->path, strlen(copy->text + module->path));
        pprof_string(pprof, id, 2 * (size_t)module->build_id_bytes);
    }
}

static void pprof_put(pprof_t *pprof, const hak_sink_t *sink) {
    const hak_profile_copy_t *copy = pprof->copy;
    hak_profile_site_t *site = NULL;
    gzip_begin(&pprof->gzip, sink);
    pprof_type(pprof, PPROF_SAMPLE_TYPE, STRING_ALLOC_OBJECTS, STRING_COUNT);
    pprof_type(pprof, PPROF_SAMPLE_TYPE, STRING_ALLOC_SPACE, STRING_BYTES);
    pprof_type(pprof, PPROF_SAMPLE_TYPE, STRING_IN_USE_OBJECTS, STRING_COUNT);
    pprof_type(pprof, PPROF_SAMPLE_TYPE, STRING_IN_USE_SPACE, STRING_BYTES);
    while ((site = hak_profile_copy_next(copy, site)) != NULL) {
        pprof_site(pprof, site);
    }
    for (size_t i = 0; i < copy->module_count; i++) {
        pprof_module(pprof, i);
    }
    pprof_locations(pprof);
    pprof_strings_put(pprof);
    proto_top(&pprof->gzip, PPROF_TIME, copy->wall_ns);
    proto_top(&pprof->gzip, PPROF_DURATION, hak_excess(copy->wall_ns, copy->store.started_ns));
    pprof_type(pprof, PPROF_PERIOD_TYPE, STRING_SPACE, STRING_BYTES);
    proto_top(&pprof->gzip, PPROF_PERIOD, copy->store.rate);
    proto_top(&pprof->gzip, PPROF_DEFAULT_TYPE, STRING_IN_USE_SPACE);
    gzip_end(&pprof->gzip);
}

void hak_profile_write_pprof(const hak_sink_t *sink) {
    hak_profile_copy_t copy;
    hak_profile_copy_make(&copy);
    pprof_t *pprof = pprof_make(&copy);
    if (pprof != NULL) {
        pprof_put(pprof, sink);
        hak_os_unmap(pprof, pprof->mapped_bytes);
    }
    hak_profile_copy_drop(&copy);
}
