// SPDX-License-Identifier: MIT
//
// Does a program whose only operators are the inline ones, as it uses the plain forms alone, get
// memory at its first request, of any size, and bad_alloc where there is none? (It called NULL: the
// archive's C++ part was left out.)
#include <cstdint>
#include <new>

#include "expect.h"

namespace {

volatile size_t impossible_bytes = static_cast<size_t>(PTRDIFF_MAX) - 100;

void plain_forms_alone_serve_all_sizes() {
    const size_t sizes[] = {1, 64, 2048, 2049, 100000, 5000000};
    for (size_t size : sizes) {
        auto *block = static_cast<char *>(::operator new(size));
        EXPECT(block != nullptr);
        memset(block, 1, size);
        ::operator delete(block);
    }
}

void plain_forms_alone_throw_when_memory_is_out() {
    bool is_thrown = false;
    try {
        ::operator delete(::operator new(impossible_bytes));
    } catch (const std::bad_alloc &) {
        is_thrown = true;
    }
    EXPECT(is_thrown);
}

} // namespace

int main() {
    RUN(plain_forms_alone_serve_all_sizes);
    RUN(plain_forms_alone_throw_when_memory_is_out);
    return expect_status();
}
