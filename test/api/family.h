/* SPDX-License-Identifier: MIT
 *
 * The malloc family as a table of functions, so that one test serves three ways to reach it:
 *   family_plain.c   the standard names, looked up at run time (preload, or plain libc)
 *   family_linked.c  the standard names, resolved by the linker (shared and static library)
 *   family_hak.c     the hak_ names (also the only way for sanitizer and cross builds)
 * The table also keeps the compiler from reasoning about the calls. A function the allocator at
 * hand does not have is NULL; EXPECT_HAS skips the test then, unless the allocator is hakmem.
 */
#ifndef HAK_TEST_FAMILY_H
#define HAK_TEST_FAMILY_H

#include "expect.h"

typedef struct family {
    bool is_hakmem;
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable_size)(void *);
    void *(*reallocarray)(void *, size_t, size_t);
    void (*free_sized)(void *, size_t);
    void (*free_aligned_sized)(void *, size_t, size_t);
    void *(*reallocf)(void *, size_t);
    void *(*recallocarray)(void *, size_t, size_t, size_t);
    void (*freezero)(void *, size_t);
    int (*trim)(size_t);
    void (*cfree)(void *); /* has no hak_ form */
} family_t;

extern family_t family;

/* Fills `family`; called once at the start of main. */
void family_load(void);

#define EXPECT_HAS(function)                                                                       \
    do {                                                                                           \
        if (!family.function) {                                                                    \
            EXPECT(!family.is_hakmem);                                                             \
            expect_say("absent in this allocator: %s\n", #function);                               \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#endif
