/* SPDX-License-Identifier: MIT
 *
 * hakmem for C++17, beside any other allocator: a std::pmr::memory_resource, a stateless allocator
 * for containers, and, where a target asks for them, the replaceable operators new and delete.
 *
 *     std::pmr::vector<int> numbers(hakmem::memory_resource());
 *     std::vector<int, hakmem::allocator<int>> others;
 *
 * Programs that link or preload the library need none of this: it replaces the operators itself. A
 * target that does not replace malloc, but wants its own new and delete on hakmem, defines
 * HAKMEM_DEFINE_OPERATORS in exactly one of its source files, before this header. */
#ifndef HAKMEM_HAKMEM_HPP
#define HAKMEM_HAKMEM_HPP

#include <hakmem/hakmem.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>

namespace hakmem {

/* A block of at least `size` bytes; throws std::bad_alloc after new_handlers have given up, as
 * operator new does. */
[[nodiscard]] inline void *allocate(std::size_t size,
                                    std::size_t align = alignof(std::max_align_t)) {
    for (;;) {
        void *block =
            align <= alignof(std::max_align_t) ? hak_malloc(size) : hak_aligned_alloc(align, size);
        if (block != nullptr) {
            return block;
        }
        std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) {
            throw std::bad_alloc();
        }
        handler();
    }
}

/* `size` and `align` are those of allocate. */
inline void deallocate(void *block, std::size_t size,
                       std::size_t align = alignof(std::max_align_t)) noexcept {
    if (align <= alignof(std::max_align_t)) {
        hak_free_sized(block, size);
    } else {
        hak_free_aligned_sized(block, align, size);
    }
}

/* All resources of this type are equal: a block of one may go back to any. (Without run-time types,
 * as by -fno-rtti, each equals itself alone.) */
class resource final : public std::pmr::memory_resource {
    void *do_allocate(std::size_t size, std::size_t align) override {
        return hakmem::allocate(size, align);
    }
    void do_deallocate(void *block, std::size_t size, std::size_t align) override {
        hakmem::deallocate(block, size, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#ifdef __cpp_rtti
        return this == &other || dynamic_cast<const resource *>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

/* The resource, as std::pmr::new_delete_resource() returns one: a pointer that is never null. It
 * lives as long as the process, also in destructors of static objects. */
[[nodiscard]] inline std::pmr::memory_resource *memory_resource() noexcept {
    alignas(resource) static unsigned char storage[sizeof(resource)];
    static resource *const made = ::new (static_cast<void *>(storage)) resource;
    return made;
}

/* For containers; has no state, so that all are equal and containers stay as small as they are. */
template <class T> struct allocator {
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U> constexpr allocator(const allocator<U> &) noexcept {
    }

    [[nodiscard]] T *allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T *>(hakmem::allocate(count * sizeof(T), alignof(T)));
    }
    void deallocate(T *block, std::size_t count) noexcept {
        hakmem::deallocate(block, count * sizeof(T), alignof(T));
    }
    template <class U> constexpr bool operator==(const allocator<U> &) const noexcept {
        return true;
    }
    template <class U> constexpr bool operator!=(const allocator<U> &) const noexcept {
        return false;
    }
};

} // namespace hakmem

#if defined(HAKMEM_DEFINE_OPERATORS)
/* The replaceable forms that all others of the C++ runtime call, and the sized ones. */
void *operator new(std::size_t size) {
    return hakmem::allocate(size);
}
void *operator new[](std::size_t size) {
    return hakmem::allocate(size);
}
void *operator new(std::size_t size, std::align_val_t align) {
    return hakmem::allocate(size, static_cast<std::size_t>(align));
}
void *operator new[](std::size_t size, std::align_val_t align) {
    return hakmem::allocate(size, static_cast<std::size_t>(align));
}
void operator delete(void *block) noexcept {
    hak_free(block);
}
void operator delete[](void *block) noexcept {
    hak_free(block);
}
void operator delete(void *block, std::size_t size) noexcept {
    hak_free_sized(block, size);
}
void operator delete[](void *block, std::size_t size) noexcept {
    hak_free_sized(block, size);
}
void operator delete(void *block, std::align_val_t) noexcept {
    hak_free(block);
}
void operator delete[](void *block, std::align_val_t) noexcept {
    hak_free(block);
}
void operator delete(void *block, std::size_t size, std::align_val_t align) noexcept {
    hakmem::deallocate(block, size, static_cast<std::size_t>(align));
}
void operator delete[](void *block, std::size_t size, std::align_val_t align) noexcept {
    hakmem::deallocate(block, size, static_cast<std::size_t>(align));
}
#endif

#endif
