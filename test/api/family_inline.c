/* SPDX-License-Identifier: MIT
 *
 * The standard names as the linker resolves them, with the inline hit paths of hakmem/inline.h
 * where it has one. */
#include <hakmem/inline.h>

#include <stdbool.h>

static inline bool expect_is_hakmem(void) {
    return true;
}

static void *inline_malloc(size_t size) {
    return hak_inline_malloc(size);
}

static void inline_free(void *block) {
    hak_inline_free(block);
}

static void inline_free_sized(void *block, size_t size) {
    hak_inline_free_sized(block, size);
}

#define family_load family_load_linked
#include "family_linked.c"
#undef family_load

void family_load(void) {
    family_load_linked();
    family.malloc = inline_malloc;
    family.free = inline_free;
    family.free_sized = inline_free_sized;
}
