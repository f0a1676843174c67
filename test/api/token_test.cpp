// SPDX-License-Identifier: MIT
//
// The functions that clang's -fsanitize=alloc-token calls: each gives what the function gives whose
// name it has, for any token, and failures are the same. token_test.sh has a compiler call them.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <unistd.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

#define NAMED(symbol) __asm__("__alloc_token_" symbol)

#define C_FORMS(type, name, ...)                                                                   \
    extern "C" type token_##name(__VA_ARGS__, size_t token) NAMED(#name);
C_FORMS(void *, malloc, size_t)
C_FORMS(void *, calloc, size_t, size_t)
C_FORMS(void *, realloc, void *, size_t)
C_FORMS(void *, reallocarray, void *, size_t, size_t)
C_FORMS(void *, aligned_alloc, size_t, size_t)
C_FORMS(void *, memalign, size_t, size_t)
C_FORMS(int, posix_memalign, void **, size_t, size_t)
C_FORMS(void *, valloc, size_t)
C_FORMS(void *, pvalloc, size_t)

#define NEW_FORMS(name, symbol, ...)                                                               \
    extern "C" void *token_##name(__VA_ARGS__, size_t token) NAMED(symbol);
NEW_FORMS(new, "_Znwm", size_t)
NEW_FORMS(new_array, "_Znam", size_t)
NEW_FORMS(new_quiet, "_ZnwmRKSt9nothrow_t", size_t, const std::nothrow_t &)
NEW_FORMS(new_array_quiet, "_ZnamRKSt9nothrow_t", size_t, const std::nothrow_t &)
NEW_FORMS(aligned_new, "_ZnwmSt11align_val_t", size_t, std::align_val_t)
NEW_FORMS(aligned_new_array, "_ZnamSt11align_val_t", size_t, std::align_val_t)
NEW_FORMS(aligned_new_quiet, "_ZnwmSt11align_val_tRKSt9nothrow_t", size_t, std::align_val_t,
          const std::nothrow_t &)
NEW_FORMS(aligned_new_array_quiet, "_ZnamSt11align_val_tRKSt9nothrow_t", size_t, std::align_val_t,
          const std::nothrow_t &)

namespace {

const size_t tokens[] = {0, 1, 7, SIZE_MAX / 2 + 1, SIZE_MAX};
const size_t sizes[] = {0, 1, 24, 1000, 70000, 3u << 20};
const size_t huge = size_t{1} << 60;
size_t page;

// A block of the library, aligned, of at least that size, which is written and freed.
void use(void *block, size_t size, size_t align = 16) {
    EXPECT(block != nullptr && reinterpret_cast<uintptr_t>(block) % align == 0);
    EXPECT(malloc_usable_size(block) >= size);
    std::memset(block, 0xa5, size);
    std::free(block);
}

void use_zeroed(void *block, size_t size) {
    EXPECT(block != nullptr);
    for (size_t i = 0; i < size; i++) {
        EXPECT(static_cast<char *>(block)[i] == 0);
    }
    use(block, size);
}

// Small blocks only get their alignment: the standard's.
void use_small(void *block, size_t size) {
    use(block, size, size == 0 ? 1 : 16);
}

void family(size_t size, size_t token) {
    void *block = nullptr;
    use_small(token_malloc(size, token), size);
    use_zeroed(token_calloc(size, 3, token), 3 * size);
    use_small(token_realloc(nullptr, size, token), size);
    use(token_realloc(token_realloc(nullptr, 10, token), size + 1, token), size + 1);
    use(token_reallocarray(token_reallocarray(nullptr, 2, 2, token), size + 1, 2, token),
        2 * size + 2);
    use(token_aligned_alloc(64, size, token), size, 64);
    use(token_memalign(64, size, token), size, 64);
    EXPECT(token_posix_memalign(&block, 64, size, token) == 0);
    use(block, size, 64);
    use(token_valloc(size, token), size, page);
    use(token_pvalloc(size, token), size, page);
}

void operators(size_t size, size_t token) {
    const auto align = std::align_val_t{128};
    use_small(token_new(size, token), size);
    use_small(token_new_array(size, token), size);
    use_small(token_new_quiet(size, std::nothrow, token), size);
    use_small(token_new_array_quiet(size, std::nothrow, token), size);
    use(token_aligned_new(size, align, token), size, 128);
    use(token_aligned_new_array(size, align, token), size, 128);
    use(token_aligned_new_quiet(size, align, std::nothrow, token), size, 128);
    use(token_aligned_new_array_quiet(size, align, std::nothrow, token), size, 128);
}

template <typename Call> bool throws(Call call) {
    try {
        (void)call();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

void failures(size_t token) {
    void *block = &page;
    errno = 0;
    EXPECT(token_malloc(huge, token) == nullptr && errno == ENOMEM);
    errno = 0;
    EXPECT(token_calloc(huge, 32, token) == nullptr && errno == ENOMEM);
    errno = 0;
    EXPECT(token_aligned_alloc(48, 10, token) == nullptr && errno == EINVAL);
    EXPECT(token_posix_memalign(&block, 3, 10, token) == EINVAL && block == &page);
    EXPECT(throws([=] { return token_new(huge, token); }));
    EXPECT(throws([=] { return token_new_array(huge, token); }));
    EXPECT(throws([=] { return token_aligned_new(huge, std::align_val_t{64}, token); }));
    EXPECT(token_new_quiet(huge, std::nothrow, token) == nullptr);
    EXPECT(token_new_array_quiet(huge, std::nothrow, token) == nullptr);
    EXPECT(token_aligned_new_quiet(huge, std::align_val_t{64}, std::nothrow, token) == nullptr);
}

} // namespace

int main() {
    page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t token : tokens) {
        for (size_t size : sizes) {
            family(size, token);
            operators(size, token);
        }
        failures(token);
    }
    return 0;
}
