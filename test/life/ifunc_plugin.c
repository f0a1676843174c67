/* SPDX-License-Identifier: MIT
 *
 * A shared library one of whose functions is chosen by a resolver that allocates.
 */
#include "life/ifunc.h"

int ifunc_of_library(unsigned char **kept);

static unsigned char *kept_block;

static int answer_good(unsigned char **kept) {
    *kept = kept_block;
    return 1;
}

static int answer_bad(unsigned char **kept) {
    *kept = NULL;
    return 0;
}

typedef int answer_fn(unsigned char **);

__attribute__((used)) static answer_fn *library_resolve(void) {
    return ifunc_allocate(&kept_block) ? answer_good : answer_bad;
}

int ifunc_of_library(unsigned char **kept) __attribute__((ifunc("library_resolve")));
