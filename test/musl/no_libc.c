/* SPDX-License-Identifier: MIT
 *
 * A program of no C library: says "alive" by system calls. Linked statically, or dynamically
 * against nothing, with the library in LD_PRELOAD. */
#include <sys/syscall.h>

static long call(long number, long first, long second, long third) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}

void _start(void) {
    static const char text[] = "alive\n";
    call(SYS_write, 1, (long)text, sizeof text - 1);
    for (;;) {
        call(SYS_exit_group, 0, 0, 0);
    }
}
