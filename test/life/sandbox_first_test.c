/* SPDX-License-Identifier: MIT
 *
 * A process that has allocated nothing makes children that confine themselves to the calls of
 * memory and then have their first blocks, all of them watched (guard_rate:1): what watching needs
 * beyond these calls was done at start.
 */
#include "life/library_calls.h"
#include "life/sandbox.h"

enum { CHILDREN = 20, BLOCKS = 1000 };

static const unsigned allowed[] = {CALLS_MEMORY, CALLS_THREAD, CALLS_CLOCK, SYS_exit_group,
                                   SYS_write};

/* Not by the table of the family: looking it up may allocate. */
static void use(unsigned seed) {
    static void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(1 + (i * 37 + seed) % 2000);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, 1);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static int child_status(unsigned seed, unsigned other) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        enum { COUNT = sizeof allowed / sizeof *allowed };
        if (!sandbox_enter(allowed, COUNT, SECCOMP_RET_ALLOW, other, 0)) {
            _exit(EXPECT_SKIP_STATUS);
        }
        use(seed);
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void first_blocks_of_confined_children_are_watched(void) {
    for (unsigned seed = 0; seed < CHILDREN; seed++) {
        EXPECT_EQ(child_status(seed, SECCOMP_RET_TRAP), 0);
    }
}

int main(void) {
    expect_watchdog();
    if (child_status(0, SECCOMP_RET_ALLOW) != 0) {
        expect_skip("this kernel has no seccomp filters");
    }
    RUN(first_blocks_of_confined_children_are_watched);
    _exit(expect_status());
}
