/* SPDX-License-Identifier: MIT
 *
 * operator new and delete as inline hit paths: include it in one source file of a program that is
 * linked with libhakmem.a, and build the program with -flto, by any compiler: it then inlines them
 * where that pays by its own rules. gcc leaves them calls in programs with many of them, unless
 * --param max-inline-insns-auto=60. Without -flto they are as fast as the library's own. The forms
 * that are not here (aligned, nothrow) call these, or are the library's.
 *
 * Failure is the library's: std::new_handler, then std::bad_alloc. */
#ifndef HAKMEM_INLINE_OPERATORS_HPP
#define HAKMEM_INLINE_OPERATORS_HPP

#include "inline.h"

#include <new>

/* The library's operator new behind its hit path. That of the archive's C++ part, so that a program
 * whose only operators are these gets it. */
extern "C" void *hak_new_rest(size_t size);

void *operator new(std::size_t size) {
    void *block = __builtin_expect(size <= HAK_HIT_SMALL_BYTES, 1) ? hak_hit_pop(size) : nullptr;
    return __builtin_expect(block != nullptr, 1) ? block : hak_new_rest(size);
}
void *operator new[](std::size_t size) {
    return operator new(size);
}
void operator delete(void *block) noexcept {
    hak_inline_free(block);
}
void operator delete[](void *block) noexcept {
    hak_inline_free(block);
}
void operator delete(void *block, std::size_t size) noexcept {
    hak_inline_free_sized(block, size);
}
void operator delete[](void *block, std::size_t size) noexcept {
    hak_inline_free_sized(block, size);
}

#endif
