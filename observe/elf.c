/* SPDX-License-Identifier: MIT
 *
 * Notes of ELF objects. Every number in them is read from another program: none is trusted. */
#include "reader.h"

#include "base/bits.h"

#include <elf.h>

enum {
    PARTS_MOST = 256,            /* program headers */
    NOTES_MOST_BYTES = 64 << 10, /* of an object that was loaded, and in its file */
};

bool obs_elf_note_in(const obs_elf_t *elf, obs_note_t notes, uint64_t align, const char *name,
                     uint32_t type, obs_note_t *note) {
    uint64_t at = notes.at, end = notes.at + notes.bytes;
    size_t name_bytes = strlen(name) + 1;
    char text[16];
    Elf64_Nhdr head;
    while (end >= at && end - at >= sizeof head && elf->read(elf, at, &head, sizeof head)) {
        uint64_t content = at + hak_align_up(sizeof head + head.n_namesz, align);
        uint64_t next = content + hak_align_up(head.n_descsz, align);
        if (content + head.n_descsz > end || next <= at) {
            return false;
        }
        if (head.n_type == type && head.n_namesz == name_bytes && name_bytes <= sizeof text &&
            elf->read(elf, at + sizeof head, text, name_bytes) &&
            memcmp(text, name, name_bytes) == 0) {
            *note = (obs_note_t){content, head.n_descsz};
            return true;
        }
        if (next >= end) {
            return false;
        }
        at = next;
    }
    return false;
}

bool obs_elf_note(const obs_elf_t *elf, const char *name, uint32_t type, obs_note_t *note) {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    uint64_t first = 0; /* address that the file gives its first byte */
    bool has_first = elf->is_file;
    if (!elf->read(elf, elf->base, &head, sizeof head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof part || head.e_phnum > PARTS_MOST) {
        return false;
    }
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!elf->read(elf, elf->base + head.e_phoff + i * sizeof part, &part, sizeof part)) {
            return false;
        }
        if (part.p_type == PT_LOAD && !has_first) {
            first = part.p_vaddr - part.p_offset;
            has_first = true;
        }
    }
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!elf->read(elf, elf->base + head.e_phoff + i * sizeof part, &part, sizeof part)) {
            return false;
        }
        uint64_t at = elf->base + (elf->is_file ? part.p_offset : part.p_vaddr - first);
        if (part.p_type == PT_NOTE && part.p_filesz <= NOTES_MOST_BYTES &&
            obs_elf_note_in(elf, (obs_note_t){at, part.p_filesz}, part.p_align == 8 ? 8 : 4, name,
                            type, note)) {
            return true;
        }
    }
    return false;
}

static bool memory_read(const obs_elf_t *elf, uint64_t at, void *to, size_t bytes) {
    return obs_read(elf->context, at, to, bytes);
}

bool obs_memory_note(obs_reader_t *reader, uint64_t base, const char *name, uint32_t type,
                     obs_note_t *note) {
    const obs_elf_t elf = {.read = memory_read, .context = reader, .base = base};
    return obs_elf_note(&elf, name, type, note);
}
