// SPDX-License-Identifier: MIT
//
// include/hakmem/hakmem.hpp: memory_resource, allocator, and the operators that this target asks
// for. The program's malloc is the C library's, so that usable sizes tell whose a block is.
#define HAKMEM_DEFINE_OPERATORS
#include <hakmem/hakmem.hpp>

#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "api/expect.h"

namespace {

volatile std::size_t too_large = SIZE_MAX / 2 + 1; // compilers refuse the constant

struct alignas(256) wide {
    unsigned char bytes[300];
};

bool is_ours(const void *block, std::size_t size) {
    return hak_malloc_usable_size(block) >= hak_good_size(size) && hak_good_size(size) != 0;
}

bool is_aligned(const void *block, std::size_t align) {
    return reinterpret_cast<std::uintptr_t>(block) % align == 0;
}

void resource_serves_containers_and_equals_its_like() {
    std::pmr::memory_resource &resource = *hakmem::memory_resource();
    std::pmr::vector<std::uint64_t> numbers(&resource);
    for (std::uint64_t i = 0; i < 100000; i++) {
        numbers.push_back(i);
    }
    EXPECT(is_ours(numbers.data(), numbers.capacity() * sizeof numbers[0]));
    std::pmr::map<int, std::pmr::string> names(&resource);
    for (int i = 0; i < 1000; i++) {
        names.emplace(i, std::string(static_cast<std::size_t>(i), 'x'));
    }
    EXPECT(names[999].size() == 999);
    void *block = resource.allocate(5000, 4096);
    EXPECT(is_aligned(block, 4096));
    resource.deallocate(block, 5000, 4096);
    hakmem::resource other;
    EXPECT(resource.is_equal(other) && resource == other);
    EXPECT(!resource.is_equal(*std::pmr::new_delete_resource()));
    EXPECT(hakmem::memory_resource() == &resource);
}

void resource_has_the_type_of_those_of_the_standard() {
    static_assert(std::is_same_v<decltype(hakmem::memory_resource()),
                                 decltype(std::pmr::new_delete_resource())>);
    std::pmr::memory_resource *before = std::pmr::set_default_resource(hakmem::memory_resource());
    std::pmr::vector<int> numbers(1000);
    EXPECT(is_ours(numbers.data(), 4000) &&
           std::pmr::get_default_resource() == hakmem::memory_resource());
    std::pmr::set_default_resource(before);
}

void allocator_has_no_state_and_keeps_alignment() {
    std::vector<int, hakmem::allocator<int>> numbers(1000, 7);
    std::vector<int> usual;
    static_assert(sizeof numbers == sizeof usual);
    static_assert(std::allocator_traits<hakmem::allocator<int>>::is_always_equal::value);
    EXPECT(is_ours(numbers.data(), 4000));
    std::list<wide, hakmem::allocator<wide>> list(10);
    for (const wide &one : list) {
        EXPECT(is_aligned(&one, 256));
    }
    EXPECT(hakmem::allocator<int>() == hakmem::allocator<wide>());
    EXPECT(!(hakmem::allocator<int>() != hakmem::allocator<wide>()));
}

void too_much_throws() {
    bool has_thrown = false;
    try {
        (void)hakmem::allocator<std::uint64_t>().allocate(too_large / 2);
    } catch (const std::bad_alloc &) {
        has_thrown = true;
    }
    EXPECT(has_thrown);
    has_thrown = false;
    try {
        (void)hakmem::memory_resource()->allocate(too_large, 16);
    } catch (const std::bad_alloc &) {
        has_thrown = true;
    }
    EXPECT(has_thrown);
}

int handler_calls = 0;

void handler_is_asked_until_it_gives_up() {
    std::set_new_handler([] {
        if (++handler_calls == 3) {
            std::set_new_handler(nullptr);
        }
    });
    bool has_thrown = false;
    try {
        (void)hakmem::allocate(too_large);
    } catch (const std::bad_alloc &) {
        has_thrown = true;
    }
    EXPECT(has_thrown && handler_calls == 3);
}

void operators_of_this_target_are_ours() {
    char *text = new char[1000];
    EXPECT(is_ours(text, 1000));
    delete[] text;
    wide *one = new wide;
    EXPECT(is_aligned(one, 256));
    delete one;
    std::string *heap = new std::string(200, 'a');
    EXPECT(is_ours(heap->data(), 201));
    delete heap;
    EXPECT(::operator new(too_large, std::nothrow) == nullptr);
    void *libc = std::malloc(1000);
    EXPECT(libc != nullptr);
    std::free(libc);
}

} // namespace

int main() {
    RUN(resource_serves_containers_and_equals_its_like);
    RUN(resource_has_the_type_of_those_of_the_standard);
    RUN(allocator_has_no_state_and_keeps_alignment);
    RUN(too_much_throws);
    RUN(handler_is_asked_until_it_gives_up);
    RUN(operators_of_this_target_are_ours);
    return expect_status();
}
