/* SPDX-License-Identifier: MIT
 *
 * Reads the memory of a program: a running process, this one included, a core file, or an image
 * held in memory. No address is read that does not lie in its list of mappings, which is as old as
 * the reader: what is gone since cannot be read. */
#ifndef OBS_READER_H
#define OBS_READER_H

#include "base/words.h"

#include <stdio.h>
#include <string.h>

enum { OBS_COMMAND_BYTES = 16 }; /* of a process's name */

typedef enum obs_mapping_kind {
    OBS_MAPPING_FILE,
    OBS_MAPPING_SHARED, /* shared between processes */
    OBS_MAPPING_STACK,  /* of the first thread; other stacks are anonymous */
    OBS_MAPPING_BREAK,  /* the data segment, which brk extends */
    OBS_MAPPING_ANONYMOUS,
    OBS_MAPPING_KINDS
} obs_mapping_kind_t;

typedef struct obs_mapping {
    uint64_t start, end, offset; /* the last: in its file */
    uint64_t resident_bytes;     /* as the kernel tells; of a core file, as it has */
    const char *path;            /* or what the kernel names it; empty: no name */
    obs_mapping_kind_t kind;
    bool is_code;   /* may be executed */
    bool is_file;   /* has a name of a file */
    bool is_zeroed; /* where nothing is resident, nor swapped out, it reads as zero */
    bool has_zeros; /* its shared pages are the kernel's page of zeros: no part of RSS */
} obs_mapping_t;

enum { OBS_CHUNK_LOG2 = 22, OBS_CHUNK_WORDS = (1 << OBS_CHUNK_LOG2) / 4096 / 64 };

/* The pages of 4 MiB of addresses, a bit each. */
typedef struct obs_chunk {
    uint64_t number;                    /* of the chunk, plus 1; 0: none */
    uint64_t resident[OBS_CHUNK_WORDS]; /* in memory */
    uint64_t shared[OBS_CHUNK_WORDS];   /* in memory, but not of this process alone */
    uint64_t held[OBS_CHUNK_WORDS];     /* or swapped out: not known to be zero */
} obs_chunk_t;

/* A piece of memory, for short reads beside one another. */
enum { OBS_PIECE_BYTES = 4096 };
typedef struct obs_piece {
    uint64_t number; /* of the piece, plus 1; 0: none */
    char data[OBS_PIECE_BYTES];
} obs_piece_t;

typedef struct obs_reader obs_reader_t;

typedef struct obs_source {
    /* Copies bytes of one mapping. false: they cannot be read. */
    bool (*copy)(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at, void *to,
                 size_t bytes);
    /* Fills the bits of a chunk, all zero before. false: not known. */
    bool (*look)(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base);
    void (*close)(obs_reader_t *reader);
} obs_source_t;

struct obs_reader {
    const obs_source_t *source;
    void *own; /* of the source */
    obs_mapping_t *mapping;
    size_t mapping_count, mapping_room;
    size_t mapping_last;     /* the one found last */
    uint64_t mapped_bytes;   /* of all mappings: bounds what there can be in them */
    uint64_t resident_bytes; /* of all, roughly; 0: not known */
    uint64_t page_bytes;
    uint64_t now_ns;     /* its monotonic clock; 0: it has none */
    uint64_t written_ns; /* since 1970, when the core file was; 0: it is none */
    uint64_t program_at; /* the path that was executed, in its memory; 0: not known */
    uint64_t vdso;       /* where the kernel's object is; 0: not known */
    uint32_t pid;
    char command[OBS_COMMAND_BYTES];
    uint64_t until_ns; /* CLOCK_MONOTONIC, after which nothing is read; 0: none */
    bool is_late;      /* it was reached */
    bool is_core;
    bool is_exact;       /* no read brings more than is asked for */
    bool knows_resident; /* which pages are */
    bool knows_rss;      /* and of each mapping how much */
    bool has_zeros;      /* a mapping has */
    obs_chunk_t *chunk;  /* a cache, as is the next */
    obs_piece_t *piece;
    char error[512]; /* one line, without its end */
};

/* false: reader->error says why. Close it in either case. */
bool obs_open_process(obs_reader_t *reader, uint32_t pid);
/* The same, but for RSS of each mapping, for which the kernel walks all page tables. */
bool obs_open_process_quickly(obs_reader_t *reader, uint32_t pid);
/* The process that this is in. Its memory is read as another's is, by the kernel: what is gone
 * meanwhile cannot be read, and stops nobody. */
bool obs_open_self(obs_reader_t *reader, bool wants_rss);
/* Its RSS, and the peak of it since exec; 0: not known. */
uint64_t obs_process_rss(const obs_reader_t *reader);
uint64_t obs_process_peak(const obs_reader_t *reader);
/* Whether the thread with that file `status` has a seccomp filter. */
bool obs_process_filter(const obs_reader_t *reader, const char *status);
/* A descriptor of one of its files in /proc; -1: errno says why. */
int obs_process_open(const obs_reader_t *reader, const char *name);
/* Passes the lines of such a file, without their ends, until one says false. Returns 0, or an error
 * number. */
typedef bool obs_take_line_t(char *line, void *context);
int obs_process_lines(const obs_reader_t *reader, const char *name, obs_take_line_t *take,
                      void *context);
/* Whether it is still there: if it was waited for, its PID may have been another's meanwhile. */
bool obs_process_lives(const obs_reader_t *reader);
bool obs_open_core(obs_reader_t *reader, const char *path);
void obs_close(obs_reader_t *reader);

/* To a process alone; the first once, before what is written to is looked for. */
bool obs_open_to_write(obs_reader_t *reader);
bool obs_write(obs_reader_t *reader, uint64_t at, const void *from, size_t bytes);

bool obs_read(obs_reader_t *reader, uint64_t at, void *to, size_t bytes);
bool obs_read_word(obs_reader_t *reader, uint64_t at, uint64_t *word);
/* Whether all of the range is mapped. */
bool obs_is_mapped(obs_reader_t *reader, uint64_t at, uint64_t bytes);
/* Resident bytes of the OS pages of a range; SIZE_MAX: not known. Pages that were only read are the
 * kernel's page of zeros, and count unless their mapping is known to have it. */
uint64_t obs_resident(obs_reader_t *reader, uint64_t at, uint64_t bytes);
/* Those of them that are the page of zeros, or that a forked child has, too. */
uint64_t obs_shared(obs_reader_t *reader, uint64_t at, uint64_t bytes);
/* From now on the shared pages of this mapping do not count. */
void obs_set_zeros(obs_reader_t *reader, size_t mapping);
/* What was read is old: from now on it is read again. */
void obs_forget(obs_reader_t *reader);

/* --- for sources ------------------------------------------------------------------------------ */
bool obs_begin(obs_reader_t *reader, const obs_source_t *source);
/* Adds a mapping, and a copy of its path; they come in order. false: no memory. */
bool obs_add_mapping(obs_reader_t *reader, const obs_mapping_t *mapping);
/* Takes back what was added of the addresses from `at` on. */
void obs_cut_mappings(obs_reader_t *reader, uint64_t at);
/* Takes what it needs of the kernel's vector of words, in pairs, up to a pair that begins with 0.
 */
void obs_take_vector(obs_reader_t *reader, const uint64_t *word, size_t count);
/* Makes a text of another program's harmless in a line, a terminal and JSON: "?" for what is not.
 */
void obs_tame(char *text);
/* Sets the error, tamed, and returns false. */
bool obs_fail(obs_reader_t *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- ELF -------------------------------------------------------------------------------------- */

/* What the notes of an object lie in: memory, or a file. */
typedef struct obs_elf {
    bool (*read)(const struct obs_elf *elf, uint64_t at, void *to, size_t bytes);
    void *context;
    uint64_t base; /* of the ELF header */
    bool is_file;  /* addresses are offsets in the file */
} obs_elf_t;

typedef struct obs_note {
    uint64_t at, bytes; /* of its content */
} obs_note_t;

/* Finds a note by name and type. */
bool obs_elf_note(const obs_elf_t *elf, const char *name, uint32_t type, obs_note_t *note);
/* The same among the notes there, which begin at multiples of `align`. */
bool obs_elf_note_in(const obs_elf_t *elf, obs_note_t notes, uint64_t align, const char *name,
                     uint32_t type, obs_note_t *note);
/* The same in the memory of a program, whose object begins at `base`. */
bool obs_memory_note(obs_reader_t *reader, uint64_t base, const char *name, uint32_t type,
                     obs_note_t *note);

#endif
