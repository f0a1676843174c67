/* SPDX-License-Identifier: MIT
 *
 * The standard names as the dynamic linker finds them: whatever allocator is preloaded.
 */
#include <dlfcn.h>

#include "family.h"

family_t family;

#define LOAD(field, name) *(void **)(&family.field) = dlsym(RTLD_DEFAULT, name)

void family_load(void) {
    family.is_hakmem = expect_is_hakmem();
    LOAD(malloc, "malloc");
    LOAD(calloc, "calloc");
    LOAD(realloc, "realloc");
    LOAD(free, "free");
    LOAD(aligned_alloc, "aligned_alloc");
    LOAD(posix_memalign, "posix_memalign");
    LOAD(memalign, "memalign");
    LOAD(valloc, "valloc");
    LOAD(pvalloc, "pvalloc");
    LOAD(usable_size, "malloc_usable_size");
    LOAD(reallocarray, "reallocarray");
    LOAD(free_sized, "free_sized");
    LOAD(free_aligned_sized, "free_aligned_sized");
    LOAD(reallocf, "reallocf");
    LOAD(recallocarray, "recallocarray");
    LOAD(freezero, "freezero");
    LOAD(trim, "malloc_trim");
    LOAD(cfree, "cfree");
}
