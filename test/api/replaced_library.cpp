// SPDX-License-Identifier: MIT
//
// Of a library that has replaced.cpp: its constructor uses default forms before any of the program
// runs. With REPLACED_DISPLACED it is another allocator: it has a malloc as well.
#include "replaced.h"

#include <cstddef>
#include <new>

void operator delete[](void *, std::size_t) noexcept;

namespace {

bool is_early_right;

__attribute__((constructor)) void use_early() {
    unsigned news = replaced_calls[FORM_NEW];
    unsigned deletes = replaced_calls[FORM_DELETE];
    void *volatile block = ::operator new[](40);
    ::operator delete[](block, std::size_t{40});
    is_early_right = replaced_calls[FORM_NEW] == news + 1 &&
                     replaced_calls[FORM_DELETE] == deletes + 1 && !replaced_was_bad;
}

} // namespace

extern "C" {

bool replaced_early() {
    return is_early_right;
}

#ifdef REPLACED_DISPLACED
void *__libc_malloc(std::size_t);
void *malloc(std::size_t size) {
    return __libc_malloc(size);
}
#endif
}
