/* SPDX-License-Identifier: MIT
 *
 * Build switches as constants 0 or 1, always defined, so that disabled code still compiles. The
 * build system sets them; the defaults serve an editor or a compile by hand. */
#ifndef HAK_BASE_CONFIG_H
#define HAK_BASE_CONFIG_H

#ifndef HAK_AUDIT /* 1: assertions and audits are active */
#define HAK_AUDIT 0
#endif
#ifndef HAK_HARDEN /* 1: the hardened library, docs/security.md */
#define HAK_HARDEN 0
#endif
#ifndef HAK_OVERRIDE /* 1: the malloc family and C++ operators are exported */
#define HAK_OVERRIDE 1
#endif
#ifndef HAK_REPORT /* 1: with the report at exit */
#define HAK_REPORT 1
#endif
#ifndef HAK_SHARED /* 1: for the shared library, which also wraps dlopen */
#define HAK_SHARED 0
#endif
#ifndef HAK_FAULT /* 1: the test double can make system calls fail */
#define HAK_FAULT 0
#endif
#ifndef HAK_CONTENTION /* 1: counts what each lock costs: os/lock.h */
#define HAK_CONTENTION 0
#endif
#ifndef HAK_GOLDEN_PROBE /* 1: adds an instruction to the hit path; proves the golden check */
#define HAK_GOLDEN_PROBE 0
#endif

/* 1: uses MTE tags where processor and kernel have them: slab/tags.h */
#if HAK_HARDEN && defined(__aarch64__)
#define HAK_MTE 1
#else
#define HAK_MTE 0
#endif

/* 1: built with ThreadSanitizer */
#if defined(__SANITIZE_THREAD__)
#define HAK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAK_TSAN 1
#endif
#endif
#ifndef HAK_TSAN
#define HAK_TSAN 0
#endif

#ifndef __cplusplus
_Static_assert(((HAK_AUDIT | HAK_HARDEN | HAK_OVERRIDE | HAK_REPORT | HAK_SHARED | HAK_FAULT |
                 HAK_CONTENTION | HAK_GOLDEN_PROBE) &
                ~1) == 0,
               "build switches are 0 or 1");
_Static_assert(sizeof(void *) == 8, "hakmem needs a 64-bit target");
#endif

#endif
