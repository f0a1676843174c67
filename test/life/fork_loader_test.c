/* SPDX-License-Identifier: MIT
 *
 * Children of a process that forks while another thread loads a library: each frees its first block
 * of an allocator behind ours, for which functions have to be looked up. The C library renews the
 * loader's lock in a child, but not what it was in the middle of. Arguments: the library, forks.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/family.h"

extern void *behind_malloc(size_t);

static const char *library;
static size_t fork_count;
static atomic_bool should_stop;

static void *load(void *unused) {
    while (!should_stop) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        EXPECT(handle != NULL && dlclose(handle) == 0);
    }
    return unused;
}

static void first_foreign_free_in_a_child_leaves_the_loader_alone(void) {
    pthread_t loader;
    Dl_info behind;
    EXPECT(dladdr((void *)behind_malloc, &behind) != 0);
    EXPECT(dlopen(behind.dli_fname, RTLD_NOW | RTLD_NOLOAD) != NULL);
    void *foreign = behind_malloc(100);
    EXPECT(foreign != NULL);
    EXPECT_EQ(pthread_create(&loader, NULL, load, NULL), 0);
    for (size_t i = 0; i < fork_count; i++) {
        usleep((useconds_t)(300 + i % 700));
        pid_t child = fork();
        if (child == 0) {
            expect_watchdog();
            family.free(foreign);
            _exit(0);
        }
        EXPECT_CHILD(child, 0);
    }
    should_stop = true;
    EXPECT_EQ(pthread_join(loader, NULL), 0);
}

int main(int count, char **arguments) {
    EXPECT(count >= 2);
    library = arguments[1];
    fork_count = expect_arg(count, arguments, 2, 300);
    family_load();
    RUN(first_foreign_free_in_a_child_leaves_the_loader_alone);
    return expect_status();
}
