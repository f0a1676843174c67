/* SPDX-License-Identifier: MIT
 *
 * The malloc family before main and after it: preinit functions, constructors of priority 101 in
 * the program and in libraries, atexit handlers, destructors, the end of stdio.
 * The exit half cannot be judged from inside: the program runs itself and looks at its status.
 */
#include "api/expect.h"

extern unsigned char *early_block_a, *early_block_b;

static unsigned char *preinit_block, *constructor_block, *plain_block, *exit_block;

static unsigned char *make(size_t size) {
    unsigned char *block = malloc(size);
    if (block == NULL) {
        abort();
    }
    memset(block, 0x44, size);
    return block;
}

static void unmake(unsigned char *block, size_t size) {
    for (size_t at = 0; at < size; ++at) {
        if (block[at] != 0x44) {
            abort();
        }
    }
    free(block);
}

static void allocate_in_preinit(int argc, char **argv, char **environment) {
    (void)argc;
    (void)argv;
    (void)environment;
    preinit_block = make(10000);
    unmake(make(33), 33);
}

__attribute__((section(".preinit_array"),
               used)) static void (*preinit)(int, char **, char **) = allocate_in_preinit;

__attribute__((constructor(101))) static void allocate_first(void) {
#if !defined(__GLIBC__)
    allocate_in_preinit(0, NULL, NULL); /* musl calls no function of that section */
#endif
    constructor_block = make(300000);
    for (size_t size = 1; size < 100000; size *= 2) {
        unmake(make(size), size);
    }
}

__attribute__((constructor)) static void allocate_second(void) {
    plain_block = make(64);
}

__attribute__((destructor)) static void free_after_main(void) {
    unmake(plain_block, 64);
    unmake(make(5000), 5000);
}

__attribute__((destructor(101))) static void free_last(void) {
    unmake(constructor_block, 300000);
    unmake(exit_block, 777);
    for (size_t size = 1; size < 100000; size *= 2) {
        unmake(make(size), size);
    }
}

static void free_at_exit(void) {
    exit_block = make(777);
    unmake(preinit_block, 10000);
}

static void early_blocks_of_all_kinds_live_in_main(void) {
    EXPECT(preinit_block != NULL && constructor_block != NULL && plain_block != NULL);
    EXPECT_EQ(preinit_block[9999], 0x44);
    EXPECT_EQ(constructor_block[299999], 0x44);
    EXPECT(early_block_a != NULL && early_block_b != NULL && early_block_a != early_block_b);
    EXPECT_EQ(early_block_a[199], 0x33);
    EXPECT_EQ(early_block_b[199], 0x33);
}

static const char *self;

static void late_handlers_and_destructors_allocate_and_free(void) {
    for (size_t round = 0; round < 10; ++round) {
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", self, "exit", (char *)NULL);
            _exit(1);
        }
        EXPECT_CHILD(child, 0);
    }
}

int main(int argc, char **argv) {
    self = argv[0];
    if (atexit(free_at_exit) != 0) {
        return 1;
    }
    if (argc > 1) {
        char *buffer = (char *)make(9000);
        setvbuf(stdout, buffer, _IOFBF, 9000); /* stdio still uses it after our destructors */
        exit(0);
    }
    RUN(early_blocks_of_all_kinds_live_in_main);
    RUN(late_handlers_and_destructors_allocate_and_free);
    return expect_status();
}
