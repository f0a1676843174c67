// SPDX-License-Identifier: MIT
//
// Do all forms of operator new and delete work: plain, array, sized, aligned, nothrow; is the
// new_handler asked until it gives up or throws; does failure give bad_alloc, or NULL for nothrow?
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "expect.h"

extern "C" size_t malloc_usable_size(void *);

// Declared by <new> only where the compiler emits sized deallocation by default.
void operator delete(void *, size_t) noexcept;
void operator delete[](void *, size_t) noexcept;
void operator delete(void *, size_t, std::align_val_t) noexcept;
void operator delete[](void *, size_t, std::align_val_t) noexcept;

namespace {

int handler_calls;
int handler_calls_allowed;

struct handler_gave_up : std::bad_alloc {};

void handler_that_retires() {
    if (++handler_calls == handler_calls_allowed) {
        std::set_new_handler(nullptr);
    }
}

void handler_that_throws() {
    if (++handler_calls == handler_calls_allowed) {
        throw handler_gave_up();
    }
}

void handler_install(std::new_handler handler, int allowed) {
    handler_calls = 0;
    handler_calls_allowed = allowed;
    std::set_new_handler(handler);
}

volatile size_t impossible_bytes = static_cast<size_t>(PTRDIFF_MAX) - 100;

void check_block(void *block, size_t alignment, size_t size) {
    EXPECT(block != nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0);
    EXPECT(malloc_usable_size(block) >= size);
    memset(block, 1, size);
}

void new_and_delete_plain_forms_serve_all_sizes() {
    for (size_t size = 0; size <= size_t{1} << 22; size = size * 3 / 2 + 1) {
        void *block = ::operator new(size);
        check_block(block, 16, size);
        ::operator delete(block);
        block = ::operator new(size);
        ::operator delete(block, size);
        block = ::operator new[](size);
        check_block(block, 16, size);
        ::operator delete[](block);
        block = ::operator new[](size);
        ::operator delete[](block, size);
        block = ::operator new(size, std::nothrow);
        check_block(block, 16, size);
        ::operator delete(block, std::nothrow);
        block = ::operator new[](size, std::nothrow);
        check_block(block, 16, size);
        ::operator delete[](block, std::nothrow);
    }
}

void new_and_delete_aligned_forms_serve_all_alignments() {
    for (size_t log2 = 0; log2 <= 21; ++log2) {
        size_t alignment = size_t{1} << log2;
        std::align_val_t tag{alignment};
        for (size_t size = 0; size <= 200000; size = size * 4 + 1) {
            void *block = ::operator new(size, tag);
            check_block(block, alignment, size);
            ::operator delete(block, tag);
            block = ::operator new(size, tag);
            ::operator delete(block, size, tag);
            block = ::operator new[](size, tag);
            check_block(block, alignment, size);
            ::operator delete[](block, tag);
            block = ::operator new[](size, tag);
            ::operator delete[](block, size, tag);
            block = ::operator new(size, tag, std::nothrow);
            check_block(block, alignment, size);
            ::operator delete(block, tag, std::nothrow);
            block = ::operator new[](size, tag, std::nothrow);
            check_block(block, alignment, size);
            ::operator delete[](block, tag, std::nothrow);
        }
    }
}

void delete_of_null_does_nothing() {
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete (nullptr, size_t{8});
    ::operator delete[](nullptr, size_t{8});
    ::operator delete (nullptr, std::align_val_t{64});
    ::operator delete[](nullptr, size_t{8}, std::align_val_t{64});
    ::operator delete(nullptr, std::nothrow);
}

void *volatile kept;

template <typename Exception, typename Call> bool throws(Call call) {
    try {
        kept = call(); // never reached: the request is impossible
    } catch (const Exception &) {
        return true;
    }
    return false;
}

void new_without_memory_throws_bad_alloc() {
    std::set_new_handler(nullptr);
    static const size_t sizes[] = {impossible_bytes, SIZE_MAX, size_t{PTRDIFF_MAX} + 1};
    for (volatile size_t size : sizes) {
        EXPECT(throws<std::bad_alloc>([&] { return ::operator new(size); }));
        EXPECT(throws<std::bad_alloc>([&] { return ::operator new[](size); }));
        if (size == SIZE_MAX && !expect_is_hakmem()) {
            continue; // libstdc++ rounds this up to the alignment and overflows
        }
        EXPECT(throws<std::bad_alloc>([&] { return ::operator new (size, std::align_val_t{64}); }));
        EXPECT(
            throws<std::bad_alloc>([&] { return ::operator new[](size, std::align_val_t{4096}); }));
    }
    EXPECT(throws<std::bad_alloc>(
        [] { return std::vector<char>().get_allocator().allocate(impossible_bytes); }));
}

void new_nothrow_without_memory_gives_null() {
    std::set_new_handler(nullptr);
    size_t size = impossible_bytes;
    EXPECT(::operator new(size, std::nothrow) == nullptr);
    EXPECT(::operator new[](size, std::nothrow) == nullptr);
    EXPECT(::operator new (size, std::align_val_t{64}, std::nothrow) == nullptr);
    EXPECT(::operator new[](size, std::align_val_t{64}, std::nothrow) == nullptr);
}

void new_asks_the_handler_until_it_retires() {
    size_t size = impossible_bytes;
    handler_install(handler_that_retires, 3);
    EXPECT(throws<std::bad_alloc>([&] { return ::operator new(size); }));
    EXPECT_EQ(handler_calls, 3);
    handler_install(handler_that_retires, 4);
    EXPECT(throws<std::bad_alloc>([&] { return ::operator new (size, std::align_val_t{128}); }));
    EXPECT_EQ(handler_calls, 4);
    handler_install(handler_that_retires, 5);
    EXPECT(::operator new(size, std::nothrow) == nullptr);
    EXPECT_EQ(handler_calls, 5);
    EXPECT(std::get_new_handler() == nullptr);
}

void new_passes_on_what_the_handler_throws() {
    size_t size = impossible_bytes;
    handler_install(handler_that_throws, 2);
    EXPECT(throws<handler_gave_up>([&] { return ::operator new(size); }));
    EXPECT_EQ(handler_calls, 2);
    handler_install(handler_that_throws, 1);
    EXPECT(throws<handler_gave_up>([&] { return ::operator new[](size, std::align_val_t{64}); }));
    EXPECT_EQ(handler_calls, 1);
    std::set_new_handler(nullptr);
}

void new_nothrow_gives_null_when_the_handler_throws() {
    size_t size = impossible_bytes;
    handler_install(handler_that_throws, 1);
    EXPECT(::operator new(size, std::nothrow) == nullptr);
    EXPECT_EQ(handler_calls, 1);
    handler_install(handler_that_throws, 2);
    EXPECT(::operator new[](size, std::align_val_t{64}, std::nothrow) == nullptr);
    EXPECT_EQ(handler_calls, 2);
    std::set_new_handler(nullptr);
}

struct alignas(256) wide {
    char bytes[300];
};

struct failing {
    explicit failing(int *built) {
        if (++*built == 50) {
            throw *built;
        }
    }
    char bytes[1000];
};

void new_expressions_and_containers_work() {
    std::unique_ptr<wide> one(new wide);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one.get()) % 256, 0);
    std::unique_ptr<wide[]> many(new wide[10]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(many.get()) % 256, 0);
    std::vector<std::string> words;
    for (int i = 0; i < 10000; ++i) {
        words.push_back(std::string(static_cast<size_t>(i % 200), 'x') + std::to_string(i));
    }
    for (size_t i = 0; i < words.size(); ++i) {
        EXPECT_EQ(words[i].size(), i % 200 + std::to_string(i).size());
    }
}

void new_expression_whose_constructor_throws_frees_its_memory() {
    size_t before = expect_rss_bytes();
    for (int round = 0; round < 20000; ++round) {
        int built = 49;
        try {
            delete new failing(&built);
            EXPECT(false);
        } catch (int count) {
            EXPECT_EQ(count, 50);
        }
    }
    expect_rss_at_most(before, 8 << 20);
}

} // namespace

int main() {
    RUN(new_and_delete_plain_forms_serve_all_sizes);
    RUN(new_and_delete_aligned_forms_serve_all_alignments);
    RUN(delete_of_null_does_nothing);
    RUN(new_without_memory_throws_bad_alloc);
    RUN(new_nothrow_without_memory_gives_null);
    RUN(new_asks_the_handler_until_it_retires);
    RUN(new_passes_on_what_the_handler_throws);
    RUN(new_nothrow_gives_null_when_the_handler_throws);
    RUN(new_expressions_and_containers_work);
    RUN(new_expression_whose_constructor_throws_frees_its_memory);
    return expect_status();
}
