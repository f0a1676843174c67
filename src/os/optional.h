/* SPDX-License-Identifier: MIT
 *
 * Services that a port may lack: each may always fail, as its comment says; the core then takes a
 * slower or plainer way. The rules of os.h hold. docs/porting.md lists the losses. */
#ifndef HAK_OS_OPTIONAL_H
#define HAK_OS_OPTIONAL_H

#include "os/os.h"

/* --- control groups --------------------------------------------------------------------------- */
/* CPU time left by control groups when hak_os_memory_limit opened their files, in CPUs, rounded up;
 * HAK_OS_NO_QUOTA: no bound is known. */
unsigned hak_os_cpu_quota(void);
#define HAK_OS_NO_QUOTA (~0u)
/* Parses "QUOTA PERIOD" of cpu.max; any other text is no quota. */
unsigned hak_os_quota_parse(const char *text, size_t length);
/* The path of the version 2 group in the text of /proc/self/cgroup, 512 bytes; "" for the root. */
bool hak_os_cgroup_path(const char *text, char *path);

/* Memory of the process's group or one above it, the one with least room: its limit (the lesser of
 * memory.high and memory.max), and its used part without file pages that the kernel can drop.
 * false: no limit is known. Opens the files once, if alone; those of groups with a limit stay open
 * for calls in any thread (KEPT-1). */
typedef struct hak_os_memory {
    uint64_t limit_bytes, used_bytes;
} hak_os_memory_t;
bool hak_os_memory_limit(hak_os_memory_t *memory);

/* --- memory ----------------------------------------------------------------------------------- */
/* Advises the kernel for or against backing the range with huge pages of 2 MiB. false: it has none,
 * or would need one mapping too many. */
bool hak_os_advise_huge(void *base, size_t bytes, bool is_wanted);
/* Of a huge page that was purged in part, the kernel keeps all until memory is short. This makes
 * it give the part back at once. false: it cannot (Linux before 5.4). */
bool hak_os_split_huge(void *base, size_t bytes);
/* Whether the kernel backs unadvised ranges with huge pages ("always"). Detecting it opens a file,
 * unless there are other threads; false before. */
void hak_os_huge_detect(void);
bool hak_os_huge_is_default(void);
/* The same, or it is not known. */
bool hak_os_huge_may_be_default(void);
/* From now on only advised ranges, of the whole process and of programs that it starts. false: the
 * kernel cannot (Linux before 6.18). */
bool hak_os_huge_only_advised(void);
/* What is in 4 bytes, perhaps inaccessible, at a multiple of 4. NOTHING: they are zero, or cannot
 * be read; UNKNOWN: the kernel does not tell. */
typedef enum { HAK_OS_PEEK_UNKNOWN, HAK_OS_PEEK_NOTHING, HAK_OS_PEEK_OTHER } hak_os_peek_t;
hak_os_peek_t hak_os_peek(const void *word);
/* Grows or shrinks a mapping at its address; false: realloc copies. */
bool hak_os_resize(void *base, size_t old_bytes, size_t new_bytes);
/* Whether the range is surely a single mapping of the kernel: only then its pages can be moved. A
 * block may span several after a join of cached ones, or after the program changed attributes of a
 * part. */
bool hak_os_is_one_mapping(void *base, size_t bytes);
/* Moves pages onto the reservation `target` and extends them to new_bytes. keeps_source: the old
 * range stays mapped and reads as zero (pages in the middle of a mapping); else a whole mapping
 * moves. After failure the old range is untouched. The reservation is always used up. */
bool hak_os_move(void *base, size_t bytes, void *target, size_t new_bytes, bool keeps_source);
/* Whether 8 bytes are surely readable. Always false: other allocators' blocks are unknown. */
bool hak_os_is_readable(const void *address);
/* Current end of the data segment ("brk"). */
uintptr_t hak_os_data_end(void);

/* --- code and stacks -------------------------------------------------------------------------- */
/* Whether the address lies in our code: the shared library, or the archive's part of a program. */
bool hak_os_is_own_code(uintptr_t address);
/* Whether `low` and `high`, which is not below it, lie in one mapping of the kernel. Reads nothing
 * there. Also true above the initial stack; false where the kernel does not tell. */
bool hak_os_is_same_mapping(const void *low, const void *high);

/* About where the stack of the thread ends, if the address is in it: no mapping is looked at. */
uintptr_t hak_os_stack_end(uintptr_t at);
/* The unwind tables of the loaded object that code lies in. No lock. `is_sure`: it stays loaded.
 * false: in none that is known, or not sure to stay. */
typedef struct hak_os_unwind {
    uintptr_t header;   /* .eh_frame_hdr, a sorted table; 0: none */
    uintptr_t from, to; /* the segment that they lie in */
} hak_os_unwind_t;
bool hak_os_unwind_tables(uintptr_t code, bool is_sure, hak_os_unwind_t *tables);
/* 16 bits that differ, but for bad luck, between objects that lie at the same address one after the
 * other. No lock. 0: in none that is unloaded. */
uintptr_t hak_os_object_mark(uintptr_t code);
/* The function by that name that the object with that first byte defines for others; NULL: none
 * that is known. No lock: the object has to stay loaded meanwhile. */
void *hak_os_definition(uintptr_t start, const char *name);
uintptr_t hak_os_program_start(void); /* the first byte of the program; 0: not known */
/* Whether our library defines a function by that name for others. */
bool hak_os_exports(const char *name);
/* Visits the names of the objects that the file of an object needs, and of what it uses but does
 * not define, until a visit says false. false: one did, or the file tells not all. */
typedef bool hak_os_import_visit_t(const char *name, bool is_object);
bool hak_os_visit_imports(const char *path, hak_os_import_visit_t *visit);
/* Whether the code there, in a loaded object, returns from a signal handler. */
bool hak_os_is_signal_return(uintptr_t code);
/* What the kernel saved for it, at the stack pointer: hak_os_signal_bytes. */
typedef struct hak_os_registers {
    uintptr_t code, stack, frame, link;
} hak_os_registers_t;
extern const size_t hak_os_signal_bytes;
hak_os_registers_t hak_os_signal_registers(uintptr_t record);

/* --- hardened builds only --------------------------------------------------------------------- */
/* Makes OS pages of our data read-only for good: with mseal, for which the process may have no
 * filter of system calls, not even mprotect changes them again. */
bool hak_os_seal(void *base, size_t bytes);
/* Leaves a random distance to existing mappings; the next ones follow below it. */
void hak_os_scatter(void);
/* HAK_MTE: from now on an access of this thread, or of threads it starts, faults if the tag of the
 * address is not the memory's. false: no tags here, or there are other threads already. */
bool hak_os_tags_start(void);
/* Allows tags in our memory, 0 at first and after a purge; without hak_os_tags_start, always 0. */
void hak_os_tags_allow(void *base, size_t bytes);

/* --- names and threads ------------------------------------------------------------------------ */
/* Last part of the executed path; "": the kernel does not tell. */
const char *hak_os_program(void);
bool hak_os_is_alone(void); /* there is one thread; also false where that is unknown */

/* --- traps ------------------------------------------------------------------------------------ */
typedef struct hak_os_trap {
    const void *address; /* accessed address */
    const char *access;  /* "read", "write", or "access": not known */
    const void *stack;   /* stack pointer of the accessing function */
    const void *frame;   /* its frame pointer, or anything */
    uintptr_t code;      /* address of the instruction */
    uintptr_t link;      /* aarch64: the link register */
    bool is_tag;         /* wrong tag; the address is accessible */
} hak_os_trap_t;

/* Called in the signal handler for every SIGSEGV and SIGBUS that the kernel raises for an access.
 * true: restore the previous handler and repeat the access, which by default ends the process.
 * false: continue as without our handler. */
typedef bool hak_os_trap_handler_t(const hak_os_trap_t *trap);
bool hak_os_trap_install(hak_os_trap_handler_t *handler);

/* Calls `handler` when the signal comes, in any thread and in its middle: it may store a word, no
 * more. false: the program handles or ignores the signal already, or it is none. */
typedef void hak_os_signal_handler_t(void);
bool hak_os_signal_install(int signal, hak_os_signal_handler_t *handler);

/* The kernel's module yama no longer keeps others of the user from reading this process, until it
 * forks; without the module nothing happens. */
void hak_os_let_observe(void);

/* --- files ------------------------------------------------------------------------------------ */
/* Reads the head of a file; returns the bytes read, 0 on failure. */
size_t hak_os_read_file(const char *path, char *buffer, size_t capacity);
/* The same, and keeps the file open; reads nothing if capacity is 0. -1: it cannot be opened. */
int hak_os_open_head(const char *path, char *buffer, size_t capacity, size_t *length);
/* The text of a symbolic link, zero-terminated and cut. false: there is none. */
bool hak_os_read_link(const char *path, char *buffer, size_t capacity);
/* Reads a file through the buffer, line by line: `take` gets each line as a string, without its
 * end; of a line that does not fit, its head. false: it cannot be read. */
typedef void hak_os_line_t(char *line, void *context);
bool hak_os_read_lines(const char *path, char *buffer, size_t capacity, hak_os_line_t *take,
                       void *context);

/* --- mappings of the process ------------------------------------------------------------------ */
typedef struct hak_os_mapping {
    uintptr_t start, end, offset;
    bool is_code;
    const char *path;
} hak_os_mapping_t;

/* Visits all mappings, lowest first, read through the buffer. false: the file cannot be read. */
typedef void hak_os_mapping_visit_t(const hak_os_mapping_t *mapping, void *context);
bool hak_os_mappings(char *buffer, size_t capacity, hak_os_mapping_visit_t *visit, void *context);
/* The peak of resident bytes since exec; 0: the kernel does not tell. */
uint64_t hak_os_resident_peak(void);

#endif
