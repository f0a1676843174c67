/* SPDX-License-Identifier: MIT
 *
 * The four classes of checks:
 *   static   _Static_assert: a constant is wrong
 *   require  hak_require: the user broke the contract; always active; one line, abort
 *   assert   HAK_ASSERT: we broke an invariant; cites it by number; audit builds only
 *   audit    test/double/audit.c: a whole structure is walked; in the core that tests link with
 *
 * What these call is defined in os/check.c, as it writes and aborts. A fatal kind is an enum value
 * with one text. The report is one line on standard error, made without allocation:  hakmem:
 * <text>: <address> (<detail>; <description of the address>; for stacks: ...; to catch it earlier:
 * ...) */
#ifndef HAK_BASE_CHECK_H
#define HAK_BASE_CHECK_H

#include "base/compiler.h"
#include "base/words.h"

#define HAK_FATAL_KINDS(X)                                                                         \
    X(INVALID_FREE, "free of an address that no allocator here handed out")                        \
    X(INVALID_REALLOC, "realloc of an address that no allocator here handed out")                  \
    X(INVALID_USABLE_SIZE, "malloc_usable_size of an address that no allocator here handed out")   \
    X(INTERIOR_FREE, "free of an address inside a block")                                          \
    X(DEAD_FREE, "double free, or free of an address inside a block")                              \
    X(DOUBLE_FREE, "double free")                                                                  \
    X(FREED_REALLOC, "realloc of a freed block")                                                   \
    X(FREED_USABLE_SIZE, "malloc_usable_size of a freed block")                                    \
    X(CORRUPT_LINK, "double free, or a write to a freed block")                                    \
    X(SIZE_MISMATCH, "sized free with a size that is not the block's")                             \
    X(CLEAR_SIZE, "freezero or recallocarray with a size larger than the block")                   \
    X(USE_AFTER_FREE, "use after free")                                                            \
    X(OVERFLOW, "overflow of a block")                                                             \
    X(UNDERFLOW, "underflow of a block")                                                           \
    X(OPTION_STRICT, "bad option in strict mode")                                                  \
    X(INLINE_VERSION, "the program was compiled with hakmem/inline.h of another library")          \
    X(INVARIANT, "hakmem broke its own invariant")                                                 \
    X(WRONG_TAG, "use after free, or overflow of a block")

#define HAK_FATAL_ENUM(name, text) HAK_FATAL_##name,
typedef enum hak_fatal_kind { HAK_FATAL_KINDS(HAK_FATAL_ENUM) HAK_FATAL_COUNT } hak_fatal_kind_t;

struct hak_text;

/* Writes the line, then the stack with the option backtrace, and aborts. `detail` may be NULL.
 * Async-signal-safe. */
HAK_COLD HAK_NORETURN void hak_fatal(hak_fatal_kind_t kind, const void *address,
                                     const char *detail);
/* Fatal unless the condition holds, which is evaluated in every build. A macro: clang's analyzer
 * does not follow calls of functions far enough to see that none returns. */
#define hak_require(condition, kind, address)                                                      \
    do {                                                                                           \
        if (HAK_UNLIKELY(!(condition))) {                                                          \
            hak_fatal((kind), (address), NULL);                                                    \
        }                                                                                          \
    } while (0)

/* The line of hak_fatal without its advice, for callers that print stacks and abort. */
HAK_COLD void hak_fatal_say(hak_fatal_kind_t kind, const void *address, const char *detail);
const char *hak_fatal_text(hak_fatal_kind_t kind);

/* One line "hakmem: <message>" on standard error, formatted as by hak_text_format. */
HAK_COLD void hak_warn(const char *format, ...);
/* Writes a line on standard error, and adds its end: the text is one that HAK_TEXT defines. */
HAK_COLD void hak_print_line(struct hak_text *line);

#define HAK_ASSERT(condition, invariant)                                                           \
    do {                                                                                           \
        if (HAK_AUDIT && HAK_UNLIKELY(!(condition))) {                                             \
            hak_fatal(HAK_FATAL_INVARIANT, NULL, invariant ": " #condition);                       \
        }                                                                                          \
    } while (0)

#endif
