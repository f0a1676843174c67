/* SPDX-License-Identifier: MIT
 *
 * gperftools' names for malloc's family and the C++ operators, by names of hakmem that no program
 * replaces; and its hooks, which are refused: they would have to be called by each malloc. */
#include "extension.hpp"

#include <hakmem/hakmem.h>
#include <hakmem/jemalloc.h>

#include <malloc.h>
#include <new>

namespace {

void *new_rest(std::size_t size, std::size_t align) {
    for (;;) {
        void *block = hak_memalign(align, size);
        std::new_handler handler = block == nullptr ? std::get_new_handler() : nullptr;
        if (block != nullptr) {
            return block;
        }
        if (handler == nullptr) {
            throw std::bad_alloc();
        }
        handler();
    }
}

inline void *new_any(std::size_t size, std::size_t align = 1) {
    void *block = align == 1 ? hak_malloc(size) : hak_memalign(align, size);
    return __builtin_expect(block != nullptr, 1) ? block : new_rest(size, align);
}

/* A new_handler may throw that memory is out, and nothing else, which ends the process. */
void *new_quiet(std::size_t size, std::size_t align = 1) noexcept {
    try {
        return new_any(size, align);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

using align_t = std::align_val_t;
using quiet_t = const std::nothrow_t &;

constexpr std::size_t as_size(align_t align) {
    return static_cast<std::size_t>(align);
}

} // namespace

/* As malloc.h has them, where it is new enough. */
struct figures_of_int {
    int figure[10];
};
struct figures_of_size {
    std::size_t figure[10];
};
extern "C" figures_of_int hak_mallinfo() __asm__("mallinfo");
extern "C" figures_of_size hak_mallinfo2() __asm__("mallinfo2");

#define TC_NAME(type, name, parameters, call)                                                      \
    extern "C" TC_EXPORT type tc_##name parameters {                                               \
        return call;                                                                               \
    }
TC_NAME(void *, malloc, (std::size_t size), hak_malloc(size))
TC_NAME(void *, malloc_skip_new_handler, (std::size_t size), hak_malloc(size))
TC_NAME(void *, calloc, (std::size_t count, std::size_t size), hak_calloc(count, size))
TC_NAME(void *, realloc, (void *block, std::size_t size), hak_realloc(block, size))
TC_NAME(void *, memalign, (std::size_t align, std::size_t size), hak_memalign(align, size))
TC_NAME(int, posix_memalign, (void **block, std::size_t align, std::size_t size),
        hak_posix_memalign(block, align, size))
TC_NAME(void *, valloc, (std::size_t size), hak_valloc(size))
TC_NAME(void *, pvalloc, (std::size_t size), hak_pvalloc(size))
TC_NAME(void, free, (void *block), hak_free(block))
TC_NAME(void, cfree, (void *block), hak_free(block))
TC_NAME(void, free_sized, (void *block, std::size_t size), hak_free_sized(block, size))
TC_NAME(std::size_t, malloc_size, (void *block), hak_malloc_usable_size(block))
TC_NAME(std::size_t, nallocx, (std::size_t size, int flags), nallocx(size, flags))
TC_NAME(void, malloc_stats, (), malloc_stats())
TC_NAME(int, mallopt, (int parameter, int value), mallopt(parameter, value))
TC_NAME(figures_of_int, mallinfo, (), hak_mallinfo())
TC_NAME(figures_of_size, mallinfo2, (), hak_mallinfo2())
/* Whether malloc calls the new_handler: it never does. */
TC_NAME(int, set_new_mode, (int), 0)
TC_NAME(int, query_new_mode, (), 0)

#define TC_NEWS(name)                                                                              \
    TC_NAME(void *, name, (std::size_t size), new_any(size))                                       \
    TC_NAME(void *, name##_nothrow, (std::size_t size, quiet_t), new_quiet(size))                  \
    TC_NAME(void *, name##_aligned, (std::size_t size, align_t align),                             \
            new_any(size, as_size(align)))                                                         \
    TC_NAME(void *, name##_aligned_nothrow, (std::size_t size, align_t align, quiet_t),            \
            new_quiet(size, as_size(align)))
TC_NEWS(new)
TC_NEWS(newarray)

#define TC_DELETES(name)                                                                           \
    TC_NAME(void, name, (void *block), hak_free(block))                                            \
    TC_NAME(void, name##_nothrow, (void *block, quiet_t), hak_free(block))                         \
    TC_NAME(void, name##_sized, (void *block, std::size_t size), hak_free_sized(block, size))      \
    TC_NAME(void, name##_aligned, (void *block, align_t), hak_free(block))                         \
    TC_NAME(void, name##_aligned_nothrow, (void *block, align_t, quiet_t), hak_free(block))        \
    TC_NAME(void, name##_sized_aligned, (void *block, std::size_t size, align_t align),            \
            hak_free_aligned_sized(block, as_size(align), size))
TC_DELETES(delete)
TC_DELETES(deletearray)

/* The version that these names are of. */
extern "C" TC_EXPORT const char *tc_version(int *major, int *minor, const char **patch) {
    if (major != nullptr) {
        *major = 2;
    }
    if (minor != nullptr) {
        *minor = 10;
    }
    if (patch != nullptr) {
        *patch = "";
    }
    return "gperftools 2.10, by hakmem";
}

/* --- hooks ------------------------------------------------------------------------------------ */

/* Adding fails, and there is no earlier one. */
#define TC_HOOK(name)                                                                              \
    extern "C" TC_EXPORT void *MallocHook_##name(const void *) {                                   \
        return nullptr;                                                                            \
    }
#define TC_HOOKS(name) TC_HOOK(Add##name##Hook) TC_HOOK(Remove##name##Hook) TC_HOOK(Set##name##Hook)
TC_HOOKS(New)
TC_HOOKS(Delete)
TC_HOOKS(PreMmap)
TC_HOOKS(Mmap)
TC_HOOKS(Munmap)
TC_HOOKS(Mremap)
TC_HOOKS(PreSbrk)
TC_HOOKS(Sbrk)
TC_HOOK(SetMmapReplacement)
TC_HOOK(RemoveMmapReplacement)
TC_HOOK(SetMunmapReplacement)
TC_HOOK(RemoveMunmapReplacement)

extern "C" TC_EXPORT int MallocHook_GetCallerStackTrace(void **, int, int) {
    return 0;
}
