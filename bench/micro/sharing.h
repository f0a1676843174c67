/* SPDX-License-Identifier: MIT
 * What scratch and thrash do with a block: so much writing that a shared cache line shows. */
#ifndef HAK_BENCH_SHARING_H
#define HAK_BENCH_SHARING_H

enum { SIZE = 8, WRITES = 1000 };

/* Volatile: each write goes to the cache. */
static unsigned write_often(volatile unsigned char *block) {
    for (unsigned i = 0; i < SIZE; i++) {
        block[i] = (unsigned char)i;
    }
    for (unsigned i = 0; i < WRITES; i++) {
        block[i % SIZE]++;
    }
    return block[0] + (unsigned)block[SIZE - 1];
}

#endif
