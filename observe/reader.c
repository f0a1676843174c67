/* SPDX-License-Identifier: MIT
 *
 * What all sources share: the list of mappings, and a cache of which pages are resident. */
#include "reader.h"

#include "memory.h"

#include "base/bits.h"

#include <elf.h>
#include <stdarg.h>
#include <time.h>

enum {
    CHUNKS = 1 << 12,         /* in the cache, 16 GiB of addresses */
    PIECES = 1 << 8,          /* in the other one */
    SHORT_BYTES = 1 << 10,    /* a read that pieces serve */
    MAPPINGS_MOST = 16 << 20, /* the kernel's default is 65530 */
};

void obs_tame(char *text) {
    for (; *text != '\0'; text++) {
        bool is_plain = *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\';
        *text = is_plain ? *text : '?';
    }
}

bool obs_fail(obs_reader_t *reader, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reader->error, sizeof reader->error, format, args);
    va_end(args);
    obs_tame(reader->error);
    return false;
}

bool obs_begin(obs_reader_t *reader, const obs_source_t *source) {
    *reader = (obs_reader_t){.source = source, .page_bytes = 4096};
    reader->chunk = obs_take(CHUNKS * sizeof *reader->chunk);
    reader->piece = obs_take(PIECES * sizeof *reader->piece);
    return (reader->chunk != NULL && reader->piece != NULL) || obs_fail(reader, "no memory");
}

/* The name of a mapping; one after another of the same file share it. NULL: no memory. */
static const char *path_keep(const obs_reader_t *reader, const char *path) {
    size_t count = reader->mapping_count;
    const char *last = count != 0 ? reader->mapping[count - 1].path : "";
    if (path == NULL || path[0] == '\0' || strcmp(path, last) == 0) {
        return path == NULL || path[0] == '\0' ? "" : last;
    }
    size_t bytes = strlen(path) + 1;
    char *kept = obs_take(bytes);
    return kept != NULL ? memcpy(kept, path, bytes) : NULL;
}

static void path_drop(const obs_reader_t *reader, size_t i) {
    const char *path = reader->mapping[i].path;
    bool is_shared = i != 0 && path == reader->mapping[i - 1].path;
    if (path[0] != '\0' && !is_shared) {
        obs_drop((void *)(uintptr_t)path);
    }
}

void obs_take_vector(obs_reader_t *reader, const uint64_t *word, size_t count) {
    for (size_t i = 0; i + 1 < count && word[i] != AT_NULL; i += 2) {
        reader->program_at = word[i] == AT_EXECFN ? word[i + 1] : reader->program_at;
        reader->vdso = word[i] == AT_SYSINFO_EHDR ? word[i + 1] : reader->vdso;
    }
}

void obs_close(obs_reader_t *reader) {
    if (reader->source != NULL && reader->source->close != NULL) {
        reader->source->close(reader);
    }
    for (size_t i = reader->mapping_count; i-- > 0;) { /* who shares a path comes behind */
        path_drop(reader, i);
    }
    obs_drop(reader->mapping);
    obs_drop(reader->chunk);
    obs_drop(reader->piece);
    reader->source = NULL;
    reader->mapping = NULL;
    reader->chunk = NULL;
    reader->piece = NULL;
}

bool obs_add_mapping(obs_reader_t *reader, const obs_mapping_t *mapping) {
    size_t count = reader->mapping_count;
    uint64_t end = count != 0 ? reader->mapping[count - 1].end : 0;
    if (mapping->start < end || mapping->end <= mapping->start || count >= MAPPINGS_MOST) {
        return obs_fail(reader, "its list of mappings contradicts itself");
    }
    if (count == reader->mapping_room) {
        size_t room = count != 0 ? count * 2 : 256;
        obs_mapping_t *all = obs_grow(reader->mapping, room * sizeof *all);
        if (all == NULL) {
            return obs_fail(reader, "no memory");
        }
        reader->mapping = all;
        reader->mapping_room = room;
    }
    const char *path = path_keep(reader, mapping->path);
    if (path == NULL) {
        return obs_fail(reader, "no memory");
    }
    reader->mapping[reader->mapping_count] = *mapping;
    reader->mapping[reader->mapping_count++].path = path;
    reader->mapped_bytes += mapping->end - mapping->start;
    return true;
}

void obs_cut_mappings(obs_reader_t *reader, uint64_t at) {
    while (reader->mapping_count != 0 && reader->mapping[reader->mapping_count - 1].end > at) {
        obs_mapping_t *last = &reader->mapping[reader->mapping_count - 1];
        uint64_t from = hak_most(last->start, at);
        reader->mapped_bytes -= last->end - from;
        last->end = from;
        if (from == last->start) {
            path_drop(reader, --reader->mapping_count);
        }
    }
}

/* NULL: none. */
static const obs_mapping_t *mapping_of(obs_reader_t *reader, uint64_t at) {
    const obs_mapping_t *all = reader->mapping;
    size_t low = 0, high = reader->mapping_count, last = reader->mapping_last;
    if (last < high && at >= all[last].start && at < all[last].end) {
        return &all[last];
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at >= all[middle].end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found = low < reader->mapping_count && at >= all[low].start;
    reader->mapping_last = is_found ? low : last;
    return is_found ? &all[low] : NULL;
}

bool obs_is_mapped(obs_reader_t *reader, uint64_t at, uint64_t bytes) {
    uint64_t end = at + bytes;
    while (at < end) {
        const obs_mapping_t *mapping = mapping_of(reader, at);
        if (mapping == NULL) {
            return false;
        }
        at = mapping->end;
    }
    return end - bytes <= end;
}

/* --- pages ------------------------------------------------------------------------------------ */

void obs_forget(obs_reader_t *reader) {
    for (size_t i = 0; i < CHUNKS; i++) {
        reader->chunk[i].number = 0;
    }
    for (size_t i = 0; i < PIECES; i++) {
        reader->piece[i].number = 0;
    }
}

static bool is_late(obs_reader_t *reader) {
    struct timespec now;
    if (reader->until_ns != 0 && !reader->is_late && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
        uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        reader->is_late = ns > reader->until_ns;
    }
    return reader->is_late;
}

/* NULL: not known. */
static const obs_chunk_t *chunk_of(obs_reader_t *reader, uint64_t at) {
    uint64_t number = (at >> OBS_CHUNK_LOG2) + 1;
    obs_chunk_t *chunk = &reader->chunk[number % CHUNKS];
    if (!reader->knows_resident) {
        return NULL;
    }
    if (chunk->number != number) {
        *chunk = (obs_chunk_t){.number = number};
        if (is_late(reader) ||
            !reader->source->look(reader, chunk, (number - 1) << OBS_CHUNK_LOG2)) {
            chunk->number = 0;
            reader->knows_resident = false;
            return NULL;
        }
    }
    return chunk;
}

/* Bits set among those from `from` on, below `to`. */
static unsigned bits_between(const uint64_t *word, size_t from, size_t to) {
    unsigned count = 0;
    while (from < to) {
        size_t inside = from % 64, step = hak_least(64 - inside, to - from);
        count += hak_popcount(word[from / 64] >> inside & hak_mask((unsigned)step));
        from += step;
    }
    return count;
}

/* Bytes of the OS pages of a range that are resident, or shared; SIZE_MAX: not known. */
static uint64_t pages_bytes(obs_reader_t *reader, uint64_t at, uint64_t bytes, bool is_shared) {
    uint64_t page = reader->page_bytes, sum = 0, end = at + bytes;
    for (at &= ~(page - 1); at < end;) {
        uint64_t base = at & ~(((uint64_t)1 << OBS_CHUNK_LOG2) - 1);
        uint64_t next = base + ((uint64_t)1 << OBS_CHUNK_LOG2), to = end < next ? end : next;
        const obs_chunk_t *chunk = chunk_of(reader, at);
        if (chunk == NULL) {
            return SIZE_MAX;
        }
        sum += bits_between(is_shared ? chunk->shared : chunk->resident, (at - base) / page,
                            (to - base + page - 1) / page);
        at = to;
    }
    return sum * page < bytes ? sum * page : bytes;
}

uint64_t obs_shared(obs_reader_t *reader, uint64_t at, uint64_t bytes) {
    uint64_t shared = pages_bytes(reader, at, bytes, true);
    return shared != SIZE_MAX ? shared : 0;
}

static uint64_t zeros_bytes(obs_reader_t *reader, uint64_t at, uint64_t bytes) {
    uint64_t sum = 0, end = at + bytes;
    const obs_mapping_t *mapping;
    while (at < end && (mapping = mapping_of(reader, at)) != NULL) {
        uint64_t to = hak_least(mapping->end, end);
        sum += mapping->has_zeros ? obs_shared(reader, at, to - at) : 0;
        at = to;
    }
    return sum;
}

uint64_t obs_resident(obs_reader_t *reader, uint64_t at, uint64_t bytes) {
    uint64_t all = pages_bytes(reader, at, bytes, false);
    return all != SIZE_MAX && reader->has_zeros ? hak_excess(all, zeros_bytes(reader, at, bytes))
                                                : all;
}

void obs_set_zeros(obs_reader_t *reader, size_t mapping) {
    reader->mapping[mapping].has_zeros = reader->has_zeros = true;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Whether the page is known to read as zero: it is not touched, which would make it resident. Which
 * pages are is looked up before any is read: reading a page of a file maps it. */
static bool page_is_zero(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at) {
    const obs_chunk_t *chunk = chunk_of(reader, at);
    uint64_t page = (at & (((uint64_t)1 << OBS_CHUNK_LOG2) - 1)) / reader->page_bytes;
    return chunk != NULL && mapping->is_zeroed && (chunk->held[page / 64] >> page % 64 & 1) == 0;
}

/* A short read within one piece, of which a call of the kernel brings all. false: it is none. */
static bool piece_read(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at, void *to,
                       size_t bytes) {
    uint64_t number = at / OBS_PIECE_BYTES + 1, base = at - at % OBS_PIECE_BYTES;
    obs_piece_t *piece = &reader->piece[number % PIECES];
    if (reader->is_exact || bytes > SHORT_BYTES || at - base + bytes > OBS_PIECE_BYTES ||
        base < mapping->start || mapping->end - base < OBS_PIECE_BYTES) {
        return false;
    }
    if (piece->number != number) {
        piece->number = 0;
        if (!reader->source->copy(reader, mapping, base, piece->data, OBS_PIECE_BYTES)) {
            return false;
        }
        piece->number = number;
    }
    memcpy(to, piece->data + (at - base), bytes);
    return true;
}

bool obs_read(obs_reader_t *reader, uint64_t at, void *to, size_t bytes) {
    char *out = to;
    while (bytes != 0) {
        const obs_mapping_t *mapping = mapping_of(reader, at);
        if (mapping == NULL || is_late(reader)) {
            return false;
        }
        bool is_zero = page_is_zero(reader, mapping, at);
        uint64_t end = (at & ~(reader->page_bytes - 1)) + reader->page_bytes;
        while (end < mapping->end && end - at < bytes &&
               page_is_zero(reader, mapping, end) == is_zero) {
            end += reader->page_bytes;
        }
        end = end < mapping->end ? end : mapping->end;
        size_t step = hak_least(end - at, bytes);
        if (is_zero) {
            memset(out, 0, step);
        } else if (!piece_read(reader, mapping, at, out, step) &&
                   !reader->source->copy(reader, mapping, at, out, step)) {
            return false;
        }
        at += step;
        out += step;
        bytes -= step;
    }
    return true;
}

bool obs_read_word(obs_reader_t *reader, uint64_t at, uint64_t *word) {
    return obs_read(reader, at, word, sizeof *word);
}
