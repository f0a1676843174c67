/* SPDX-License-Identifier: MIT
 *
 * Does the malloc family work inside IFUNC resolvers, of the main program and of a shared library
 * it is linked with, and can what they allocated be freed later?
 */
#include "api/expect.h"
#include "life/ifunc.h"

#ifdef IFUNC_WITH_LIBRARY
int ifunc_of_library(unsigned char **kept);
#endif
int ifunc_of_program(void);

static unsigned char *kept_block;

static int answer_good(void) {
    return 1;
}

static int answer_bad(void) {
    return 0;
}

typedef int answer_fn(void);

__attribute__((used)) static answer_fn *program_resolve(void) {
    return ifunc_allocate(&kept_block) ? answer_good : answer_bad;
}

int ifunc_of_program(void) __attribute__((ifunc("program_resolve")));

static void ifunc_resolver_of_the_program_allocates(void) {
    EXPECT_EQ(ifunc_of_program(), 1);
    EXPECT_EQ(kept_block[99], 0x77);
    kept_block = realloc(kept_block, 100000);
    EXPECT(kept_block != NULL);
    EXPECT_EQ(kept_block[99], 0x77);
    free(kept_block);
}

#ifdef IFUNC_WITH_LIBRARY
static void ifunc_resolver_of_a_library_allocates(void) {
    unsigned char *kept = NULL;
    EXPECT_EQ(ifunc_of_library(&kept), 1);
    EXPECT(kept != NULL);
    EXPECT_EQ(kept[99], 0x77);
    free(kept);
}
#endif

int main(void) {
    RUN(ifunc_resolver_of_the_program_allocates);
#ifdef IFUNC_WITH_LIBRARY
    RUN(ifunc_resolver_of_a_library_allocates);
#endif
    return expect_status();
}
