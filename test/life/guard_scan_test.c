/* SPDX-License-Identifier: MIT
 *
 * A program whose registers, the frame pointer among them, hold addresses that nobody may read,
 * while it allocates and frees watched blocks (guard_rate:1): what looks for stacks keeps off what
 * they lead to. Memory that is read for the first time becomes resident, by which it is told.
 */
#include <sys/mman.h>

#include "thread/block.h"

enum { BLOCKS = 3000, BYTES = 100, STACK_BYTES = 256 << 10, FORBIDDEN_BYTES = 64 << 10 };

static char *stack, *forbidden; /* the second right above the first, and another mapping */
static size_t watched_count;

static void areas_make(void) {
    stack = mmap(NULL, STACK_BYTES + FORBIDDEN_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED);
    forbidden = mmap(stack + STACK_BYTES, FORBIDDEN_BYTES, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    EXPECT(forbidden == stack + STACK_BYTES);
}

static size_t forbidden_resident(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    unsigned char resident[FORBIDDEN_BYTES / 4096] = {0};
    EXPECT_EQ(mincore(forbidden, FORBIDDEN_BYTES, resident), 0);
    for (size_t i = 0; i < FORBIDDEN_BYTES / page; ++i) {
        count += resident[i] & 1;
    }
    return count;
}

#if defined(__x86_64__)
/* function(a, b) with forbidden addresses in the registers that calls keep. */
static void *call(void *function, uintptr_t a, uintptr_t b) {
    char *place = forbidden + FORBIDDEN_BYTES / 2;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t" /* what the compiler may have below */
                     "push %%rbp\n\t"
                     "mov %%rsp, %%rbx\n\t"
                     "and $-16, %%rsp\n\t"
                     "mov %[place], %%r12\n\t"
                     "lea 4096(%%r12), %%r13\n\t"
                     "lea 77(%%r12), %%r14\n\t"
                     "lea 8192(%%r12), %%r15\n\t"
                     "mov %[place], %%rbp\n\t"
                     "call *%%rax\n\t"
                     "mov %%rbx, %%rsp\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "+a"(function), "+D"(a), "+S"(b), [place] "+d"(place)
                     :
                     : "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
    return function;
}
#else
static void *call(void *function, uintptr_t a, uintptr_t b) {
    (void)function, (void)a, (void)b;
    expect_skip("the registers are those of another processor");
}
#endif

static void *allocate(size_t i) {
    switch (i % 3) {
    case 0:
        return call((void *)family.malloc, BYTES, 0);
    case 1:
        return call((void *)family.calloc, 1, BYTES);
    default:
        return call((void *)family.realloc, 0, BYTES);
    }
}

static void *use(void *argument) {
    (void)argument;
    for (size_t i = 0; i < BLOCKS; ++i) {
        void *block = allocate(i);
        EXPECT(block != NULL);
        if (family.usable_size(block) == BYTES) { /* the class has more */
            ++watched_count;
            if (i % 2 == 0) {
                block = call((void *)family.realloc, (uintptr_t)block, 2 * BYTES);
            }
            call((void *)family.free, (uintptr_t)block, 0);
        }
    }
    return NULL;
}

static void stacks_of_watched_blocks_are_looked_for_in_the_stack_alone(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    areas_make();
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    EXPECT_EQ(pthread_create(&thread, &attributes, use, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(watched_count > 10);
    EXPECT_EQ(forbidden_resident(), 0);
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(stacks_of_watched_blocks_are_looked_for_in_the_stack_alone);
    return expect_status();
}
