/* SPDX-License-Identifier: MIT
 *
 * The program whose system calls syscall_count_test.sh counts: 50 000 operations over 256 slots,
 * sizes 16–1 039 bytes. `mixed_load idle` starts and ends without a single operation.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/still_clock.h"

enum { OPERATION_COUNT = 50000, SLOT_COUNT = 256, SMALLEST_BYTES = 16, SIZE_COUNT = 1024 };

int main(int argc, char **argv) {
    static unsigned char *slots[SLOT_COUNT];
    size_t operations = argc > 1 && strcmp(argv[1], "idle") == 0 ? 0 : OPERATION_COUNT;
    uint64_t state = 1;
    for (size_t i = 0; i < operations; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t slot = (state >> 33) % SLOT_COUNT;
        size_t size = SMALLEST_BYTES + (state >> 41) % SIZE_COUNT;
        if (slots[slot] != NULL) {
            free(slots[slot]);
            slots[slot] = NULL;
        } else {
            slots[slot] = malloc(size);
            if (slots[slot] == NULL) {
                return 1;
            }
            slots[slot][0] = slots[slot][size - 1] = (unsigned char)i;
        }
    }
    for (size_t slot = 0; slot < SLOT_COUNT; ++slot) {
        free(slots[slot]);
    }
    return 0;
}
