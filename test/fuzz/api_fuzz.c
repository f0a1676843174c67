/* SPDX-License-Identifier: MIT
 *
 * Any sequence of calls by one thread. */
#include "fuzz/operations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_tape_t tape = {data, data + size};
    fuzz_operations_begin();
    while (tape.at < tape.end) {
        fuzz_operation(fuzz_byte(&tape) & 0x7f, &tape);
    }
    fuzz_operations_end();
    fuzz_operations_rest();
    return 0;
}
