/* SPDX-License-Identifier: MIT
 *
 * Prints "on hakmem" if malloc is hakmem's. */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *block = malloc(100);
    size_t usable =
        hak_malloc_usable_size(block); /* of a block that is not ours: the C library's figure */
    printf("%s %s\n", usable >= hak_good_size(100) ? "on hakmem" : "on another malloc",
           hak_version());
    free(block);
    return usable >= hak_good_size(100) ? 0 : 1;
}
