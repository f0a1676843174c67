/* SPDX-License-Identifier: MIT
 *
 * Bytes, numbers and pointers of unwind tables. */
#include "stack/reader.h"

#include "base/bits.h"

#include <string.h>

hak_reader_t hak_reader_of(const hak_tables_t *tables, uintptr_t at, uintptr_t end) {
    bool is_inside = at >= tables->os.from && at <= end && end <= tables->os.to;
    return (hak_reader_t){.tables = tables,
                          .at = is_inside ? at : 0,
                          .end = is_inside ? end : 0,
                          .has_failed = !is_inside};
}

static bool reader_may_take(const hak_reader_t *reader, unsigned bytes) {
    uint32_t *left = reader->tables->left;
    bool may = bytes <= reader->end - reader->at && (left == NULL || bytes <= *left);
    if (left != NULL) {
        *left = may ? *left - bytes : 0;
    }
    return may;
}

uint64_t hak_take(hak_reader_t *reader, unsigned bytes) {
    uint64_t value = 0;
    if (!reader_may_take(reader, bytes)) {
        reader->has_failed = true;
        reader->at = reader->end;
        return 0;
    }
    memcpy(&value, (const void *)reader->at, bytes);
    reader->at += bytes;
    return value;
}

uint64_t hak_take_byte(hak_reader_t *reader) {
    return hak_take(reader, 1);
}

int64_t hak_take_signed_4(hak_reader_t *reader) {
    return (int32_t)hak_take(reader, 4);
}

/* A number in 7 bits a byte; what exceeds 64 bits is dropped. */
static uint64_t take_bits(hak_reader_t *reader, unsigned *shift) {
    uint64_t value = 0, byte;
    *shift = 0;
    do {
        byte = hak_take_byte(reader);
        value |= *shift < 64 ? (byte & 0x7f) << *shift : 0;
        *shift += 7;
    } while ((byte & 0x80) != 0);
    return value | (byte & 0x40) << 57; /* its sign in the highest bit, for hak_take_signed */
}

uint64_t hak_take_unsigned(hak_reader_t *reader) {
    unsigned shift;
    uint64_t value = take_bits(reader, &shift);
    return shift < 64 ? value & hak_mask(shift) : value;
}

int64_t hak_take_signed(hak_reader_t *reader) {
    unsigned shift;
    uint64_t value = take_bits(reader, &shift);
    bool is_negative = value >> 63 != 0;
    return (int64_t)(shift >= 64 ? value : is_negative ? value | ~hak_mask(shift) : value);
}

void hak_take_nothing(hak_reader_t *reader, uint64_t bytes) {
    bool fits = bytes <= reader->end - reader->at;
    reader->has_failed = reader->has_failed || !fits;
    reader->at = fits ? reader->at + bytes : reader->end;
}

uintptr_t hak_take_pointer(hak_reader_t *reader, unsigned encoding) {
    uintptr_t place = reader->at;
    uint64_t value = 0;
    switch (encoding & CFI_SIZE) {
    case CFI_PLAIN:
    case CFI_UNSIGNED_8:
    case CFI_SIGNED_8:
        value = hak_take(reader, 8);
        break;
    case CFI_UNSIGNED_4:
        value = hak_take(reader, 4);
        break;
    case CFI_SIGNED_4:
        value = (uint64_t)hak_take_signed_4(reader);
        break;
    default:
        reader->has_failed = true;
    }
    switch (encoding & CFI_BASE) {
    case 0:
        return value;
    case CFI_FROM_HERE:
        return value + place;
    case CFI_FROM_HEADER:
        return value + reader->tables->os.header;
    default:
        reader->has_failed = true;
        return 0;
    }
}
