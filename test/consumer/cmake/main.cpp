// SPDX-License-Identifier: MIT
//
// Containers on hakmem's memory resource and allocator.
#include <hakmem/hakmem.hpp>

#include <cstdio>
#include <vector>

int main() {
    std::pmr::vector<int> numbers(1000, hakmem::memory_resource());
    std::vector<int, hakmem::allocator<int>> others(1000);
    std::vector<int> usual(1000);
    bool is_ours = hak_malloc_usable_size(usual.data()) >= hak_good_size(4000);
    std::printf("%s %s\n", is_ours ? "on hakmem" : "on another malloc", hak_version());
    return is_ours && numbers.size() == others.size() ? 0 : 1;
}
