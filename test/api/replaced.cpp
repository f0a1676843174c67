// SPDX-License-Identifier: MIT
//
// A program's own operators, as many as REPLACED_SET says, over posix_memalign and free: in an
// executable or in a library. Where it replaces a new with its delete, blocks have a header; else
// they are larger than was asked for.
#include "replaced.h"

#include <cstdint>
#include <cstdlib>
#include <new>

unsigned replaced_calls[FORM_COUNT];
bool replaced_fails;
bool replaced_was_bad;

#define HAS(form) ((REPLACED_SET >> (form)) & 1)

namespace {

constexpr std::size_t HEADER_BYTES = 64, TRAILER_BYTES = 200;
constexpr std::uint64_t MAGIC = 0x7265706c61636564;

// Of the kind that a form belongs to.
constexpr bool has_header(unsigned form) {
    unsigned kind = form / FORM_ALIGNED * FORM_ALIGNED;
    unsigned in_kind = form % FORM_ALIGNED;
    bool is_array = in_kind == FORM_NEW_ARRAY || in_kind == FORM_NEW_ARRAY_NOTHROW ||
                    in_kind >= FORM_DELETE_ARRAY;
    return is_array ? HAS(kind + FORM_NEW_ARRAY) && HAS(kind + FORM_DELETE_ARRAY)
                    : HAS(kind + FORM_NEW) && HAS(kind + FORM_DELETE);
}

[[maybe_unused]] void *make(unsigned form, std::size_t size, std::size_t align) {
    std::size_t before = align > HEADER_BYTES ? align : HEADER_BYTES;
    void *block = nullptr;
    ++replaced_calls[form];
    if (replaced_fails || posix_memalign(&block, align, before + size + TRAILER_BYTES) != 0) {
        return nullptr;
    }
    if (has_header(form)) {
        block = static_cast<char *>(block) + before;
        static_cast<std::uint64_t *>(block)[-1] = MAGIC;
        static_cast<std::uint64_t *>(block)[-2] = before;
    }
    return block;
}

[[maybe_unused]] void *make_or_throw(unsigned form, std::size_t size, std::size_t align) {
    void *block = make(form, size, align);
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    return block;
}

[[maybe_unused]] void drop(unsigned form, void *block) {
    ++replaced_calls[form];
    if (block == nullptr || !has_header(form)) {
        free(block);
        return;
    }
    std::uint64_t *words = static_cast<std::uint64_t *>(block);
    if (words[-1] != MAGIC) {
        replaced_was_bad = true;
        return;
    }
    words[-1] = 0;
    free(static_cast<char *>(block) - words[-2]);
}

[[maybe_unused]] std::size_t number(std::align_val_t align) {
    return static_cast<std::size_t>(align);
}

} // namespace

#if HAS(FORM_NEW)
void *operator new(std::size_t size) {
    return make_or_throw(FORM_NEW, size, 16);
}
#endif
#if HAS(FORM_NEW_NOTHROW)
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return make(FORM_NEW_NOTHROW, size, 16);
}
#endif
#if HAS(FORM_NEW_ARRAY)
void *operator new[](std::size_t size) {
    return make_or_throw(FORM_NEW_ARRAY, size, 16);
}
#endif
#if HAS(FORM_NEW_ARRAY_NOTHROW)
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept {
    return make(FORM_NEW_ARRAY_NOTHROW, size, 16);
}
#endif
#if HAS(FORM_DELETE)
void operator delete(void *block) noexcept {
    drop(FORM_DELETE, block);
}
#endif
#if HAS(FORM_DELETE_NOTHROW)
void operator delete(void *block, const std::nothrow_t &) noexcept {
    drop(FORM_DELETE_NOTHROW, block);
}
#endif
#if HAS(FORM_DELETE_SIZED)
void operator delete(void *block, std::size_t) noexcept {
    drop(FORM_DELETE_SIZED, block);
}
#endif
#if HAS(FORM_DELETE_ARRAY)
void operator delete[](void *block) noexcept {
    drop(FORM_DELETE_ARRAY, block);
}
#endif
#if HAS(FORM_DELETE_ARRAY_NOTHROW)
void operator delete[](void *block, const std::nothrow_t &) noexcept {
    drop(FORM_DELETE_ARRAY_NOTHROW, block);
}
#endif
#if HAS(FORM_DELETE_ARRAY_SIZED)
void operator delete[](void *block, std::size_t) noexcept {
    drop(FORM_DELETE_ARRAY_SIZED, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_NEW)
void *operator new(std::size_t size, std::align_val_t align) {
    return make_or_throw(FORM_ALIGNED + FORM_NEW, size, number(align));
}
#endif
#if HAS(FORM_ALIGNED + FORM_NEW_NOTHROW)
void *operator new(std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept {
    return make(FORM_ALIGNED + FORM_NEW_NOTHROW, size, number(align));
}
#endif
#if HAS(FORM_ALIGNED + FORM_NEW_ARRAY)
void *operator new[](std::size_t size, std::align_val_t align) {
    return make_or_throw(FORM_ALIGNED + FORM_NEW_ARRAY, size, number(align));
}
#endif
#if HAS(FORM_ALIGNED + FORM_NEW_ARRAY_NOTHROW)
void *operator new[](std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept {
    return make(FORM_ALIGNED + FORM_NEW_ARRAY_NOTHROW, size, number(align));
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE)
void operator delete(void *block, std::align_val_t) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE_NOTHROW)
void operator delete(void *block, std::align_val_t, const std::nothrow_t &) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE_NOTHROW, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE_SIZED)
void operator delete(void *block, std::size_t, std::align_val_t) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE_SIZED, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE_ARRAY)
void operator delete[](void *block, std::align_val_t) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE_ARRAY, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE_ARRAY_NOTHROW)
void operator delete[](void *block, std::align_val_t, const std::nothrow_t &) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE_ARRAY_NOTHROW, block);
}
#endif
#if HAS(FORM_ALIGNED + FORM_DELETE_ARRAY_SIZED)
void operator delete[](void *block, std::size_t, std::align_val_t) noexcept {
    drop(FORM_ALIGNED + FORM_DELETE_ARRAY_SIZED, block);
}
#endif
