/* SPDX-License-Identifier: MIT
 *
 * The hak_ names of include/hakmem/hakmem.h. Nothing here overrides the malloc of the process, so
 * this is the form sanitizers and qemu-user run.
 */
#include <hakmem/hakmem.h>

#include "family.h"

family_t family;

static size_t usable_size(void *block) {
    return hak_malloc_usable_size(block);
}

void family_load(void) {
    family = (family_t){
        .is_hakmem = true,
        .malloc = hak_malloc,
        .calloc = hak_calloc,
        .realloc = hak_realloc,
        .free = hak_free,
        .aligned_alloc = hak_aligned_alloc,
        .posix_memalign = hak_posix_memalign,
        .memalign = hak_memalign,
        .valloc = hak_valloc,
        .pvalloc = hak_pvalloc,
        .usable_size = usable_size,
        .reallocarray = hak_reallocarray,
        .free_sized = hak_free_sized,
        .free_aligned_sized = hak_free_aligned_sized,
        .reallocf = hak_reallocf,
        .recallocarray = hak_recallocarray,
        .freezero = hak_freezero,
        .trim = hak_malloc_trim,
        .cfree = NULL,
    };
}
