/* SPDX-License-Identifier: MIT
 *
 * musl's malloc.h, with the names that the library also defines there, as glibc's declares them. */
#ifndef HAK_TEST_MALLOC_H
#define HAK_TEST_MALLOC_H

#include_next <malloc.h>
#include <stdio.h>

#define M_MXFAST 1
#define M_TRIM_THRESHOLD (-1)
#define M_TOP_PAD (-2)
#define M_MMAP_THRESHOLD (-3)
#define M_MMAP_MAX (-4)
#define M_CHECK_ACTION (-5)
#define M_PERTURB (-6)
#define M_ARENA_TEST (-7)
#define M_ARENA_MAX (-8)

struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* Weak: the preloaded library has them. */
#pragma weak mallinfo2
#pragma weak mallinfo
#pragma weak mallopt
#pragma weak malloc_trim
#pragma weak malloc_info
#pragma weak malloc_stats
#pragma weak pvalloc
struct mallinfo2 mallinfo2(void);
struct mallinfo mallinfo(void);
int mallopt(int parameter, int value);
int malloc_trim(size_t keep);
int malloc_info(int options, FILE *stream);
void malloc_stats(void);
void *pvalloc(size_t size);

#endif
