/* SPDX-License-Identifier: MIT
 *
 * Each line is held by CPUs that read it, or by one that writes it (the states of MESI, caches
 * without bound). A read moves a line if another CPU wrote it since this one had it; a write, if
 * any other CPU has it. The first access to a line is none. Atomic operations are done as they are:
 * one thread runs at a time. */
#include "lines.h"
#include "double/tsan_quiet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE_LOG2 = 6, SLOTS_LOG2 = 20, SLOTS = 1 << SLOTS_LOG2, CPU_WORDS = LINES_CPUS / 64 };

typedef struct line {
    uintptr_t number;
    uint64_t moved;
    uint64_t has[CPU_WORDS]; /* bit per CPU */
} line_t;

static line_t *lines; /* open addressing; its own mapping, as the core may not allocate here */
static uint64_t moved;
static _Thread_local unsigned this_cpu;
static _Thread_local bool is_cpu;

void lines_run_on(unsigned cpu) {
    if (lines == NULL) {
        void *memory = mmap(NULL, sizeof(line_t) * SLOTS, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            abort();
        }
        lines = memory;
    }
    this_cpu = cpu;
    is_cpu = true;
}

void lines_leave(void) {
    is_cpu = false;
}

void lines_reset(void) {
    moved = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        lines[i].moved = 0;
    }
}

uint64_t lines_moved(void) {
    return moved;
}

static line_t *line_find(uintptr_t number) {
    size_t i = (number * 0x9e3779b97f4a7c15ull) >> (64 - SLOTS_LOG2), steps = 0;
    while (lines[i].number != number && lines[i].number != 0) {
        i = (i + 1) % SLOTS;
        if (++steps == SLOTS) {
            abort();
        }
    }
    lines[i].number = number;
    return &lines[i];
}

static void line_access(uintptr_t number, bool is_write) {
    line_t *line = line_find(number);
    uint64_t others = 0, own = 1ull << this_cpu % 64;
    for (unsigned i = 0; i < CPU_WORDS; i++) {
        others |= line->has[i] & (i == this_cpu / 64 ? ~own : ~0ull);
    }
    bool has = (line->has[this_cpu / 64] & own) != 0;
    if (others != 0 && (is_write || !has)) {
        moved++;
        line->moved++;
    }
    for (unsigned i = 0; is_write && i < CPU_WORDS; i++) {
        line->has[i] = 0;
    }
    line->has[this_cpu / 64] |= own;
}

void lines_access(const void *address, uint64_t bytes, int is_write) {
    if (!is_cpu) {
        return;
    }
    uintptr_t last = ((uintptr_t)address + bytes - 1) >> LINE_LOG2;
    for (uintptr_t number = (uintptr_t)address >> LINE_LOG2; number <= last; number++) {
        line_access(number, is_write != 0);
    }
}

void lines_print(unsigned most) {
    for (; most > 0; most--) {
        line_t *found = &lines[0];
        for (size_t i = 0; i < SLOTS; i++) {
            found = lines[i].moved > found->moved ? &lines[i] : found;
        }
        printf("  line %#lx moved %llu times\n", (unsigned long)(found->number << LINE_LOG2),
               (unsigned long long)found->moved);
        found->moved = 0;
    }
}

/* --- what the compiler calls ------------------------------------------------------------------ */

#define PLAIN(name, bytes, is_write)                                                               \
    void __tsan_##name(const void *address);                                                       \
    void __tsan_##name(const void *address) {                                                      \
        lines_access(address, bytes, is_write);                                                    \
    }
#define PLAIN_OF(bytes)                                                                            \
    PLAIN(read##bytes, bytes, 0)                                                                   \
    PLAIN(write##bytes, bytes, 1)                                                                  \
    PLAIN(volatile_read##bytes, bytes, 0)                                                          \
    PLAIN(volatile_write##bytes, bytes, 1)                                                         \
    PLAIN(unaligned_read##bytes, bytes, 0)                                                         \
    PLAIN(unaligned_write##bytes, bytes, 1)
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)

void __tsan_read_range(const void *address, unsigned long bytes);
void __tsan_read_range(const void *address, unsigned long bytes) {
    lines_access(address, bytes, 0);
}
void __tsan_write_range(const void *address, unsigned long bytes);
void __tsan_write_range(const void *address, unsigned long bytes) {
    lines_access(address, bytes, 1);
}

#define RMW(bits, type, name)                                                                      \
    type __tsan_atomic##bits##_##name(type *at, type value, int order);                            \
    type __tsan_atomic##bits##_##name(type *at, type value, int order) {                           \
        (void)order;                                                                               \
        lines_access(at, sizeof *at, 1);                                                           \
        return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                       \
    }
#define CAS(bits, type, name, is_weak)                                                             \
    int __tsan_atomic##bits##_compare_exchange_##name(type *at, type *expected, type value,        \
                                                      int order, int failure);                     \
    int __tsan_atomic##bits##_compare_exchange_##name(type *at, type *expected, type value,        \
                                                      int order, int failure) {                    \
        (void)order;                                                                               \
        (void)failure;                                                                             \
        lines_access(at, sizeof *at, 1);                                                           \
        return __atomic_compare_exchange_n(at, expected, value, is_weak, __ATOMIC_SEQ_CST,         \
                                           __ATOMIC_SEQ_CST);                                      \
    }
#define __atomic_exchange __atomic_exchange_n
#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const type *at, int order);                                    \
    type __tsan_atomic##bits##_load(const type *at, int order) {                                   \
        (void)order;                                                                               \
        lines_access(at, sizeof *at, 0);                                                           \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(type *at, type value, int order);                             \
    void __tsan_atomic##bits##_store(type *at, type value, int order) {                            \
        (void)order;                                                                               \
        lines_access(at, sizeof *at, 1);                                                           \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    RMW(bits, type, exchange)                                                                      \
    RMW(bits, type, fetch_add)                                                                     \
    RMW(bits, type, fetch_sub)                                                                     \
    RMW(bits, type, fetch_or)                                                                      \
    RMW(bits, type, fetch_and)                                                                     \
    CAS(bits, type, strong, 0)                                                                     \
    CAS(bits, type, weak, 1)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order); /* moves no line */
void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
