/* SPDX-License-Identifier: MIT
 *
 * The contract with the operating system: the only place with system calls and OS conditionals.
 *
 * Rules for every function here:
 *   - errno is left untouched (system calls are made directly, not through libc);
 *   - no allocation, no lock, async-signal-safe;
 *   - failure is a return value, never an abort;
 *   - sizes and addresses of mappings are multiples of hak_os_page_bytes(). */
#ifndef HAK_OS_OS_H
#define HAK_OS_OS_H

#include "base/compiler.h"
#include "base/words.h"

/* --- facts, read once by hak_os_init (idempotent) ------------------------------------------- */
void hak_os_init(void);
size_t hak_os_page_bytes(void); /* 4, 16 or 64 KiB */
bool hak_os_is_secure(void);    /* set-uid, set-gid or file capabilities: ignore environment */

/* CPUs of the process, >= 1: those the first thread might run on at the start, and those on which
 * threads called this since, as far as the system tells without a call. It never falls. */
unsigned hak_os_cpu_count(void);
void hak_os_cpu_init(void); /* a part of hak_os_init */

/* CPUs whose time control groups left the process when hak_os_memory_limit opened files, rounded
 * up; HAK_OS_NO_QUOTA if no bound is known. */
unsigned hak_os_cpu_quota(void);
#define HAK_OS_NO_QUOTA (~0u)
/* Its parts. "QUOTA PERIOD", as in cpu.max; anything else is no quota. */
unsigned hak_os_quota_parse(const char *text, size_t length);
/* Path, of 512 bytes, of the version 2 group in the text of /proc/self/cgroup; "": the root. */
bool hak_os_cgroup_path(const char *text, char *path);

/* Memory of the group that has least room, of that of the process and those above it: its limit,
 * memory.high or memory.max, whichever is less, and what is used of it, without pages of files,
 * which the kernel can drop. false: no limit is known. At first, and when one was lost, the files
 * are opened, if alone; those of groups with a limit stay open for calls in any thread (KEPT-1). */
typedef struct hak_os_memory {
    uint64_t limit_bytes, used_bytes;
} hak_os_memory_t;
bool hak_os_memory_limit(hak_os_memory_t *memory);

/* --- memory -------------------------------------------------------------------------------- */
/* Fresh private memory, readable, writable and zero. NULL on failure. `align` is a power of two. */
void *hak_os_map(size_t bytes, size_t align);
/* Whether it would succeed now. Nothing becomes resident. */
bool hak_os_may_map(size_t bytes);
/* Address space without memory. NULL on failure. */
void *hak_os_reserve(size_t bytes, size_t align);
/* Makes a part of a reservation readable and writable. */
bool hak_os_commit(void *base, size_t bytes);
bool hak_os_unmap(void *base, size_t bytes);
/* Makes it inaccessible again, contents kept. */
bool hak_os_conceal(void *base, size_t bytes);
/* Gives the memory back, keeps the address; after success the range reads as zero. */
bool hak_os_purge(void *base, size_t bytes);
/* Tells the kernel to back the range, whole huge pages of 2 MiB, with such where it can, or not to.
 * false: it has none, or has no place for one more mapping. */
bool hak_os_advise_huge(void *base, size_t bytes, bool is_wanted);
/* Whether the kernel backs with huge pages whatever it is not told about ("always"): false before
 * it was detected, for which a file is opened, unless there are other threads. */
void hak_os_huge_detect(void);
bool hak_os_huge_is_default(void);
/* Bytes of the range that memory is behind; all of it if the kernel does not tell. A page that was
 * swapped out is not resident, and not zero either. One system call per 256 pages. */
size_t hak_os_resident(const void *base, size_t bytes);
/* The same; parts of the range may be gone, and hold none. SIZE_MAX: the kernel does not tell. */
size_t hak_os_resident_now(const void *base, size_t bytes);
/* Grows or shrinks a mapping at its address. */
bool hak_os_resize(void *base, size_t old_bytes, size_t new_bytes);
/* Whether the range lies in a single mapping of the kernel: only then its pages can be moved. A
 * block may span several, after it was joined from cached ones or after the program changed
 * attributes of a part. */
bool hak_os_is_one_mapping(void *base, size_t bytes);
/* Moves pages onto the reservation `target` and extends them to new_bytes. keeps_source: the old
 * range stays mapped and reads as zero (pages in the middle of a mapping); else a whole mapping
 * goes. After failure the old range is untouched. The reservation is used up in any case. */
bool hak_os_move(void *base, size_t bytes, void *target, size_t new_bytes, bool keeps_source);
/* Whether the address lies in the library: the shared one, or the archive's code in a program. */
bool hak_os_is_own_code(uintptr_t address);
/* Whether it lies in the program or a library, as they were loaded. true, too, where the C library
 * cannot tell without a lock: glibc before 2.35, static programs. */
bool hak_os_is_loaded(uintptr_t address);
/* Whether `high` lies in the same mapping of the kernel as `low`, which is not above it. Nothing is
 * read there. true, too, above the initial stack, and where the kernel does not tell. */
bool hak_os_is_same_mapping(const void *low, const void *high);
/* For hardened builds, os_guard.c. Makes a range, whole OS pages of the library's own data,
 * read-only for good: where the kernel knows mseal, not even mprotect changes it again. */
bool hak_os_seal(void *base, size_t bytes);
/* Leaves a random distance to what is mapped already: the next mappings follow below it. */
void hak_os_scatter(void);
/* The same, os_tags.c, of builds with HAK_MTE. Accesses of this thread, and of all it starts, fault
 * from now on when the tag of the address is not the memory's. false: the processor or the kernel
 * has no tags, or there are other threads already. */
bool hak_os_tags_start(void);
/* Memory of ours can have tags then, 0 at first, and again once it was purged. Nothing happens
 * before hak_os_tags_start, and where the kernel refuses: such memory takes no tag but 0. */
void hak_os_tags_allow(void *base, size_t bytes);
/* Whether 8 bytes at `address` can be read. */
bool hak_os_is_readable(const void *address);
/* Current end of the data segment ("brk"). */
uintptr_t hak_os_data_end(void);

/* --- threads ------------------------------------------------------------------------------- */
uint32_t hak_os_thread_id(void);
uint32_t hak_os_process_id(void);
/* The last part of the path that was executed; "": the kernel does not tell. */
const char *hak_os_program(void);
/* The name of the process's first thread, as text; "": the kernel does not tell. */
enum { HAK_OS_COMMAND_BYTES = 16 };
void hak_os_command(char command[HAK_OS_COMMAND_BYTES]);
void hak_os_wait(uint32_t *word, uint32_t expected); /* sleeps while *word == expected */
void hak_os_wait_at_most(uint32_t *word, uint32_t expected, uint64_t ns);
void hak_os_wake_one(uint32_t *word);
void hak_os_sleep(uint64_t ns); /* a signal may end it early */
/* Blocks all signals of the thread but the C library's own; returns the mask before. */
uint64_t hak_os_block_signals(void);
void hak_os_restore_signals(uint64_t before);
bool hak_os_is_alone(void); /* there is one thread; false, too, where nobody tells */
void hak_os_relax(void);    /* CPU hint inside a spin loop */

/* --- traps, os_trap.c ------------------------------------------------------------------------ */
typedef struct hak_os_trap {
    const void *address; /* that was accessed */
    const char *access;  /* "read", "write", or "access": not known */
    const void *stack;   /* pointer of the function that did it */
    const void *frame;   /* of that function; anything, if it uses the register otherwise */
    uintptr_t code;      /* where it did */
    bool is_tag;         /* the address is accessible, but has another tag than the memory */
} hak_os_trap_t;

/* Told of every SIGSEGV and SIGBUS that the kernel raises for an access, in the signal handler.
 * true: the handler before ours shall be again, and the access be repeated: it ends the process, if
 * that was the default. false: it goes on as if there were no handler of ours. */
typedef bool hak_os_trap_handler_t(const hak_os_trap_t *trap);
bool hak_os_trap_install(hak_os_trap_handler_t *handler);

/* --- the rest ------------------------------------------------------------------------------ */
uint64_t hak_os_now_ns(void); /* monotonic, coarse (about 4 ms) */
void hak_os_random(void *buffer, size_t bytes);
void hak_os_write(int fd, const char *data, size_t length);
HAK_NORETURN void hak_os_abort(void);
/* Tells where the environment is before libc knows. */
void hak_os_set_env(char **envp);
/* Copies the value of an environment variable, zero-terminated and cut to `capacity`. false if it
 * is not set. Works before libc is initialised. */
bool hak_os_env(const char *name, char *buffer, size_t capacity);
/* Reads the head of a file; returns the bytes read, 0 on failure. */
size_t hak_os_read_file(const char *path, char *buffer, size_t capacity);
/* The same of one that stays open; nothing is read if capacity is 0. -1: it cannot be opened. */
int hak_os_open_head(const char *path, char *buffer, size_t capacity, size_t *length);
/* Reads all of it through the buffer, line by line: `take` gets each as a string without its end,
 * and of one that does not fit the head. false: it cannot be read. */
typedef void hak_os_line_t(char *line, void *context);
bool hak_os_read_lines(const char *path, char *buffer, size_t capacity, hak_os_line_t *take,
                       void *context);

/* --- mappings of the process ------------------------------------------------------------------ */
typedef enum hak_os_mapping_kind {
    HAK_OS_MAPPING_FILE,
    HAK_OS_MAPPING_SHARED, /* memory that processes share */
    HAK_OS_MAPPING_STACK,  /* of the first thread; those of others are anonymous */
    HAK_OS_MAPPING_BREAK,  /* the data segment's end, which brk moves */
    HAK_OS_MAPPING_ANONYMOUS,
    HAK_OS_MAPPING_KINDS
} hak_os_mapping_kind_t;

typedef struct hak_os_mapping {
    uintptr_t start, end, offset;
    hak_os_mapping_kind_t kind;
    bool is_code;
    const char *path;        /* NULL where resident_bytes is asked for */
    uint64_t resident_bytes; /* 0 if it is not */
} hak_os_mapping_t;

/* Visits all mappings, lowest first, which are read through the buffer. To learn what is resident
 * the kernel looks at every OS page. false: the file cannot be read. */
typedef void hak_os_mapping_visit_t(const hak_os_mapping_t *mapping, void *context);
bool hak_os_mappings(bool wants_resident, char *buffer, size_t capacity,
                     hak_os_mapping_visit_t *visit, void *context);
/* Resident bytes of the process, roughly; 0: the kernel does not tell. */
uint64_t hak_os_resident_all(void);
/* The most there ever were, since the program was executed. */
uint64_t hak_os_resident_peak(void);

/* --- test/double (HAK_FAULT builds) ---------------------------------------------------------- */
typedef enum hak_os_call {
    HAK_OS_CALL_MAP,
    HAK_OS_CALL_COMMIT,
    HAK_OS_CALL_UNMAP,
    HAK_OS_CALL_PURGE,
    HAK_OS_CALL_REMAP,
    HAK_OS_CALL_ADVISE,
    HAK_OS_CALL_READ, /* of a file */
    HAK_OS_CALL_CONCEAL,
    HAK_OS_CALL_SIGNAL, /* a handler of a signal */
    HAK_OS_CALL_RESIDENT,
    HAK_OS_CALL_COUNT
} hak_os_call_t;

#if HAK_FAULT
bool hak_os_fault_hit(hak_os_call_t call); /* asked before each call: it shall fail */
/* Content of a file in place of the real one, if the test has some. */
bool hak_os_fault_file(const char *path, char *buffer, size_t capacity, size_t *length);
uint64_t hak_os_fault_clock(uint64_t now_ns);
uint32_t hak_os_fault_cpu(uint32_t cpu);            /* the one the caller shall run on */
void hak_os_fault_mapped(void *base, size_t bytes); /* told of fresh memory */
#else
HAK_INLINE bool hak_os_fault_hit(hak_os_call_t call) {
    (void)call;
    return false;
}
HAK_INLINE bool hak_os_fault_file(const char *path, char *buffer, size_t capacity, size_t *length) {
    (void)path;
    (void)buffer;
    (void)capacity;
    (void)length;
    return false;
}
HAK_INLINE uint64_t hak_os_fault_clock(uint64_t now_ns) {
    return now_ns;
}
HAK_INLINE uint32_t hak_os_fault_cpu(uint32_t cpu) {
    return cpu;
}
HAK_INLINE void hak_os_fault_mapped(void *base, size_t bytes) {
    (void)base, (void)bytes;
}
#endif

#endif
