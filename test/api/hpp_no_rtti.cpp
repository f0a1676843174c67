// SPDX-License-Identifier: MIT
//
// The header of C++ as a program built with -fno-rtti includes it.

#include <hakmem/hakmem.hpp>

bool hpp_is_equal_to_itself() {
    return hakmem::memory_resource()->is_equal(*hakmem::memory_resource());
}
