/* SPDX-License-Identifier: MIT
 *
 * Linux: threads, their CPUs, waiting, signals; the environment of the process. */
#include "base/atomics.h"
#include "base/bits.h"
#include "os/libc.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

/* The kernel refuses masks that are too small for its CPUs. */
enum { CPU_WORDS = 128, CPU_WORD_BITS = 64 };

static uint64_t os_cpus[CPU_WORDS]; /* [atomic] a bit per counted CPU */
uint32_t hak_os_cpus_seen;          /* [atomic] bits set */

static void os_cpus_add(unsigned word, uint64_t bits) {
    uint64_t fresh = bits & ~hak_or_relaxed(&os_cpus[word], bits);
    hak_add_relaxed(&hak_os_cpus_seen, hak_popcount(fresh));
}

/* Threads may be bound to a CPU each before they allocate; the first thread seldom is. */
void hak_os_cpu_init(void) {
    uint64_t mask[CPU_WORDS] = {0};
    long bytes = hak_syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    for (long i = 0; i < bytes / 8; i++) {
        os_cpus_add((unsigned)i, mask[i]);
    }
}

/* Without a system call, for which a sandbox may kill. CPU 2^31 and above: not known. */
unsigned hak_os_cpu_count(void) {
    const uint32_t *number = hak_libc_cpu();
    uint32_t cpu = number != NULL ? hak_load_relaxed(number) : UINT32_MAX;
    cpu = HAK_FAULT ? hak_os_fault_cpu(cpu) : cpu;
    uint32_t word = cpu / CPU_WORD_BITS;
    uint64_t bit = 1ull << cpu % CPU_WORD_BITS;
    if (word < CPU_WORDS && (hak_load_relaxed(&os_cpus[word]) & bit) == 0) {
        os_cpus_add(word, bit);
    }
    return (unsigned)hak_most(1, hak_load_relaxed(&hak_os_cpus_seen));
}

uint32_t hak_os_thread_id(void) {
    return (uint32_t)hak_syscall(SYS_gettid, 0);
}

uint32_t hak_os_process_id(void) {
    return (uint32_t)hak_syscall(SYS_getpid, 0);
}

const char *hak_os_program(void) {
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}

void hak_os_wait(uint32_t *word, uint32_t expected) {
    hak_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected);
}

void hak_os_wake_one(uint32_t *word) {
    hak_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

/* By futex, which programs that filter system calls usually allow. */
void hak_os_sleep(uint64_t ns) {
    uint32_t never = 0;
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    hak_syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, never, &time);
}

/* The C library cancels threads by the first, and changes user IDs in all threads by the second,
 * whose sender waits for every thread. */
enum { SIGNAL_CANCEL = 32, SIGNAL_SETXID = 33, SIGNAL_MUSL_SETXID = 34 };
/* SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS: of an instruction or a call of the
 * thread, as where the program's handler emulates filtered calls. Blocked, they end the process. */
static const uint64_t SIGNALS_OWN = 1ull << (4 - 1) | 1ull << (5 - 1) | 1ull << (6 - 1) |
                                    1ull << (7 - 1) | 1ull << (8 - 1) | 1ull << (11 - 1) |
                                    1ull << (31 - 1);

uint64_t hak_os_block_signals(void) {
    uint64_t all = ~(1ull << (SIGNAL_CANCEL - 1) | 1ull << (SIGNAL_SETXID - 1) | SIGNALS_OWN);
    if (!hak_libc_is_glibc()) {
        all &= ~(1ull << (SIGNAL_MUSL_SETXID - 1)); /* musl's: glibc's number is its SIGCANCEL */
    }
    uint64_t before = 0;
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    return before;
}

void hak_os_restore_signals(uint64_t before) {
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
}

void hak_os_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#else
    __asm__ volatile("yield");
#endif
}

/* Of prctl, in headers since Linux 6.18. Older kernels refuse the flag. */
enum { HUGE_SET_DISABLE = 41, HUGE_EXCEPT_ADVISED = 2 };

HAK_COLD bool hak_os_huge_only_advised(void) {
    return !(HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_ADVISE)) &&
           hak_syscall(SYS_prctl, HUGE_SET_DISABLE, 1, HUGE_EXCEPT_ADVISED) == 0;
}

HAK_COLD void hak_os_let_observe(void) {
    (void)hak_syscall(SYS_prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY);
}

/* --- the environment -------------------------------------------------------------------------- */

extern char **environ;
static char **os_envp; /* [init] as our constructor got it */

/* Copies the value, cut to `capacity`, if the entry's name is `name`. Avoids functions of the C
 * library: the first use of each costs a page fault. */
static bool os_env_copy(const char *entry, const char *name, char *buffer, size_t capacity) {
    while (*name != '\0' && *entry == *name) {
        entry++;
        name++;
    }
    if (*name != '\0' || *entry != '=') {
        return false;
    }
    size_t length = strlen(entry + 1);
    size_t kept = length < capacity - 1 ? length : capacity - 1;
    memcpy(buffer, entry + 1, kept);
    buffer[kept] = '\0';
    return true;
}

/* Before libc is initialised `environ` is NULL; the kernel has a copy. */
static bool os_env_early(const char *name, char *buffer, size_t capacity) {
    char text[8192];
    size_t length = hak_os_read_file("/proc/self/environ", text, sizeof text - 1);
    bool is_cut = length == sizeof text - 1; /* half a value would be wrong */
    while (is_cut && length > 0 && text[length - 1] != '\0') {
        length--;
    }
    text[length] = '\0';
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        if (os_env_copy(text + at, name, buffer, capacity)) {
            return true;
        }
    }
    return false;
}

void hak_os_set_env(char **envp) {
    os_envp = envp;
}

bool hak_os_env(const char *name, char *buffer, size_t capacity) {
    char **all = environ != NULL ? environ : os_envp;
    if (all == NULL) {
        return os_env_early(name, buffer, capacity);
    }
    for (char **entry = all; *entry != NULL; entry++) {
        if (os_env_copy(*entry, name, buffer, capacity)) {
            return true;
        }
    }
    return false;
}
