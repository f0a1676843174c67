/* SPDX-License-Identifier: MIT
 *
 * The standard names as the linker resolves them: for programs linked with libhakmem.so or
 * libhakmem.a. A name the library lacks is a link error here.
 */
#include <malloc.h>
#include <stdlib.h>

#include "family.h"

/* Not declared by every libc. */
void free_sized(void *ptr, size_t size);
void free_aligned_sized(void *ptr, size_t alignment, size_t size);
void *reallocf(void *ptr, size_t size);
void *recallocarray(void *ptr, size_t old_count, size_t count, size_t size);
void freezero(void *ptr, size_t size);
void cfree(void *ptr);

family_t family;

void family_load(void) {
    family = (family_t){
        .is_hakmem = expect_is_hakmem(),
        .malloc = malloc,
        .calloc = calloc,
        .realloc = realloc,
        .free = free,
        .aligned_alloc = aligned_alloc,
        .posix_memalign = posix_memalign,
        .memalign = memalign,
        .valloc = valloc,
        .pvalloc = pvalloc,
        .usable_size = malloc_usable_size,
        .reallocarray = reallocarray,
        .free_sized = free_sized,
        .free_aligned_sized = free_aligned_sized,
        .reallocf = reallocf,
        .recallocarray = recallocarray,
        .freezero = freezero,
        .trim = malloc_trim,
        .cfree = cfree,
    };
}
