/* SPDX-License-Identifier: MIT
 *
 * What programs call that clang compiles with -fsanitize=alloc-token: the family with the token of
 * the type as one more argument. The operators are in entry_cxx.cpp. A token labels the site in a
 * heap profile, and is ignored otherwise. Weak: a program may bring its own. The fast ABI, which
 * has tokens in the names, would need a symbol for each token. */
#include "base/bits.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"

#include <string.h>

#if HAK_OVERRIDE

HAK_HIDDEN void *hak_token_alloc(size_t size, size_t token); /* entry.c */

static void *token_calloc(size_t count, size_t size, size_t token) {
    size_t bytes;
    if (!hak_mul(count, size, &bytes) || bytes > HAK_SC_SMALL_SIZE) {
        return hak_calloc(count, size); /* may know that the block is zero */
    }
    void *block = hak_token_alloc(bytes, token);
    return block == NULL ? NULL : memset(block, 0, bytes);
}

/* `call` uses the parameters, and perhaps `token`. */
#define TOKEN(type, name, call, ...)                                                               \
    HAK_EXPORT HAK_WEAK type hak_token_##name(__VA_ARGS__,                                         \
                                              size_t token) __asm__("__alloc_token_" #name);       \
    type hak_token_##name(__VA_ARGS__, size_t token) {                                             \
        (void)token;                                                                               \
        return call;                                                                               \
    }
TOKEN(void *, malloc, hak_token_alloc(size, token), size_t size)
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
