/* SPDX-License-Identifier: MIT
 *
 * Another allocator behind ours in the loader's order (the program is linked to it, we are
 * preloaded), and blocks of it, of the C library and of ours at the same functions.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "api/family.h"

extern void *behind_malloc(size_t);
extern int behind_frees;

enum whose { OURS, OF_LIBC, OF_OTHER };

static void check(unsigned char *block, size_t size, enum whose whose) {
    EXPECT(block != NULL);
    memset(block, 0x5a, size);
    size_t usable = family.usable_size(block);
    if (whose == OF_OTHER) {
        EXPECT_EQ(usable, BEHIND_LACKS_USABLE ? 0 : size);
    } else {
        EXPECT(usable >= size && usable < 2 * size + 16);
    }
    block = family.realloc(block, 4 * size);
    EXPECT(block != NULL);
    for (size_t at = 0; at < size; ++at) {
        EXPECT_EQ(block[at], 0x5a);
    }
    family.free(block);
}

static void *(*libc_malloc)(size_t);

/* With the C library's names taken too, these are the other's. */
static void behind_blocks_by_the_c_librarys_names_can_be_resized(void) {
    for (size_t size = 24; size < 100000; size *= 5) {
        check(libc_malloc(size), size, BEHIND_TAKES_LIBC ? OF_OTHER : OF_LIBC);
    }
}

static void behind_blocks_of_the_other_go_back_to_it(void) {
    int before = behind_frees;
    check(behind_malloc(40), 40, OF_OTHER);
    check(behind_malloc(400), 400, OF_OTHER);
    EXPECT(behind_frees >= before + 4); /* freed once by realloc, once by free */
}

static void behind_blocks_of_ours_are_ours(void) {
    int before = behind_frees;
    for (size_t size = 24; size < 1 << 20; size *= 5) {
        check(family.malloc(size), size, OURS);
    }
    EXPECT_EQ(behind_frees, before);
}

int main(void) {
    family_load();
    *(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
    EXPECT(libc_malloc != NULL);
    RUN(behind_blocks_of_ours_are_ours);
    RUN(behind_blocks_by_the_c_librarys_names_can_be_resized);
    RUN(behind_blocks_of_the_other_go_back_to_it);
    RUN(behind_blocks_of_ours_are_ours);
    return 0;
}
