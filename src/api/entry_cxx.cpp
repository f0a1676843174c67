/* SPDX-License-Identifier: MIT
 *
 * The C++ operators. The shared library does not depend on a C++ runtime: it refers weakly to the
 * functions that throw and that call a new_handler, which every C++ program has. In the archive the
 * references are strong: only a C++ program pulls this object, and brings its runtime.
 *
 * A program may replace any form of the operators; the default definitions of other forms then call
 * the replacement ([new.delete]). So each form jumps through a pointer: to the hit path while
 * everything it depends on is ours, else to its default definition, which calls the next form by
 * its public name. Initially each pointer leads to the default definition, which is always right;
 * the constructor of this file sets the short cuts. */
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/compiler.h"
#include "hakmem/hakmem.h"

extern "C" {
#include "os/libc.h"
}

#if defined(HAK_SHARED) && HAK_SHARED
#define HAK_CXX_WEAK HAK_WEAK
#define HAK_CXX_REPLACEABLE
#else
#define HAK_CXX_WEAK
#define HAK_CXX_REPLACEABLE HAK_WEAK /* by an object of the program */
#endif

#if defined(HAK_OVERRIDE) && HAK_OVERRIDE

/* std::get_new_handler() and std::__throw_bad_alloc() of libstdc++ and libc++. */
extern "C" std::new_handler hak_cxx_get_new_handler() noexcept
    __asm__("_ZSt15get_new_handlerv") HAK_CXX_WEAK;
extern "C" void hak_cxx_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv") HAK_CXX_WEAK;
extern "C" void *dlopen(const char *, int) noexcept __attribute__((weak));
extern "C" void *dlsym(void *, const char *) noexcept __attribute__((weak));
extern "C" char *dlerror() noexcept __attribute__((weak));
extern "C" bool hak_os_seal(void *base, size_t bytes);

/* Hit path of new (override.c), and its cold exit; neither returns NULL. */
extern "C" HAK_HIDDEN void *hak_new(size_t size);
extern "C" HAK_HIDDEN void *hak_new_quiet(size_t size, const std::nothrow_t &quiet) noexcept;
extern "C" HAK_HIDDEN void *hak_new_rest(size_t size);
extern "C" HAK_HIDDEN void *hak_new_quiet_rest(size_t size) noexcept;
/* entry.c, token.c */
extern "C" HAK_HIDDEN void *hak_token_alloc(size_t align, size_t size, size_t token, bool is_plain);
extern "C" HAK_HIDDEN bool hak_token_is_plain(size_t token);

/* hak_free, as called by deletes with more arguments. */
extern "C" void free_quiet(void *block, const std::nothrow_t &quiet) noexcept __asm__("hak_free");
extern "C" void free_aligned(void *block, std::align_val_t align) noexcept __asm__("hak_free");
extern "C" void free_aligned_quiet(void *block, std::align_val_t align,
                                   const std::nothrow_t &quiet) noexcept __asm__("hak_free");

#if defined(HAK_SHARED) && HAK_SHARED
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n"
        ".weak __cxa_rethrow\n.weak _ZSt9terminatev\n.weak __clang_call_terminate\n"
        ".weak _Unwind_Resume\n.weak __cxa_call_terminate\n");
#endif

namespace {

enum { NOLOAD_LAZY = 4 | 1 };

/* The function if it is known; else that of a runtime that only a plugin loaded (RTLD_LOCAL),
 * outside the global scope. */
template <typename Function>
HAK_COLD Function *find_in_runtime(Function *known, const char *symbol) {
    const char *const names[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = reinterpret_cast<void *>(known);
    for (const char *name : names) {
        if (found == nullptr && dlopen != nullptr && dlsym != nullptr) {
            void *runtime = dlopen(name, NOLOAD_LAZY);
            found = runtime != nullptr ? dlsym(runtime, symbol) : nullptr;
        }
    }
    return reinterpret_cast<Function *>(found);
}

HAK_COLD std::new_handler current_handler() {
    auto get = find_in_runtime(hak_cxx_get_new_handler, "_ZSt15get_new_handlerv");
    return get != nullptr ? get() : nullptr;
}

HAK_COLD void throw_bad_alloc() {
    auto raise = find_in_runtime(hak_cxx_throw_bad_alloc, "_ZSt17__throw_bad_allocv");
    if (raise != nullptr) {
        raise();
    }
    std::abort();
}

/* Calls new_handlers until memory is found; NULL: no handler is left. */
HAK_COLD void *retry(std::size_t size, std::size_t align) {
    for (;;) {
        std::new_handler handler = current_handler();
        if (handler == nullptr) {
            return nullptr;
        }
        handler();
        void *block = align == 0 ? hak_malloc(size) : hak_memalign(align, size);
        if (block != nullptr) {
            return block;
        }
    }
}

HAK_COLD void *retry_or_throw(std::size_t size, std::size_t align) {
    void *block = retry(size, align);
    if (block == nullptr) {
        throw_bad_alloc();
    }
    return block;
}

/* The result of a new form; NULL if it throws. */
template <typename Form, typename... Arguments>
void *or_null(Form form, Arguments... arguments) noexcept {
    try {
        return form(arguments...);
    } catch (...) {
        return nullptr;
    }
}

void *own_aligned_new(size_t size, std::align_val_t align) {
    void *block = hak_memalign(static_cast<size_t>(align), size);
    return HAK_LIKELY(block != nullptr) ? block : retry_or_throw(size, static_cast<size_t>(align));
}

void *own_aligned_new_quiet(size_t size, std::align_val_t align, const std::nothrow_t &) noexcept {
    void *block = hak_memalign(static_cast<size_t>(align), size);
    return HAK_LIKELY(block != nullptr) ? block : or_null(retry, size, static_cast<size_t>(align));
}

void own_aligned_delete_sized(void *block, size_t size, std::align_val_t align) noexcept {
    hak_free_aligned_sized(block, static_cast<size_t>(align), size);
}

} // namespace

void *hak_new_rest(size_t size) {
    void *block = hak_malloc(size);
    return HAK_LIKELY(block != nullptr) ? block : retry_or_throw(size, 0);
}

void *hak_new_quiet_rest(size_t size) noexcept {
    void *block = hak_malloc(size);
    return HAK_LIKELY(block != nullptr) ? block : or_null(retry, size, size_t{0});
}

/* --- the forms -------------------------------------------------------------------------------- */

/* Default definitions drop the arguments that the next form lacks. */
#define HAK_CXX_SIZE [[maybe_unused]] size_t size
#define HAK_CXX_ALIGN [[maybe_unused]] std::align_val_t align
#define HAK_CXX_QUIET [[maybe_unused]] const std::nothrow_t &quiet
#define KIND_NEW(name) void *name(size_t size)
#define KIND_NEW_QUIET(name) void *name(size_t size, HAK_CXX_QUIET) noexcept
#define KIND_ALIGNED_NEW(name) void *name(size_t size, HAK_CXX_ALIGN)
#define KIND_ALIGNED_NEW_QUIET(name) void *name(size_t size, HAK_CXX_ALIGN, HAK_CXX_QUIET) noexcept
#define KIND_DELETE(name) void name(void *block) noexcept
#define KIND_DELETE_SIZED(name) void name(void *block, HAK_CXX_SIZE) noexcept
#define KIND_DELETE_QUIET(name) void name(void *block, HAK_CXX_QUIET) noexcept
#define KIND_ALIGNED_DELETE(name) void name(void *block, HAK_CXX_ALIGN) noexcept
#define KIND_ALIGNED_DELETE_SIZED(name) void name(void *block, HAK_CXX_SIZE, HAK_CXX_ALIGN) noexcept
#define KIND_ALIGNED_DELETE_QUIET(name)                                                            \
    void name(void *block, HAK_CXX_ALIGN, HAK_CXX_QUIET) noexcept
#define PASS_NEW (size)
#define PASS_NEW_QUIET (size, quiet)
#define PASS_ALIGNED_NEW (size, align)
#define PASS_ALIGNED_NEW_QUIET (size, align, quiet)
#define PASS_DELETE (block)
#define PASS_DELETE_SIZED (block, size)
#define PASS_DELETE_QUIET (block, quiet)
#define PASS_ALIGNED_DELETE (block, align)
#define PASS_ALIGNED_DELETE_SIZED (block, size, align)
#define PASS_ALIGNED_DELETE_QUIET (block, align, quiet)

/* Defined by public name, so that a definition of the program takes its place. */
#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    extern "C" HAK_HIDDEN KIND_##kind(form_##form);                                                \
    extern "C" HAK_EXPORT HAK_CXX_REPLACEABLE KIND_##kind(program_##form) __asm__(symbol)          \
        __attribute__((alias("form_" #form)));
#include "api/operators.def"

namespace {

/* --- default definitions ---------------------------------------------------------------------- */

#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    KIND_##kind(default_##form) {                                                                  \
        return call;                                                                               \
    }
#include "api/operators.def"

/* The pointers of the forms. Each value is right at any time, even while the constructor runs. */
struct __attribute__((aligned(HAK_LINE_BYTES))) HAK_SEALED form_calls {
#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    KIND_##kind((*call_##form)) = default_##form;
#include "api/operators.def"
} calls;

enum form_number {
#define HAK_FORM(form, symbol, kind, ours, called, call) FORM_##form,
#include "api/operators.def"
    FORM_nothing,
    FORM_FIRST_DELETE = FORM_delete,
};

/* --- replacements by the program -------------------------------------------------------------- */

enum { HANDLER = FORM_nothing, THROW, MALLOC, PLACES };

struct replacements {
    hak_libc_function_t behind[PLACES]; /* a later definition that our form must call */
    bool is_own[FORM_nothing + 1];      /* the form is ours, without a later definition */
    bool is_settled[FORM_nothing + 1];  /* so is every form that it depends on */
};

#if defined(HAK_SHARED) && HAK_SHARED

/* A library after ours replaces forms, too: without ours, its definitions would be found. C++
 * runtimes and other allocators (with a malloc of their own) do not count: we stand in for them. */
HAK_COLD void find_behind(hak_libc_function_t *behind) {
#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    behind[FORM_##form].address = dlsym(HAK_LIBC_NEXT, symbol);
#include "api/operators.def"
    behind[HANDLER].address = reinterpret_cast<void *>(hak_cxx_get_new_handler);
    behind[THROW].address = reinterpret_cast<void *>(hak_cxx_throw_bad_alloc);
    behind[MALLOC].address = dlsym(HAK_LIBC_NEXT, "malloc");
    hak_libc_find_objects(behind, PLACES);
    for (unsigned i = 0; i < FORM_nothing; i++) {
        unsigned object = behind[i].object;
        if (object == 0 || object == behind[HANDLER].object || object == behind[THROW].object ||
            object == behind[MALLOC].object) {
            behind[i] = {};
        }
    }
    (void)dlerror(); /* old runtimes lack some */
}

#endif

/* The compiler may assume that two names are two functions. */
template <typename Function> bool is_same(Function *one, Function *other) {
    HAK_OPAQUE(one);
    return one == other;
}

/* Blocks of a foreign new may lack the size that a sized delete states. */
void settle_forms(replacements *found) {
    static const unsigned char called_form[] = {
#define HAK_FORM(form, symbol, kind, ours, called, call) FORM_##called,
#include "api/operators.def"
    };
    bool is_every_new_own = true;
    found->is_own[FORM_nothing] = found->is_settled[FORM_nothing] = true;
    for (unsigned i = 0; i < FORM_nothing; i++) {
        unsigned called = called_form[i];
        bool is_delete = i >= FORM_FIRST_DELETE;
        is_every_new_own &= is_delete || found->is_own[i];
        found->is_settled[i] = found->is_own[called] && found->is_settled[called] &&
                               (!is_delete || called == FORM_nothing || is_every_new_own);
    }
}

HAK_COLD __attribute__((constructor(102))) void forms_start() {
    replacements found = {};
#if defined(HAK_SHARED) && HAK_SHARED
    if (hak_cxx_get_new_handler != nullptr && dlsym != nullptr && dlerror != nullptr) {
        find_behind(found.behind);
    }
#endif
#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    found.is_own[FORM_##form] =                                                                    \
        is_same(program_##form, form_##form) && found.behind[FORM_##form].address == nullptr;
#include "api/operators.def"
    settle_forms(&found);
#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    if (found.behind[FORM_##form].address != nullptr) {                                            \
        calls.call_##form =                                                                        \
            reinterpret_cast<decltype(calls.call_##form)>(found.behind[FORM_##form].address);      \
    } else if (found.is_settled[FORM_##form]) {                                                    \
        calls.call_##form = ours;                                                                  \
    }
#include "api/operators.def"
    const char *kept = nullptr;
    for (unsigned i = 0; i < FORM_nothing; i++) { /* may run constructors, which use the forms */
        if (found.behind[i].library != kept) {
            kept = found.behind[i].library;
            hak_libc_keep_library(kept);
        }
    }
    if (HAK_HARDEN) {
        hak_os_seal(&calls, sizeof calls);
    }
}

} // namespace

#define HAK_FORM(form, symbol, kind, ours, called, call)                                           \
    KIND_##kind(form_##form) {                                                                     \
        return calls.call_##form PASS_##kind;                                                      \
    }
#include "api/operators.def"

/* --- forms of new with tokens (token.c) ------------------------------------------------------- */

namespace {

/* While the form is ours; nullptr: the form itself is called. */
template <typename Form>
void *token_pop(Form *form, Form *ours, size_t align, size_t size, size_t token, bool is_plain) {
    return is_same(form, ours) ? hak_token_alloc(align, size, token, is_plain) : nullptr;
}

} // namespace

#define TOKEN_FORM(form, name, ours, align, token, is_plain, pass, ...)                            \
    void *name(__VA_ARGS__) {                                                                      \
        void *block = token_pop(calls.call_##form, ours, align, size, token, is_plain);            \
        return HAK_LIKELY(block != nullptr) ? block : program_##form pass;                         \
    }
#if HAK_HARDEN
#define TOKEN_FAST(form, symbol, id, ours, align, pass, ...)                                       \
    extern "C" HAK_EXPORT HAK_WEAK void *token_##id##_##form(__VA_ARGS__) __asm__(                 \
        "__alloc_token_" #id "_" symbol);                                                          \
    TOKEN_FORM(form, token_##id##_##form, ours, align, id, id == 0, pass, __VA_ARGS__)
#else
#define TOKEN_FAST(form, symbol, id, ours, align, pass, ...)
#endif
#define TOKEN_FORMS(form, symbol, ours, align, pass, ...)                                          \
    extern "C" HAK_EXPORT HAK_WEAK void *token_##form(__VA_ARGS__, size_t token) __asm__(          \
        "__alloc_token_" symbol);                                                                  \
    TOKEN_FORM(form, token_##form, ours, align, token, hak_token_is_plain(token), pass,            \
               __VA_ARGS__, size_t token)                                                          \
    TOKEN_FAST(form, symbol, 0, ours, align, pass, __VA_ARGS__)                                    \
    TOKEN_FAST(form, symbol, 1, ours, align, pass, __VA_ARGS__)
#define TOKEN_NEW(form, symbol, ours) TOKEN_FORMS(form, symbol, ours, 0, (size), size_t size)
#define TOKEN_NEW_QUIET(form, symbol, ours)                                                        \
    TOKEN_FORMS(form, symbol, ours, 0, (size, quiet), size_t size, const std::nothrow_t &quiet)
#define TOKEN_ALIGNED_NEW(form, symbol, ours)                                                      \
    TOKEN_FORMS(form, symbol, ours, static_cast<size_t>(align), (size, align), size_t size,        \
                std::align_val_t align)
#define TOKEN_ALIGNED_NEW_QUIET(form, symbol, ours)                                                \
    TOKEN_FORMS(form, symbol, ours, static_cast<size_t>(align), (size, align, quiet), size_t size, \
                std::align_val_t align, const std::nothrow_t &quiet)
#define TOKEN_DELETE(form, symbol, ours)
#define TOKEN_DELETE_SIZED(form, symbol, ours)
#define TOKEN_DELETE_QUIET(form, symbol, ours)
#define TOKEN_ALIGNED_DELETE(form, symbol, ours)
#define TOKEN_ALIGNED_DELETE_SIZED(form, symbol, ours)
#define TOKEN_ALIGNED_DELETE_QUIET(form, symbol, ours)
#define HAK_FORM(form, symbol, kind, ours, called, call) TOKEN_##kind(form, symbol, ours)
#include "api/operators.def"

#endif
