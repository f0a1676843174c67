/* SPDX-License-Identifier: MIT
 *
 * The C++ operators. The shared library does not depend on a C++ runtime: what is needed to throw,
 * and to call a new_handler, is referred to weakly and is there whenever a C++ program is. In the
 * archive the references are strong: only a C++ program pulls this object, and brings its runtime.
 * The hit path is that of malloc and free, by a tail call to hak_malloc and hak_free. */
#include <cstddef>
#include <cstdlib>
#include <new>

#include "hakmem/hakmem.h"

#define HAK_CXX_EXPORT __attribute__((visibility("default")))
#if defined(HAK_SHARED) && HAK_SHARED
#define HAK_CXX_WEAK __attribute__((weak))
#else
#define HAK_CXX_WEAK
#endif
#define HAK_CXX_COLD __attribute__((noinline, cold))

#if defined(HAK_OVERRIDE) && HAK_OVERRIDE

/* std::get_new_handler() and std::__throw_bad_alloc() of libstdc++ and libc++. */
extern "C" std::new_handler hak_cxx_get_new_handler() noexcept
    __asm__("_ZSt15get_new_handlerv") HAK_CXX_WEAK;
extern "C" void hak_cxx_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv") HAK_CXX_WEAK;
extern "C" void *dlopen(const char *, int) noexcept __attribute__((weak));
extern "C" void *dlsym(void *, const char *) noexcept __attribute__((weak));

#if defined(HAK_SHARED) && HAK_SHARED
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n"
        ".weak __cxa_rethrow\n.weak _ZSt9terminatev\n.weak __clang_call_terminate\n"
        ".weak _Unwind_Resume\n.weak __cxa_call_terminate\n");
#endif

namespace {

using handler_getter = std::new_handler (*)() noexcept;
using thrower = void (*)();

/* A runtime that only a plugin loaded (RTLD_LOCAL) is not in the global scope. */
HAK_CXX_COLD void *find_in_runtime(const char *symbol) {
    enum { NOLOAD_LAZY = 4 | 1 };
    static const char *const names[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    for (const char *name : names) {
        void *runtime = dlopen != nullptr ? dlopen(name, NOLOAD_LAZY) : nullptr;
        void *found = runtime != nullptr && dlsym != nullptr ? dlsym(runtime, symbol) : nullptr;
        if (found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

HAK_CXX_COLD std::new_handler current_handler() {
    handler_getter get = hak_cxx_get_new_handler;
    if (get == nullptr) {
        get = reinterpret_cast<handler_getter>(find_in_runtime("_ZSt15get_new_handlerv"));
    }
    return get != nullptr ? get() : nullptr;
}

HAK_CXX_COLD void throw_bad_alloc() {
    thrower raise = hak_cxx_throw_bad_alloc;
    if (raise == nullptr) {
        raise = reinterpret_cast<thrower>(find_in_runtime("_ZSt17__throw_bad_allocv"));
    }
    if (raise != nullptr) {
        raise();
    }
    std::abort();
}

void *allocate(std::size_t size, std::size_t align) noexcept {
    return align == 0 ? hak_malloc(size) : hak_memalign(align, size);
}

/* Calls new_handlers until memory turns up; NULL when there is none left to call. */
HAK_CXX_COLD void *retry(std::size_t size, std::size_t align) {
    for (;;) {
        std::new_handler handler = current_handler();
        if (handler == nullptr) {
            return nullptr;
        }
        handler();
        void *block = allocate(size, align);
        if (block != nullptr) {
            return block;
        }
    }
}

HAK_CXX_COLD void *retry_or_throw(std::size_t size, std::size_t align) {
    void *block = retry(size, align);
    if (block == nullptr) {
        throw_bad_alloc();
    }
    return block;
}

HAK_CXX_COLD void *retry_or_null(std::size_t size, std::size_t align) noexcept {
    try {
        return retry(size, align);
    } catch (...) {
        return nullptr;
    }
}

inline void *new_or_throw(std::size_t size, std::size_t align = 0) {
    void *block = allocate(size, align);
    return __builtin_expect(block != nullptr, 1) ? block : retry_or_throw(size, align);
}

inline void *new_or_null(std::size_t size, std::size_t align = 0) noexcept {
    void *block = allocate(size, align);
    return __builtin_expect(block != nullptr, 1) ? block : retry_or_null(size, align);
}

inline std::size_t number(std::align_val_t align) {
    return static_cast<std::size_t>(align);
}

} // namespace

HAK_CXX_EXPORT void *operator new(std::size_t size) {
    return new_or_throw(size);
}
HAK_CXX_EXPORT void *operator new[](std::size_t size) {
    return new_or_throw(size);
}
HAK_CXX_EXPORT void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return new_or_null(size);
}
HAK_CXX_EXPORT void *operator new[](std::size_t size, const std::nothrow_t &) noexcept {
    return new_or_null(size);
}
HAK_CXX_EXPORT void *operator new(std::size_t size, std::align_val_t align) {
    return new_or_throw(size, number(align));
}
HAK_CXX_EXPORT void *operator new[](std::size_t size, std::align_val_t align) {
    return new_or_throw(size, number(align));
}
HAK_CXX_EXPORT void *operator new(std::size_t size, std::align_val_t align,
                                  const std::nothrow_t &) noexcept {
    return new_or_null(size, number(align));
}
HAK_CXX_EXPORT void *operator new[](std::size_t size, std::align_val_t align,
                                    const std::nothrow_t &) noexcept {
    return new_or_null(size, number(align));
}

HAK_CXX_EXPORT void operator delete(void *block) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete[](void *block) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete(void *block, const std::nothrow_t &) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete[](void *block, const std::nothrow_t &) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete(void *block, std::size_t size) noexcept {
    hak_free_sized(block, size);
}
HAK_CXX_EXPORT void operator delete[](void *block, std::size_t size) noexcept {
    hak_free_sized(block, size);
}
HAK_CXX_EXPORT void operator delete(void *block, std::align_val_t) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete[](void *block, std::align_val_t) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete(void *block, std::align_val_t,
                                    const std::nothrow_t &) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete[](void *block, std::align_val_t,
                                      const std::nothrow_t &) noexcept {
    hak_free(block);
}
HAK_CXX_EXPORT void operator delete(void *block, std::size_t size,
                                    std::align_val_t align) noexcept {
    hak_free_aligned_sized(block, number(align), size);
}
HAK_CXX_EXPORT void operator delete[](void *block, std::size_t size,
                                      std::align_val_t align) noexcept {
    hak_free_aligned_sized(block, number(align), size);
}

#endif
