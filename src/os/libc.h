/* SPDX-License-Identifier: MIT
 *
 * Everything the core needs of the C library beyond ISO C and POSIX threads: names of glibc, NULL
 * where it lacks them (musl), and functions, in libc_linux.c. Another C library is a second file,
 * with other names here. Unlike functions of os.h, these may allocate, lock and set errno unless
 * their comment excludes it. */
#ifndef HAK_OS_LIBC_H
#define HAK_OS_LIBC_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "base/words.h"

#define HAK_LIBC(name) __asm__(#name) HAK_WEAK

#if HAK_SHARED /* before 2.34 glibc has them in libpthread, which a program may lack: then NULL */
__asm__(".weak pthread_create, pthread_detach, pthread_join, pthread_attr_setstacksize,"
        "pthread_setname_np, pthread_key_create, pthread_setspecific");
#endif

/* No other thread exists, and only this one can start one. Threads made by a bare clone() are not
 * counted: they must not allocate, which glibc's malloc, that reads the same word, demands, too. */
extern char __libc_single_threaded HAK_WEAK;

HAK_INLINE bool hak_libc_is_single(void) {
    return &__libc_single_threaded != NULL && hak_load_relaxed(&__libc_single_threaded) != 0;
}

/* The current CPU's number, kept by the kernel; NULL: not here. No lock; errno is left alone. */
const uint32_t *hak_libc_cpu(void);

/* The recursive lock of the list of streams, which fork takes after its prepare handlers. */
extern void hak_libc_lock_streams(void) HAK_LIBC(_IO_list_lock);
extern void hak_libc_unlock_streams(void) HAK_LIBC(_IO_list_unlock);
extern void hak_libc_reset_streams(void) HAK_LIBC(_IO_list_resetlock);

/* pthread_atfork, by the name that the C library has. Takes the lock of its list of handlers, and
 * may allocate under it. */
bool hak_libc_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* musl: fork of a process with threads calls it with -1 while it holds all locks of the C library
 * but malloc's, behind the prepare handlers. Only a static program can have one that is not musl's,
 * and has ours unless it is linked with musl's malloc, too. */
extern void hak_libc_fork_locks(int step) HAK_LIBC(__malloc_atfork) HAK_HIDDEN;
/* Whether fork will call the function by that name. */
bool hak_libc_has_fork_locks(void (*function)(int step));

/* Without an object it runs at exit, even if the registering library was unloaded. */
extern int hak_libc_at_exit(void (*function)(void *), void *argument,
                            void *object) __asm__("__cxa_atexit");

extern void *hak_libc_malloc(size_t bytes) HAK_LIBC(__libc_malloc);
extern void *hak_libc_calloc(size_t count, size_t bytes) HAK_LIBC(__libc_calloc);
extern void *hak_libc_realloc(void *block, size_t bytes) HAK_LIBC(__libc_realloc);
extern void *hak_libc_memalign(size_t align, size_t bytes) HAK_LIBC(__libc_memalign);
extern void hak_libc_free(void *block) HAK_LIBC(__libc_free);
HAK_INLINE bool hak_libc_has_malloc(void) { /* all of it */
    return hak_libc_malloc != NULL && hak_libc_calloc != NULL && hak_libc_realloc != NULL &&
           hak_libc_memalign != NULL && hak_libc_free != NULL;
}
/* Whether the running C library is glibc; a static program's is the one it was compiled with. */
bool hak_libc_is_glibc(void);

/* Whether the C library's allocator made the block, whose first word is readable. No lock. is_sole:
 * no other allocator's blocks could look alike. */
bool hak_libc_owns(const void *block, bool is_sole);
/* The usable size of such a block. */
size_t hak_libc_usable_size(const void *block);

extern void *hak_libc_symbol(void *handle, const char *name) HAK_LIBC(dlsym);
#define HAK_LIBC_NEXT ((void *)-1l) /* RTLD_NEXT, without requiring GNU names everywhere */

/* A loaded object. */
typedef struct hak_libc_object {
    uintptr_t start;  /* its first byte */
    const char *file; /* its path; "": not known */
} hak_libc_object_t;
/* The one that an address lies in; start 0: not known. Before glibc 2.35 it takes the lock of
 * dlopen, which the C library renews in the child of a fork, unlike the lock of dl_iterate_phdr. */
hak_libc_object_t hak_libc_object_of(const void *address);
/* The first byte of the C library; 0: not known. */
uintptr_t hak_libc_object(void);
/* glibc's, since 2.35. Unwinders call it, also in signal handlers. 0: found. The result has 96
 * bytes; the second word is the object's first byte. */
extern int hak_libc_find_object(void *address, void *found) HAK_LIBC(_dl_find_object);
/* The first byte of the loaded object that an address lies in, without a lock. false: in none, or
 * not known: before 2.35, static. */
bool hak_libc_find_start(uintptr_t address, uintptr_t *start);
/* Whether the loaded object that an address lies in was there at the start of the process, and is
 * never unloaded. No lock. false: also where it is not known. */
bool hak_libc_stays_loaded(uintptr_t address);
/* The path of this library; "": not known. */
const char *hak_libc_own_file(void);
/* For hak_os_object_mark. */
uintptr_t hak_libc_object_mark(uintptr_t address);
/* How many objects were unloaded so far, or what differs from the last answer. Takes a lock that
 * fork does not renew; a child that may lack its holder does without. */
uint64_t hak_libc_unload_count(void);

/* A function, and the object it lies in. */
typedef struct hak_libc_function {
    void *address;
    unsigned object;     /* its number in load order, from 1; 0: in none */
    const char *library; /* its name, if dlclose could unload it */
} hak_libc_function_t;
/* Only where dlsym exists. Takes the dynamic linker's lock. */
void hak_libc_find_objects(hak_libc_function_t *places, unsigned count);
/* Keeps the library loaded for good, as RTLD_NEXT takes no reference: dlclose of a plugin that
 * brought it and us would unload it, but not us. May run its constructors. NULL: does nothing. */
void hak_libc_keep_library(const char *library);
/* In the child of a process with threads, one of which may be in dlopen: no library is kept. */
extern bool hak_libc_left_threads; /* [init] of the child */

#endif
