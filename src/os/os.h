/* SPDX-License-Identifier: MIT
 *
 * The contract with the operating system: this folder alone makes system calls and has OS
 * conditionals. Every port implements this header; optional.h has services that a port may lack.
 *
 * Rules for every function here:
 *   - errno is left untouched: most system calls are made directly, not through libc;
 *   - no allocation, no lock, async-signal-safe; hooks of the functions by which memory leaves
 *     (hak_os_unmap, _purge, _resize, _move) may do anything;
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

/* CPUs of the process, >= 1: those the first thread could run on at start, and those that calling
 * threads ran on since, read without a system call. Never decreases. */
unsigned hak_os_cpu_count(void);
void hak_os_cpu_init(void); /* a part of hak_os_init */

/* --- memory -------------------------------------------------------------------------------- */
/* Fresh private memory, readable, writable and zero. NULL on failure. `align` is a power of two. */
void *hak_os_map(size_t bytes, size_t align);
/* Whether hak_os_map would succeed now. Nothing becomes resident. */
bool hak_os_may_map(size_t bytes);
/* Whether the process has as many mappings as it may. `page` lies in a larger one. */
bool hak_os_lacks_mappings(void *page);
/* Whether RLIMIT_AS is set. */
bool hak_os_is_address_limited(void);
/* Address space without memory. NULL on failure. */
void *hak_os_reserve(size_t bytes, size_t align);
/* Makes a part of a reservation readable and writable. */
bool hak_os_commit(void *base, size_t bytes);
bool hak_os_unmap(void *base, size_t bytes);
extern uint32_t hak_os_unmap_count; /* [atomic] ranges freed so far; wraps */
/* Makes a range inaccessible again; its contents stay. */
bool hak_os_conceal(void *base, size_t bytes);
/* Returns the memory and keeps the addresses; after success the range reads as zero. */
bool hak_os_purge(void *base, size_t bytes);

/* --- threads ------------------------------------------------------------------------------- */
uint32_t hak_os_thread_id(void);
uint32_t hak_os_process_id(void);
void hak_os_wait(uint32_t *word, uint32_t expected); /* sleeps while *word == expected */
void hak_os_wake_one(uint32_t *word);
void hak_os_sleep(uint64_t ns); /* a signal may end it early */
/* Blocks all signals of the thread but the C library's own; returns the previous mask. */
uint64_t hak_os_block_signals(void);
void hak_os_restore_signals(uint64_t before);
void hak_os_relax(void); /* CPU hint inside a spin loop */

/* --- the rest ------------------------------------------------------------------------------ */
uint64_t hak_os_now_ns(void);   /* monotonic, coarse (about 4 ms) */
uint64_t hak_os_exact_ns(void); /* monotonic */
uint64_t hak_os_wall_ns(void);  /* since 1970 */
void hak_os_random(void *buffer, size_t bytes);
void hak_os_write(int fd, const char *data, size_t length);
HAK_NORETURN void hak_os_abort(void);
/* Sets the environment for calls before libc has it. */
void hak_os_set_env(char **envp);
/* Copies an environment variable's value, zero-terminated and cut to `capacity`. false: not set.
 * Works before libc is initialised. */
bool hak_os_env(const char *name, char *buffer, size_t capacity);

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
    HAK_OS_CALL_SIGNAL, /* installing a signal handler */
    HAK_OS_CALL_PEEK,
    HAK_OS_CALL_COUNT
} hak_os_call_t;

bool hak_os_fault_hit(hak_os_call_t call); /* before each call; true: it shall fail */
/* Content in place of a file's, if the test provides it. */
bool hak_os_fault_file(const char *path, char *buffer, size_t capacity, size_t *length);
uint64_t hak_os_fault_clock(uint64_t now_ns);
uint32_t hak_os_fault_cpu(uint32_t cpu); /* the CPU that the caller shall run on */
/* Before a write to standard error; true: the test keeps the text. NULL: before an abort. */
bool hak_os_fault_report(const char *data, size_t length);
void hak_os_fault_mapped(void *base, size_t bytes); /* reports fresh memory */
void hak_os_fault_touch(const void *block);         /* reports a first touch, before it */

#endif
