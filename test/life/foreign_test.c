/* SPDX-License-Identifier: MIT
 *
 * Pointers that are not ours. One of libc's own malloc goes to libc; one to the stack or to static
 * memory ends the process with one line on stderr and SIGABRT.
 */
#include <dlfcn.h>
#include <sys/wait.h>

#include "api/family.h"

static void *(*libc_malloc)(size_t);
static void *(*libc_memalign)(size_t, size_t);

static void foreign_block_of_libc_can_be_freed(void) {
    for (size_t size = 1; size <= 8 << 20; size = size * 3 + 1) {
        unsigned char *block = libc_malloc(size);
        EXPECT(block != NULL);
        memset(block, 1, size);
        family.free(block);
        block = libc_memalign(4096, size);
        EXPECT(block != NULL);
        family.free(block);
    }
}

static void foreign_block_of_libc_can_be_resized(void) {
    for (size_t size = 24; size <= 8 << 20; size *= 7) {
        unsigned char *block = libc_malloc(size);
        EXPECT(block != NULL);
        memset(block, 0x66, size);
        block = family.realloc(block, size * 3);
        EXPECT(block != NULL);
        for (size_t at = 0; at < size; ++at) {
            EXPECT_EQ(block[at], 0x66);
        }
        block = family.realloc(block, size / 2);
        EXPECT(block != NULL);
        EXPECT_EQ(block[size / 2 - 1], 0x66);
        family.free(block);
    }
}

static void foreign_block_of_libc_has_a_usable_size(void) {
    unsigned char *block = libc_malloc(1000);
    EXPECT(block != NULL);
    EXPECT(family.usable_size(block) >= 1000);
    EXPECT(family.usable_size(block) < 2000);
    family.free(block);
}

enum crime { FREE_STACK, FREE_STATIC, REALLOC_STACK, FREE_CODE, FREE_WILD };

static void commit(enum crime crime) {
    static char static_bytes[4096];
    char stack_bytes[4096];
    char *volatile stack = stack_bytes + 128;
    char *volatile global = static_bytes + 128;
    switch (crime) {
    case FREE_STACK:
        family.free(stack);
        break;
    case FREE_STATIC:
        family.free(global);
        break;
    case REALLOC_STACK:
        family.free(family.realloc(stack, 100));
        break;
    case FREE_CODE:
        family.free((void *)(uintptr_t)commit);
        break;
    case FREE_WILD:
        family.free((void *)(uintptr_t)0x1234567890);
        break;
    }
}

/* Runs the crime in a child; returns its wait status and what it wrote to stderr. */
static int punish(enum crime crime, char *text, size_t capacity) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        expect_watchdog();
        commit(crime);
        _exit(0);
    }
    close(ends[1]);
    (void)expect_read_all(ends[0], text, capacity);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void check_punished(enum crime crime) {
    char text[4096];
    int status = punish(crime, text, sizeof text);
    EXPECT(WIFSIGNALED(status));
    if (!family.is_hakmem) {
        return;
    }
    EXPECT_EQ(WTERMSIG(status), SIGABRT);
    const char *newline = strchr(text, '\n');
    if (strncmp(text, "hakmem: ", 8) != 0 || newline == NULL || newline[1] != '\0') {
        expect_say("stderr was: \"%s\"\n", text);
        EXPECT(false);
    }
}

static void foreign_stack_address_ends_in_one_line_and_abort(void) {
    check_punished(FREE_STACK);
    check_punished(REALLOC_STACK);
}

static void foreign_static_address_ends_in_one_line_and_abort(void) {
    check_punished(FREE_STATIC);
    check_punished(FREE_CODE);
}

static void foreign_unmapped_address_ends_in_one_line_and_abort(void) {
    check_punished(FREE_WILD);
}

int main(void) {
    family_load();
    *(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
    *(void **)&libc_memalign = dlsym(RTLD_DEFAULT, "__libc_memalign");
    if (libc_malloc && libc_memalign) {
        RUN(foreign_block_of_libc_can_be_freed);
        RUN(foreign_block_of_libc_can_be_resized);
        RUN(foreign_block_of_libc_has_a_usable_size);
    } else {
        expect_say("this libc has no __libc_malloc: its blocks are not tried\n");
    }
    RUN(foreign_stack_address_ends_in_one_line_and_abort);
    RUN(foreign_static_address_ends_in_one_line_and_abort);
    RUN(foreign_unmapped_address_ends_in_one_line_and_abort);
    return expect_status();
}
