/* SPDX-License-Identifier: MIT
 *
 * What programs call that clang compiles with -fsanitize=alloc-token: the family with the token of
 * the type as one more argument. The operators are in entry_cxx.cpp. A token labels the site in a
 * heap profile. The hardened library has a partition of the heap for types without pointers: their
 * places never become those of other types. Weak: a program may bring its own.
 *
 * The fast ABI has tokens in the names. It is served for two of them (-falloc-token-max=2): 0 has
 * no pointers, 1 may have some; only by the hardened library, as each name costs others a start. */
#include "base/bits.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"

#include <string.h>

#if HAK_OVERRIDE

/* entry.c */
HAK_HIDDEN void *hak_token_alloc(size_t align, size_t size, size_t token, bool is_plain);

/* In clang's mode typehashpointersplit the lower half of all tokens is of types without pointers. 0
 * is of unknown types, and small ones are of a program with a smaller -falloc-token-max, whose
 * halves are not known: nothing is told by them. */
enum { TOKEN_LEAST_LOG2 = 40 };
HAK_HIDDEN bool hak_token_is_plain(size_t token);

bool hak_token_is_plain(size_t token) {
    return token <= SIZE_MAX / 2 && token >> TOKEN_LEAST_LOG2 != 0;
}

static void *token_calloc(size_t count, size_t size, size_t token) {
    size_t bytes;
    if (!hak_mul(count, size, &bytes) || bytes > HAK_SC_SMALL_SIZE) {
        return hak_calloc(count, size); /* may know that the block is zero */
    }
    void *block = hak_token_alloc(0, bytes, token, false);
    return block == NULL ? NULL : memset(block, 0, bytes);
}

/* `call` uses the parameters, and perhaps `token`. */
#define TOKEN_BODY(type, is_plain, call)                                                           \
    uintptr_t before = hak_partition_enter_plain(is_plain);                                        \
    (void)token;                                                                                   \
    type result = call;                                                                            \
    hak_partition_leave(before);                                                                   \
    return result;
#if HAK_HARDEN
#define TOKEN_FAST(id, type, name, call, ...)                                                      \
    HAK_EXPORT HAK_WEAK type hak_token_##id##_##name(__VA_ARGS__) __asm__("__alloc_token_" #id     \
                                                                          "_" #name);              \
    type hak_token_##id##_##name(__VA_ARGS__) {                                                    \
        const size_t token = id;                                                                   \
        TOKEN_BODY(type, id == 0, call)                                                            \
    }
#else
#define TOKEN_FAST(id, type, name, call, ...)
#endif
#define TOKEN(type, name, call, ...)                                                               \
    HAK_EXPORT HAK_WEAK type hak_token_##name(__VA_ARGS__,                                         \
                                              size_t token) __asm__("__alloc_token_" #name);       \
    type hak_token_##name(__VA_ARGS__, size_t token){TOKEN_BODY(                                   \
        type, hak_token_is_plain(token), call)} TOKEN_FAST(0, type, name, call, __VA_ARGS__)       \
        TOKEN_FAST(1, type, name, call, __VA_ARGS__)
TOKEN(void *, malloc, hak_alloc_at(size, (const void *)token), size_t size)
TOKEN(void *, calloc, token_calloc(count, size, token), size_t count, size_t size)
TOKEN(void *, realloc, hak_realloc(block, size), void *block, size_t size)
TOKEN(void *, reallocarray, hak_reallocarray(block, count, size), void *block, size_t count,
      size_t size)
TOKEN(void *, aligned_alloc, hak_aligned_alloc(align, size), size_t align, size_t size)
TOKEN(void *, memalign, hak_memalign(align, size), size_t align, size_t size)
TOKEN(int, posix_memalign, hak_posix_memalign(block, align, size), void **block, size_t align,
      size_t size)
TOKEN(void *, valloc, hak_valloc(size), size_t size)
TOKEN(void *, pvalloc, hak_pvalloc(size), size_t size)

#endif
