/* SPDX-License-Identifier: MIT
 *
 * huge_pages:advised: has the kernel been asked to back only advised memory with huge pages, where
 * it can (Linux 6.18), and does the program run on where it cannot? A child inherits it.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "api/expect.h"
#include "api/family.h"

enum { GET_DISABLE = 42, SET_DISABLE = 41, EXCEPT_ADVISED = 2, IS_SET = 1 | EXCEPT_ADVISED };

static int mode(void) {
    return prctl(GET_DISABLE, 0, 0, 0, 0);
}

/* What the kernel can is asked in a child, so that this process tells what the library did. */
static bool kernel_can(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        prctl(SET_DISABLE, 0, 0, 0, 0);
        _exit(prctl(SET_DISABLE, 1, EXCEPT_ADVISED, 0, 0) == 0 ? 0 : 1);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status == 0;
}

static void huge_pages_of_unadvised_memory_are_off_where_the_kernel_can(void) {
    int expected = kernel_can() ? IS_SET : 0;
    expect_say("mode %d, expected %d\n", mode(), expected);
    EXPECT_EQ(mode(), expected);
}

static void program_allocates_as_ever(void) {
    for (size_t size = 1; size < 64 << 20; size *= 2) {
        void *block = family.malloc(size);
        EXPECT(block != NULL);
        memset(block, 1, size);
        family.free(block);
    }
}

int main(void) {
    family_load();
    RUN(huge_pages_of_unadvised_memory_are_off_where_the_kernel_can);
    RUN(program_allocates_as_ever);
    return expect_status();
}
