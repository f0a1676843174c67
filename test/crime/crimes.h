/* SPDX-License-Identifier: MIT
 *
 * What the files of crimes share. */
#ifndef HAK_TEST_CRIME_CRIMES_H
#define HAK_TEST_CRIME_CRIMES_H

#include <stddef.h>

/* The compiler must not see what is done to an address. */
static inline void *hide(void *address) {
    void *volatile hidden = address;
    return hidden;
}

typedef struct crime {
    const char *name;
    void (*commit)(void);
} crime_t;

/* Its body follows. commit.c finds all of a program in the section. */
#define CRIME(name)                                                                                \
    static void name(void);                                                                        \
    __attribute__((section("crimes"), used)) static const crime_t crime_##name = {#name, name};    \
    static void name(void)

/* commit.c: the process has a clock of its own, which moves by this alone: how soon an error is
 * found may depend on time. */
void clock_advance_ms(unsigned ms);
/* A thread of its own, which is gone on return. */
void in_thread(void *(*run)(void *), void *block);
void free_in_thread(void *block);

/* other.c: another thread, which does what it is told and stays; it is done on return. */
void start_other(void);
void by_other(void (*run)(void *), void *block);
/* crimes_hardened.c: mallocs and frees enough for what waits to be used again. */
void churn(size_t bytes);

#endif
