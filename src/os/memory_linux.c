/* SPDX-License-Identifier: MIT
 *
 * Linux: memory and time. Mappings are requested below the last one, at first below the dynamic
 * linker's: the kernel honours a free hint, so an aligned one mostly costs one call. */
#include "base/atomics.h"
#include "base/bits.h"
#include "base/counters.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static size_t os_page_bytes = 4096; /* [init] */
static bool os_is_secure;           /* [init] */
static bool os_lacks_dontunmap;     /* [atomic] MREMAP_DONTUNMAP failed */
static bool os_has_dontunmap;       /* [atomic] MREMAP_DONTUNMAP worked */
static bool os_has_refused_move;    /* [atomic] */
static uintptr_t os_map_hint;       /* [atomic] preferred end of the next mapping */
uint32_t hak_os_unmap_count;

/* [init] The C library's own clock: another's may allocate, and would be called under our locks.
 * Programs that test have a clock for us; no other object is asked for one. */
static struct os_clock { __typeof__(clock_gettime) *get; } HAK_SEALED os_clock = {clock_gettime};

HAK_AT_START static void os_clock_init(void) {
    void *own = HAK_SHARED ? hak_os_definition(hak_os_program_start(), "hak_test_clock") : NULL;
    if (HAK_SHARED && own == NULL) {
        own = hak_os_definition(hak_libc_object(), "clock_gettime");
    }
    if (own != NULL && own != (void *)os_clock.get) { /* a second start finds it sealed */
        os_clock.get = (__typeof__(clock_gettime) *)own;
    }
    (void)(HAK_HARDEN && hak_os_seal(&os_clock, sizeof os_clock));
}

void hak_os_init(void) {
    unsigned long page = getauxval(AT_PAGESZ);
    os_page_bytes = hak_is_pow2(page) ? page : os_page_bytes;
    os_is_secure = getauxval(AT_SECURE) != 0;
    hak_os_cpu_init();
    os_clock_init();
}

size_t hak_os_page_bytes(void) {
    return os_page_bytes;
}

bool hak_os_is_secure(void) {
    return os_is_secure;
}

static bool os_failed(bool failed) {
    hak_count_by(os_failure, failed);
    return failed;
}

/* Tests can make a call fail as `kind`. */
static bool os_may_call(hak_os_call_t kind) {
    return !(HAK_FAULT && hak_os_fault_hit(kind));
}

static void *os_mmap(void *hint, size_t bytes, int protection) {
    long result = hak_syscall(SYS_mmap, hint, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    HAK_OS_ORDER(acquire, &os_page_bytes);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

static void os_drop(char *from, const char *to) {
    if (from < to) {
        hak_syscall(SYS_munmap, from, to - from);
    }
}

/* --- memory that leaves -----------------------------------------------------------------------
 *
 * Libraries for MPI, RDMA and GPUs hook or patch functions of the C library to learn of it. So it
 * leaves by these functions, whose result is that of the system call. A hook may allocate: where
 * the thread holds more than owners, no memory of blocks leaves (but without a tcache), and the
 * call is made directly. So it is until the library is relocated. */

static bool os_has_hooks(const void *function) {
    HAK_OPAQUE(function);
    return !HAK_TSAN && function != NULL && hak_lock_holds_owners_at_most();
}

static long os_result(long result, int saved) {
    result = result != -1 ? result : errno != 0 ? -errno : -EINVAL; /* a hook may clear it */
    errno = saved;
    return result;
}

static long os_munmap(void *base, size_t bytes) {
    if (!os_has_hooks((const void *)munmap)) {
        return hak_syscall(SYS_munmap, base, bytes);
    }
    int saved = errno;
    return os_result(munmap(base, bytes), saved);
}

static long os_madvise(void *base, size_t bytes, int advice) {
    if (!os_has_hooks((const void *)madvise)) {
        return hak_syscall(SYS_madvise, base, bytes, advice);
    }
    int saved = errno;
    return os_result(madvise(base, bytes, advice), saved);
}

static long os_mremap(void *base, size_t old_bytes, size_t new_bytes, int flags, void *target) {
    if (!os_has_hooks((const void *)mremap)) {
        return hak_syscall(SYS_mremap, base, old_bytes, new_bytes, flags, target);
    }
    int saved = errno;
    return os_result((long)mremap(base, old_bytes, new_bytes, flags, target), saved);
}

/* --- mappings --------------------------------------------------------------------------------- */

/* One call, at the preferred address; NULL: the result would not be aligned. */
static char *os_map_at(uintptr_t hint, size_t bytes, size_t align, int protection) {
    char *base = hint == 0 ? NULL : os_mmap((void *)hint, bytes, protection);
    if (base != NULL && ((uintptr_t)base & (align - 1)) != 0) {
        os_drop(base, base + bytes);
        base = NULL;
    }
    return base;
}

/* Maps too much and cuts it to size. */
static char *os_map_wide(size_t bytes, size_t align, int protection) {
    size_t total = bytes + align - os_page_bytes;
    char *wide = total > bytes ? os_mmap(NULL, total, protection) : NULL;
    if (wide == NULL) {
        return NULL;
    }
    char *base = (char *)hak_align_up((uintptr_t)wide, align);
    os_drop(wide, base);
    os_drop(base + bytes, wide + total);
    return base;
}

/* Under a limit of addresses the surplus may not fit where the mapping does: lets the kernel choose
 * a place, then tries the aligned address just below it. */
static char *os_map_tight(size_t bytes, size_t align, int protection) {
    char *probe = os_mmap(NULL, bytes, protection);
    if (probe == NULL || ((uintptr_t)probe & (align - 1)) == 0) {
        return probe;
    }
    os_drop(probe, probe + bytes);
    return os_map_at(hak_align_down((uintptr_t)probe, align), bytes, align, protection);
}

/* Freed addresses are reused before lower ones: every 4 GiB ever used cost a page-map leaf. */
static void os_hint_raise(const void *base, size_t bytes) {
    uintptr_t end = (uintptr_t)base + bytes;
    if (end > hak_load_relaxed(&os_map_hint)) {
        hak_store_relaxed(&os_map_hint, end);
    }
    hak_add_relaxed(&hak_os_unmap_count, 1);
}

static void *os_map_aligned(size_t bytes, size_t align, int protection) {
    if (os_failed(!os_may_call(HAK_OS_CALL_MAP))) {
        return NULL;
    }
    uintptr_t hint = hak_load_relaxed(&os_map_hint), last;
    last = hint == 0 && !HAK_HARDEN ? (uintptr_t)hak_syscall_storage() : hint;
    char *base =
        os_map_at(last > bytes ? hak_align_down(last - bytes, align) : 0, bytes, align, protection);
    if (base == NULL) {
        base = os_map_wide(bytes, align, protection);
    }
    if (base == NULL) {
        base = os_map_tight(bytes, align, protection);
    }
    if (!os_failed(base == NULL)) {
        hak_store_relaxed(&os_map_hint, (uintptr_t)base);
    }
    return base;
}

void *hak_os_map(size_t bytes, size_t align) {
    void *base = os_map_aligned(bytes, align, PROT_READ | PROT_WRITE);
    if (HAK_FAULT && base != NULL) {
        hak_os_fault_mapped(base, bytes);
    }
    return base;
}

void *hak_os_reserve(size_t bytes, size_t align) {
    return os_map_aligned(bytes, align, PROT_NONE);
}

static bool os_protect(hak_os_call_t kind, void *base, size_t bytes, long protection) {
    return !os_failed(!os_may_call(kind) ||
                      hak_syscall(SYS_mprotect, base, bytes, protection) != 0);
}

bool hak_os_commit(void *base, size_t bytes) {
    return os_protect(HAK_OS_CALL_COMMIT, base, bytes, PROT_READ | PROT_WRITE);
}

bool hak_os_conceal(void *base, size_t bytes) {
    return os_protect(HAK_OS_CALL_CONCEAL, base, bytes, PROT_NONE);
}

bool hak_os_unmap(void *base, size_t bytes) {
    HAK_OS_ORDER(release, &os_page_bytes);
    return !os_failed(!os_may_call(HAK_OS_CALL_UNMAP) || os_munmap(base, bytes) != 0) &&
           (os_hint_raise(base, bytes), true);
}

bool hak_os_purge(void *base, size_t bytes) {
    return !os_failed(!os_may_call(HAK_OS_CALL_PURGE) ||
                      os_madvise(base, bytes, MADV_DONTNEED) != 0);
}

/* With larger OS pages huge pages have other sizes, up to 512 MiB: never wanted. */
bool hak_os_advise_huge(void *base, size_t bytes, bool is_wanted) {
    return os_may_call(HAK_OS_CALL_ADVISE) && (os_page_bytes == 4096 || !is_wanted) &&
           hak_syscall(SYS_madvise, base, bytes, is_wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0;
}

/* An OS page that the kernel is told to be seldom used must be a page of its own. */
bool hak_os_split_huge(void *base, size_t bytes) {
    return os_may_call(HAK_OS_CALL_ADVISE) && hak_syscall(SYS_madvise, base, bytes, MADV_COLD) == 0;
}

static bool os_huge_is_default; /* [atomic] */
static bool os_huge_is_known;   /* [atomic] the mode was read */

void hak_os_huge_detect(void) {
    char text[64];
    const char *path = "/sys/kernel/mm/transparent_hugepage/enabled";
    text[hak_os_is_alone() ? hak_os_read_file(path, text, sizeof text - 1) : 0] = '\0';
    const char *mode = strchr(text, '['); /* strstr would cost a start another page of libc */
    while (mode != NULL && strncmp(mode, "[always]", 8) != 0) {
        mode = strchr(mode + 1, '[');
    }
    hak_store_relaxed(&os_huge_is_default, mode != NULL);
    hak_store_relaxed(&os_huge_is_known, text[0] != '\0');
}

bool hak_os_huge_is_default(void) {
    return hak_load_relaxed(&os_huge_is_default);
}

bool hak_os_huge_may_be_default(void) { /* the double of tests has modes of its own */
    return HAK_FAULT || hak_os_huge_is_default() || !hak_load_relaxed(&os_huge_is_known);
}

bool hak_os_resize(void *base, size_t old_bytes, size_t new_bytes) {
    return os_may_call(HAK_OS_CALL_REMAP) &&
           os_mremap(base, old_bytes, new_bytes, 0, NULL) == (long)base;
}

static long os_mremap_to(char *base, size_t old_bytes, size_t new_bytes, char *target, int flags) {
    return os_mremap(base, old_bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED | flags, target);
}

/* Whether the kernel grants so many bytes, writable but not resident, as mlockall would make them.
 * With `moves`, also the mappings that a move may need: an OS page moves, to any address, because a
 * refused move may unmap its target. Kernels before 5.7 refuse the flags. */
static bool os_may_take(size_t charged_bytes, bool moves) {
    size_t page = os_page_bytes, bytes = page + charged_bytes;
    char *probe = os_mmap(NULL, bytes, PROT_NONE), *end = probe == NULL ? NULL : probe + bytes;
    if (probe != NULL && hak_syscall(SYS_madvise, probe, bytes, MADV_DONTNEED) == -EINVAL) {
        hak_syscall(SYS_munlock, probe, bytes); /* only where mlockall made it locked */
    }
    bool may = probe != NULL && hak_os_commit(probe + page, charged_bytes);
    long moved = may && moves
                     ? hak_syscall(SYS_mremap, probe, page, page, MREMAP_MAYMOVE | MREMAP_DONTUNMAP)
                     : may;
    os_drop(probe, end);
    os_drop((char *)moved, moved > 1 ? (char *)moved + page : NULL);
    return moved > 0;
}

bool hak_os_may_map(size_t bytes) {
    return !os_failed(!os_may_call(HAK_OS_CALL_MAP) || !os_may_take(bytes, false));
}

/* A page that differs in anything is a mapping of its own. */
bool hak_os_lacks_mappings(void *page) {
    long result = hak_syscall(SYS_madvise, page, os_page_bytes, MADV_DONTDUMP);
    hak_syscall(SYS_madvise, page, os_page_bytes, MADV_DODUMP);
    return result == -ENOMEM || result == -EAGAIN;
}

/* Emulated kernels may lose track of a range whose pages moved out, and ignore its purge or, with
 * MTE tags, forbid every access: tried once per process. If so, fresh memory is mapped over the
 * range, and nothing moves out again. */
static void os_verify_moved_out(char *base, size_t bytes) {
    if (hak_load_relaxed(&os_has_dontunmap)) {
        return;
    }
    volatile char *probe = base;
    bool is_there =
        !HAK_MTE || hak_syscall(SYS_getrandom, base, 1, 0) == 1; /* it may write there */
    if (is_there) {
        *probe = 1;
    }
    if (is_there && hak_os_purge(base, os_page_bytes) && *probe == 0) {
        hak_store_relaxed(&os_has_dontunmap, true);
        return;
    }
    hak_store_relaxed(&os_lacks_dontunmap, true);
    long fresh = hak_syscall(SYS_mmap, base, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    if (fresh != (long)base) {
        memset(base, 0, bytes);
    } else if (HAK_MTE) {
        hak_os_tags_allow(base, bytes);
    }
}

/* The moved pages keep their own mapping, which then grows into the rest of the reservation: a
 * single mapping, so later moves need no copy either. */
static bool os_move_grow(char *base, size_t bytes, char *target, size_t new_bytes) {
    os_drop(target + bytes, target + new_bytes);
    if (new_bytes > bytes && !hak_os_resize(target, bytes, new_bytes)) {
        /* the gap was taken meanwhile: put the pages back */
        if (os_mremap_to(target, bytes, bytes, base, 0) != (long)base) {
            memcpy(base, target, bytes);
            os_drop(target, target + bytes);
        }
        return !os_failed(true);
    }
    os_verify_moved_out(base, bytes);
    return true;
}

/* After a failed mremap the named part of the target may be reserved still, or belong to another
 * thread: it is never unmapped. After one failure, refusals for lack of mappings or by a memory
 * limit are predicted. */
bool hak_os_move(void *base, size_t bytes, void *target, size_t new_bytes, bool keeps_source) {
    size_t named_bytes = keeps_source ? bytes : new_bytes;
    bool is_tried = os_may_call(HAK_OS_CALL_REMAP) &&
                    !(keeps_source && hak_load_relaxed(&os_lacks_dontunmap)) &&
                    (!hak_load_relaxed(&os_has_refused_move) ||
                     os_may_take(keeps_source ? bytes : new_bytes - bytes, true));
    long moved = !is_tried ? -1
                           : os_mremap_to(base, bytes, named_bytes, target,
                                          keeps_source ? MREMAP_DONTUNMAP : 0);
    if (keeps_source && moved == -EINVAL && !hak_load_relaxed(&os_has_dontunmap)) {
        /* a kernel before 5.7; nothing happened */
        hak_store_relaxed(&os_lacks_dontunmap, true);
        is_tried = false;
    }
    if (os_failed(moved != (long)target)) {
        size_t lost_bytes = is_tried ? named_bytes : 0;
        if (is_tried) {
            hak_store_relaxed(&os_has_refused_move, true);
        }
        if (lost_bytes < new_bytes) {
            hak_os_unmap((char *)target + lost_bytes, new_bytes - lost_bytes);
        }
        return false;
    }
    if (keeps_source) {
        return os_move_grow(base, bytes, target, new_bytes);
    }
    os_hint_raise(base, bytes);
    return true;
}

/* With nobody to wake or to move it only compares the word: the kernel reads what we may not. */
static long word_compare(uintptr_t word) {
    return hak_syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, word, 0);
}

HAK_AT_START hak_os_peek_t hak_os_peek(const void *word) {
    long result = os_may_call(HAK_OS_CALL_PEEK) ? word_compare((uintptr_t)word) : -EPERM;
    if (result == 0 || result == -EFAULT) {
        return HAK_OS_PEEK_NOTHING;
    }
    return result == -EAGAIN ? HAK_OS_PEEK_OTHER : HAK_OS_PEEK_UNKNOWN;
}

/* A filter of system calls may fake any answer, but then also that for an address of the kernel's.
 */
static bool word_is_readable(uintptr_t at) {
    long result = word_compare(hak_align_down(at, sizeof(uint32_t)));
    return (result == 0 || result == -EAGAIN) && word_compare(-(uintptr_t)4096) == -EFAULT;
}

bool hak_os_is_readable(const void *address) {
    uintptr_t first = (uintptr_t)address, last = first + 7, page = hak_os_page_bytes();
    return word_is_readable(first) && ((first ^ last) < page || word_is_readable(last));
}

uintptr_t hak_os_data_end(void) {
    return (uintptr_t)hak_syscall(SYS_brk, 0);
}

static uint64_t os_clock_ns(clockid_t clock) {
    struct timespec now = {0};
    os_clock.get(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hak_os_now_ns(void) {
    uint64_t ns = os_clock_ns(CLOCK_MONOTONIC_COARSE);
    return HAK_FAULT ? hak_os_fault_clock(ns) : ns;
}

uint64_t hak_os_exact_ns(void) {
    uint64_t ns = os_clock_ns(CLOCK_MONOTONIC);
    return HAK_FAULT ? hak_os_fault_clock(ns) : ns;
}

uint64_t hak_os_wall_ns(void) {
    return os_clock_ns(CLOCK_REALTIME);
}

void hak_os_random(void *buffer, size_t bytes) {
    enum { NONBLOCK = 1 };
    if (hak_syscall(SYS_getrandom, buffer, bytes, NONBLOCK) == (long)bytes) {
        return;
    }
    /* early boot or a filter: the kernel's 16 random bytes per process */
    const unsigned char *seed = (const unsigned char *)getauxval(AT_RANDOM);
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char *)buffer)[i] = seed != NULL ? seed[i % 16] : (unsigned char)(i * 151u);
    }
}

void hak_os_abort(void) {
    (void)(HAK_FAULT && hak_os_fault_report(NULL, 0));
    abort();
}
