/* SPDX-License-Identifier: MIT
 *
 * A core file: ELF, a segment for each mapping. What the kernel left out of it (code and constants)
 * is read from the files that its note names, if they have the build ID of those that were mapped.
 * An OS page is resident if the file has it: the kernel leaves a hole for others. In a file without
 * holes, one that was copied or came through a pipe, a page of zeros counts as none. */
#include "reader.h"

#include "base/bits.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEGMENTS_MOST = 1 << 20,
    FILE_NOTE_MOST = 256 << 20, /* of the list of mapped files */
    BUILD_ID_MOST = 64,
    VECTOR_WORDS = 128, /* of the kernel's, of which it has some 50 */
    ADDRESS_BITS = 57,  /* of programs, on the largest machines */
    BYTES_LOG2 = 44, /* of memory in it: it is looked at in chunks, whether or not it has holes */
};

/* A file that was mapped. */
typedef struct core_file {
    const char *path;
    uint64_t base;  /* where its first byte was; 0: nowhere */
    int descriptor; /* -1: not open */
    bool is_tried;
} core_file_t;

/* A mapping of a file: where it lies in it. */
typedef struct core_mapped {
    uint64_t start, end, offset;
    size_t file;
} core_mapped_t;

typedef struct core {
    int descriptor;
    uint64_t bytes;      /* of the file */
    uint64_t part_bytes; /* of it, in segments so far */
    bool has_holes;
    Elf64_Phdr *segment; /* of mapping i */
    char *names;         /* the note */
    core_mapped_t *mapped;
    size_t mapped_count;
    core_file_t *file;
    size_t file_count;
} core_t;

static bool read_at(int descriptor, uint64_t at, void *to, size_t bytes) {
    return at <= INT64_MAX && pread(descriptor, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* --- files that were mapped ------------------------------------------------------------------- */

static bool file_read(const obs_elf_t *elf, uint64_t at, void *to, size_t bytes) {
    return read_at(*(const int *)elf->context, at, to, bytes);
}

/* Only from the core file comes what was mapped: this file is not open yet. */
static bool file_same(obs_reader_t *reader, const core_file_t *file, int descriptor) {
    unsigned char was[BUILD_ID_MOST], is[BUILD_ID_MOST];
    const obs_elf_t elf = {.read = file_read, .context = &descriptor, .is_file = true};
    obs_note_t before, now;
    return file->base != 0 &&
           obs_memory_note(reader, file->base, "GNU", NT_GNU_BUILD_ID, &before) &&
           obs_elf_note(&elf, "GNU", NT_GNU_BUILD_ID, &now) && before.bytes == now.bytes &&
           now.bytes != 0 && now.bytes <= BUILD_ID_MOST &&
           obs_read(reader, before.at, was, before.bytes) &&
           read_at(descriptor, now.at, is, now.bytes) && memcmp(was, is, now.bytes) == 0;
}

/* Opens a regular file and nothing else: opening a device or a FIFO may do something. */
static int file_open_plain(const char *path, const char **error) {
    char by_number[32];
    struct stat status;
    int place = path[0] == '/' ? open(path, O_PATH | O_CLOEXEC) : -1, descriptor = -1;
    *error = path[0] == '/' ? NULL : "not an absolute path";
    if (place >= 0 && fstat(place, &status) == 0 && !S_ISREG(status.st_mode)) {
        *error = "not a regular file";
    } else if (place >= 0) {
        snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", place);
        descriptor = open(by_number, O_RDONLY | O_CLOEXEC);
    }
    *error = *error != NULL ? *error : strerror(errno);
    if (place >= 0) {
        close(place);
    }
    return descriptor;
}

/* Opens it once. Without its head and notes in the core file it cannot be compared, and is not
 * taken. */
static bool file_open(obs_reader_t *reader, core_file_t *file) {
    const char *error;
    if (file->is_tried) {
        return file->descriptor >= 0;
    }
    file->is_tried = true;
    int descriptor = file_open_plain(file->path, &error);
    if (descriptor < 0) {
        return obs_fail(reader, "the core file needs %.200s: %s", file->path, error);
    }
    if (file_same(reader, file, descriptor)) {
        file->descriptor = descriptor;
        return true;
    }
    close(descriptor);
    return obs_fail(reader,
                    "the core file needs %.200s as it was: its build ID differs, or is not known",
                    file->path);
}

/* The first that ends above the address. */
static size_t mapped_above(const core_t *core, uint64_t at) {
    size_t low = 0, high = core->mapped_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->mapped[middle].end > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static const core_mapped_t *mapped_at(const core_t *core, uint64_t at) {
    size_t i = mapped_above(core, at);
    return i < core->mapped_count && core->mapped[i].start <= at ? &core->mapped[i] : NULL;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool copy_by_file(obs_reader_t *reader, uint64_t at, void *to, size_t bytes) {
    core_t *core = reader->own;
    const core_mapped_t *mapped = mapped_at(core, at);
    if (mapped == NULL || mapped->end - at < bytes) {
        return false;
    }
    core_file_t *file = &core->file[mapped->file];
    return file_open(reader, file) &&
           read_at(file->descriptor, mapped->offset + (at - mapped->start), to, bytes);
}

static bool core_copy(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at, void *to,
                      size_t bytes) {
    core_t *core = reader->own;
    const Elf64_Phdr *segment = &core->segment[mapping - reader->mapping];
    uint64_t inside = at - mapping->start;
    size_t here = inside < segment->p_filesz ? hak_least(segment->p_filesz - inside, bytes) : 0;
    if (here != 0 && !read_at(core->descriptor, segment->p_offset + inside, to, here)) {
        return obs_fail(reader, "the core file is cut off");
    }
    return here == bytes || copy_by_file(reader, at + here, (char *)to + here, bytes - here);
}

static bool is_zero(const char *data, size_t bytes) {
    return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

static void chunk_set(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base, uint64_t from,
                      uint64_t to) {
    uint64_t page = reader->page_bytes;
    for (from = hak_align_down(from, page); from < to; from += page) {
        uint64_t i = (from - base) / page;
        chunk->resident[i / 64] |= 1ull << i % 64;
        chunk->held[i / 64] |= 1ull << i % 64;
    }
}

/* The pages of a part of a segment that the file has. */
static bool look_at_part(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base, uint64_t at,
                         uint64_t offset, uint64_t bytes) {
    const core_t *core = reader->own;
    uint64_t page = reader->page_bytes, end = offset + bytes, here = offset;
    char data[1 << 16];
    for (; !core->has_holes && here < end && page <= sizeof data; here += page) {
        size_t length = hak_least(page, end - here);
        if (!read_at(core->descriptor, here, data, length)) {
            return obs_fail(reader, "the core file is cut off");
        }
        if (!is_zero(data, length)) {
            chunk_set(reader, chunk, base, at + (here - offset), at + (here - offset) + 1);
        }
    }
    while (here < end) {
        off_t from = lseek(core->descriptor, (off_t)here, SEEK_DATA);
        if (from < 0 || (uint64_t)from >= end) {
            return true;
        }
        off_t to = lseek(core->descriptor, from, SEEK_HOLE);
        uint64_t first = hak_align_down((uint64_t)from - offset, page);
        here = to < 0 ? end : hak_least((uint64_t)to, end);
        chunk_set(reader, chunk, base, at + first, at + (here - offset));
    }
    return true;
}

/* The first mapping that ends above the address. */
static size_t mapping_above(const obs_reader_t *reader, uint64_t at) {
    size_t low = 0, high = reader->mapping_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reader->mapping[middle].end > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool core_look(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base) {
    const core_t *core = reader->own;
    uint64_t end = base + ((uint64_t)1 << OBS_CHUNK_LOG2);
    for (size_t i = mapping_above(reader, base); i < reader->mapping_count; i++) {
        const obs_mapping_t *mapping = &reader->mapping[i];
        const Elf64_Phdr *segment = &core->segment[i];
        uint64_t from = hak_most(base, mapping->start);
        uint64_t to = hak_least(end, mapping->start + segment->p_filesz);
        if (mapping->start >= end) {
            break;
        }
        if (from < to && !look_at_part(reader, chunk, base, from,
                                       segment->p_offset + (from - mapping->start), to - from)) {
            return false;
        }
    }
    return true;
}

static void core_close(obs_reader_t *reader) {
    core_t *core = reader->own;
    if (core == NULL) {
        return;
    }
    for (size_t i = 0; i < core->file_count; i++) {
        if (core->file[i].descriptor >= 0) {
            close(core->file[i].descriptor);
        }
    }
    if (core->descriptor >= 0) {
        close(core->descriptor);
    }
    free(core->segment);
    free(core->names);
    free(core->mapped);
    free(core->file);
    free(core);
}

static const obs_source_t core_source = {core_copy, core_look, core_close};

/* --- its notes -------------------------------------------------------------------------------- */

/* The number of a path among the files; files are listed one after the other. */
static bool file_number(core_t *core, const char *path, size_t *number) {
    for (size_t i = core->file_count; i-- > 0;) {
        if (strcmp(core->file[i].path, path) == 0) {
            *number = i;
            return true;
        }
        if (core->file_count - i > 64) {
            break; /* it is listed twice then, which does no harm */
        }
    }
    if ((core->file_count & (core->file_count - 1)) == 0) {
        size_t room = core->file_count != 0 ? core->file_count * 2 : 16;
        core_file_t *all = realloc(core->file, room * sizeof *all);
        if (all == NULL) {
            return false;
        }
        core->file = all;
    }
    *number = core->file_count++;
    core->file[*number] = (core_file_t){.path = path, .descriptor = -1};
    return true;
}

/* NT_FILE: count, page size, then start, end and page offset of each, then their names. */
static bool files_parse(obs_reader_t *reader, size_t bytes) {
    core_t *core = reader->own;
    uint64_t head[2], entry[3];
    memcpy(head, core->names, sizeof head);
    size_t most = (bytes - sizeof head) / sizeof entry;
    if (head[0] > most || head[1] == 0 || head[1] > 1 << 20) {
        return false;
    }
    size_t count = (size_t)head[0];
    if (head[1] == 4 << 10 || head[1] == 16 << 10 || head[1] == 64 << 10) {
        reader->page_bytes = head[1];
    }
    const char *name = core->names + sizeof head + count * sizeof entry, *end = core->names + bytes;
    core->mapped = calloc(count + 1, sizeof *core->mapped);
    for (size_t i = 0; core->mapped != NULL && i < count; i++) {
        memcpy(entry, core->names + sizeof head + i * sizeof entry, sizeof entry);
        size_t length = strnlen(name, (size_t)(end - name)), number;
        if (length == (size_t)(end - name) || entry[1] <= entry[0] ||
            (i != 0 && entry[0] < core->mapped[i - 1].end) || !file_number(core, name, &number)) {
            return false;
        }
        uint64_t offset = entry[2] * head[1];
        core->mapped[core->mapped_count++] = (core_mapped_t){entry[0], entry[1], offset, number};
        core_file_t *file = &core->file[number];
        file->base = offset == 0 ? entry[0] : file->base;
        name += length + 1;
    }
    return core->mapped != NULL;
}

static bool core_read(const obs_elf_t *elf, uint64_t at, void *to, size_t bytes) {
    return read_at(((const core_t *)elf->context)->descriptor, at, to, bytes);
}

/* Finds a note of the core file: there is one segment of notes, which may be large. */
static bool core_note(const core_t *core, const Elf64_Phdr *notes, uint32_t type,
                      obs_note_t *note) {
    const obs_elf_t elf = {.read = core_read, .context = (void *)(uintptr_t)core, .is_file = true};
    const obs_note_t all = {notes->p_offset, notes->p_filesz};
    return obs_elf_note_in(&elf, all, 4, "CORE", type, note);
}

/* Of several lists of files the first counts. */
static void notes_read(obs_reader_t *reader, const Elf64_Phdr *notes) {
    core_t *core = reader->own;
    struct elf_prpsinfo about;
    uint64_t vector[VECTOR_WORDS];
    obs_note_t note;
    if (core_note(core, notes, NT_PRPSINFO, &note) && note.bytes >= sizeof about &&
        read_at(core->descriptor, note.at, &about, sizeof about)) {
        reader->pid = (uint32_t)about.pr_pid;
        memcpy(reader->command, about.pr_fname, sizeof reader->command - 1);
    }
    if (core_note(core, notes, NT_AUXV, &note) &&
        read_at(core->descriptor, note.at, vector, hak_least(note.bytes, sizeof vector))) {
        obs_take_vector(reader, vector, hak_least(note.bytes, sizeof vector) / sizeof *vector);
    }
    if (core->names == NULL && core_note(core, notes, NT_FILE, &note) && note.bytes >= 16 &&
        note.bytes <= FILE_NOTE_MOST) {
        core->names = malloc((size_t)note.bytes);
        if (core->names == NULL || !read_at(core->descriptor, note.at, core->names, note.bytes) ||
            !files_parse(reader, (size_t)note.bytes)) {
            core->mapped_count = 0;
        }
    }
}

/* --- its segments ----------------------------------------------------------------------------- */

static bool segment_add(obs_reader_t *reader, const Elf64_Phdr *segment) {
    core_t *core = reader->own;
    uint64_t end = segment->p_vaddr + segment->p_memsz;
    if (segment->p_memsz == 0 || segment->p_vaddr >= 1ull << ADDRESS_BITS) {
        return true; /* the kernel's vsyscall page is above all */
    }
    if (segment->p_filesz > segment->p_memsz || segment->p_offset > INT64_MAX - segment->p_filesz ||
        end < segment->p_vaddr || end > 1ull << ADDRESS_BITS) {
        return obs_fail(reader, "the core file contradicts itself");
    }
    if (segment->p_offset + segment->p_filesz > core->bytes) {
        return obs_fail(reader, "the core file is cut off");
    }
    core->part_bytes += segment->p_filesz;
    if (core->part_bytes > core->bytes || core->part_bytes > 1ull << BYTES_LOG2) {
        return obs_fail(reader, "the core file contradicts itself"); /* they share its bytes */
    }
    const core_mapped_t *mapped = mapped_at(core, segment->p_vaddr);
    obs_mapping_t mapping = {.start = segment->p_vaddr,
                             .end = end,
                             .offset = mapped != NULL ? mapped->offset : 0,
                             .path = mapped != NULL ? core->file[mapped->file].path
                                     : segment->p_vaddr == reader->vdso ? "[vdso]"
                                                                        : "",
                             .is_code = (segment->p_flags & PF_X) != 0,
                             .kind = mapped != NULL ? OBS_MAPPING_FILE : OBS_MAPPING_ANONYMOUS,
                             .is_file = mapped != NULL,
                             .is_zeroed = mapped == NULL && segment->p_filesz == segment->p_memsz};
    mapping.offset += mapped != NULL ? segment->p_vaddr - mapped->start : 0;
    core->segment[reader->mapping_count] = *segment;
    return obs_add_mapping(reader, &mapping);
}

/* A debugger's core file has no segment for what it leaves to the mapped files, which is code and
 * constants. */
static bool left_out_add(obs_reader_t *reader, uint64_t from, uint64_t to) {
    core_t *core = reader->own;
    for (size_t i = mapped_above(core, from); i < core->mapped_count; i++) {
        uint64_t start = hak_most(from, core->mapped[i].start);
        uint64_t end = hak_least(to, core->mapped[i].end);
        const Elf64_Phdr none = {.p_vaddr = start, .p_memsz = end - start, .p_flags = PF_R | PF_X};
        if (start >= to) {
            break;
        }
        if (!segment_add(reader, &none)) {
            return false;
        }
    }
    return true;
}

static bool segments_add(obs_reader_t *reader, const Elf64_Phdr *all, size_t count) {
    core_t *core = reader->own;
    uint64_t end = 0;
    core->segment = calloc(2 * count + core->mapped_count + 1, sizeof *core->segment);
    if (core->segment == NULL) {
        return obs_fail(reader, "no memory");
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].p_type != PT_LOAD) {
            continue;
        }
        if (!left_out_add(reader, end, all[i].p_vaddr) || !segment_add(reader, &all[i])) {
            return false;
        }
        end = hak_most(end, all[i].p_vaddr + all[i].p_memsz);
    }
    return left_out_add(reader, end, UINT64_MAX);
}

/* Resident bytes of each mapping: what the file has of it. */
static void residents_set(obs_reader_t *reader) {
    for (size_t i = 0; i < reader->mapping_count; i++) {
        obs_mapping_t *mapping = &reader->mapping[i];
        uint64_t bytes = ((core_t *)reader->own)->segment[i].p_filesz;
        uint64_t resident = bytes != 0 ? obs_resident(reader, mapping->start, bytes) : 0;
        mapping->resident_bytes = reader->knows_resident ? resident : 0;
    }
    reader->knows_rss = reader->knows_resident;
}

static bool segments_read(obs_reader_t *reader, const Elf64_Ehdr *head, size_t count) {
    core_t *core = reader->own;
    Elf64_Phdr *all = calloc(count, sizeof *all);
    bool is_good = all != NULL;
    if (!is_good) {
        obs_fail(reader, "no memory");
    } else if (!read_at(core->descriptor, head->e_phoff, all, count * sizeof *all)) {
        is_good = obs_fail(reader, "the core file is cut off");
    }
    for (size_t i = 0; is_good && i < count; i++) {
        if (all[i].p_type == PT_NOTE) {
            notes_read(reader, &all[i]);
        }
    }
    is_good = is_good && segments_add(reader, all, count);
    free(all);
    return is_good;
}

/* More than 65534 segments are counted by the first section header. */
static bool segments_count(const core_t *core, const Elf64_Ehdr *head, size_t *count) {
    Elf64_Shdr section;
    *count = head->e_phnum;
    if (head->e_phnum == PN_XNUM) {
        if (!read_at(core->descriptor, head->e_shoff, &section, sizeof section)) {
            return false;
        }
        *count = section.sh_info;
    }
    return *count != 0 && *count <= SEGMENTS_MOST;
}

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#else
enum { MACHINE = EM_AARCH64 };
#endif

static bool core_begin(obs_reader_t *reader, const char *path) {
    core_t *core = reader->own;
    struct stat status;
    Elf64_Ehdr head;
    size_t count;
    core->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (core->descriptor < 0 || fstat(core->descriptor, &status) != 0) {
        return obs_fail(reader, "%.300s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) || !read_at(core->descriptor, 0, &head, sizeof head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_CORE) {
        return obs_fail(reader, "%.300s is no core file", path);
    }
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != MACHINE) {
        return obs_fail(reader, "%.300s is the core file of another kind of machine", path);
    }
    if (head.e_phentsize != sizeof(Elf64_Phdr) || !segments_count(core, &head, &count)) {
        return obs_fail(reader, "%.300s: the core file contradicts itself", path);
    }
    core->bytes = (uint64_t)status.st_size;
    reader->written_ns =
        (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    off_t hole = lseek(core->descriptor, 0, SEEK_HOLE);
    core->has_holes = hole >= 0 && hole < status.st_size;
    return segments_read(reader, &head, count);
}

bool obs_open_core(obs_reader_t *reader, const char *path) {
    core_t *core = calloc(1, sizeof *core);
    if (!obs_begin(reader, &core_source) || core == NULL) {
        free(core);
        return obs_fail(reader, "no memory");
    }
    core->descriptor = -1;
    reader->own = core;
    reader->is_core = reader->knows_resident = true;
    if (!core_begin(reader, path)) {
        return false;
    }
    residents_set(reader);
    return reader->error[0] == '\0';
}
