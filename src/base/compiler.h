/* SPDX-License-Identifier: MIT
 *
 * Spellings of attributes, builtins and inline assembly without instructions. */
#ifndef HAK_BASE_COMPILER_H
#define HAK_BASE_COMPILER_H

#include "base/config.h"

#define HAK_LIKELY(x) __builtin_expect(!!(x), 1)
#define HAK_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* True by what the compiler does not see, and the analyzer would doubt. */
#define HAK_KNOWN(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define HAK_INLINE static inline __attribute__((always_inline))
#define HAK_NOINLINE __attribute__((noinline))
#define HAK_COLD __attribute__((noinline, cold))
#define HAK_AT_START __attribute__((section(".text.startup.hak"))) /* src/api/place.ld */
/* For the few functions of a cache line or two: aligned to a line, they touch no more. */
#define HAK_HOT __attribute__((hot, aligned(64)))
#define HAK_MAY_ALIAS __attribute__((may_alias))
#define HAK_NORETURN __attribute__((noreturn))
#define HAK_EXPORT __attribute__((visibility("default")))
#define HAK_WEAK __attribute__((weak))
#define HAK_NEVER_NULL __attribute__((returns_nonnull))
#define HAK_HIDDEN __attribute__((visibility("hidden")))
/* Its plain reads race with other threads' writes, on purpose: the values are hints. */
#if HAK_TSAN
#define HAK_UNORDERED __attribute__((noinline, no_sanitize("thread")))
#else
#define HAK_UNORDERED
#endif
#define HAK_TLS _Thread_local __attribute__((tls_model("initial-exec")))
/* HAK_TAIL return f(...); in a HAK_TAIL_CALLS function is a jump at any optimisation level. */
#if defined(__clang__)
#define HAK_TAIL_CALLS
#define HAK_TAIL __attribute__((musttail))
#else
#define HAK_TAIL_CALLS __attribute__((optimize("O2")))
#define HAK_TAIL
#endif
/* The running function's frame record: { the caller's record, return address }. */
#define HAK_FRAME() __builtin_frame_address(0)

/* Marks state that several threads write under a lock, and which therefore is not `static`: gcc
 * (ipa-reference) keeps the value of a variable with internal linkage, whose address does not
 * escape, across calls of functions that do not write it, such as those that take and release
 * locks. clang's GlobalsAA does the same. */
#define HAK_LOCKED_STATE
/* Large zeroed state lies behind all small state, in the order of `rank`, so that process start
 * writes to as few OS pages as possible (the libraries are linked with sections sorted by name:
 * docs/experiments/0012-start-up.md). The last rank is what a process writes to that works for a
 * while; musl writes to the last OS page of every library. */
#define HAK_LARGE_STATE(rank) __attribute__((section(".bss.hak_" #rank)))
/* Hides a variable's value, so that the compiler computes anew from it. No instruction. */
#define HAK_OPAQUE(variable) __asm__("" : "+r"(variable))

/* How the hit path addresses a bin. x86-64: an operand of two registers and an offset is free, so
 * each access forms its own (HAK_OPERANDS hides the offset; the first use keeps the return register
 * free), and a field that is read twice is two operands in memory. Others: one pointer. */
#if defined(__x86_64__)
#define HAK_OPERANDS(variable) HAK_OPAQUE(variable)
#define HAK_OPERANDS_FIRST(variable) __asm__("" : "+r"(variable) : : "rax")
#define HAK_READ_AGAIN(lvalue) __asm__("" : "+m"(lvalue))
#define HAK_POINTER(variable) ((void)0)
#else
#define HAK_OPERANDS(variable) ((void)0)
#define HAK_OPERANDS_FIRST(variable) ((void)0)
#define HAK_READ_AGAIN(lvalue) ((void)0)
#define HAK_POINTER(variable) HAK_OPAQUE(variable)
#endif

/* Prefetches a cache line for writing; any address will do. Compilers fetch it for reading, unless
 * told of a processor that can: all of x86-64 can, or pass over it. */
#ifdef __x86_64__
#define HAK_FETCH(address) __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(address)))
#else
#define HAK_FETCH(address) __builtin_prefetch((address), 1)
#endif

/* Orders earlier before later accesses, for a signal handler of this thread. */
#define HAK_SIGNAL_FENCE() __asm__ volatile("" ::: "memory")

/* Objects of the type lie in OS pages of their own, read-only after the start of hardened
 * builds. */
#if HAK_HARDEN && defined(__aarch64__)
#define HAK_SEALED __attribute__((aligned(65536)))
#elif HAK_HARDEN
#define HAK_SEALED __attribute__((aligned(4096)))
#else
#define HAK_SEALED
#endif

/* A function with MTE instructions, each begun by HAK_TAG_ASM; other code must not contain any. */
#if defined(__clang__)
#define HAK_TAG_CODE HAK_NOINLINE
#define HAK_TAG_ASM ".arch_extension memtag\n"
#else
#define HAK_TAG_CODE HAK_NOINLINE __attribute__((target("arch=armv8.5-a+memtag")))
#define HAK_TAG_ASM ""
#endif

#define HAK_LINE_BYTES 64 /* cache line of both targets */
#define HAK_LINE_ALIGNED _Alignas(HAK_LINE_BYTES)

/* An extra instruction, to prove that the golden check of the hit path notices it. */
#if HAK_GOLDEN_PROBE
#define HAK_PROBE() __asm__ volatile("nop")
#else
#define HAK_PROBE() ((void)0)
#endif

#endif
