/* SPDX-License-Identifier: MIT
 *
 * Direct system calls: no errno, no cancellation point, no libc. Returns -errno on failure. */
#ifndef HAK_OS_SYSCALL_LINUX_H
#define HAK_OS_SYSCALL_LINUX_H

#include "base/compiler.h"

#if defined(__x86_64__)
HAK_INLINE long hak_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

HAK_INLINE void *hak_syscall_storage(void) {
    void *storage;
    __asm__("movq %%fs:0, %0" : "=r"(storage));
    return storage;
}
#elif defined(__aarch64__)
HAK_INLINE long hak_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

HAK_INLINE void *hak_syscall_storage(void) {
    void *storage;
    __asm__("mrs %0, tpidr_el0" : "=r"(storage));
    return storage;
}
#else
#error "hakmem supports x86-64 and aarch64"
#endif

/* hak_syscall(number, ...): at least one and at most six arguments, integers or pointers; the
 * others are 0. */
#define hak_syscall_padded(number, a, b, c, d, e, f, ...)                                          \
    hak_syscall6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define hak_syscall(number, ...) hak_syscall_padded(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

#if HAK_TSAN /* it sees no system call: the kernel unmaps addresses before it maps them again */
void __tsan_acquire(void *at), __tsan_release(void *at);
#define HAK_OS_ORDER(what, at) __tsan_##what((void *)(at))
#else
#define HAK_OS_ORDER(what, at) ((void)0)
#endif

#endif
