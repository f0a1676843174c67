/* SPDX-License-Identifier: MIT
 *
 * A program with the string malloc_conf: what jemalloc's names say of its options
 * (jemalloc_conf_test.py runs it as one of libjemalloc.so.2). */
#include <stdio.h>

#include "hakmem/jemalloc.h"

const char *malloc_conf = "lg_prof_sample:20,dirty_decay_ms:0,prof_prefix:first";

static void show(const char *name, size_t bytes) {
    long value = 0;
    size_t length = bytes;
    int error = mallctl(name, &value, &length, NULL, 0);
    printf("%s %ld %d\n", name, bytes == 1 ? (long)*(unsigned char *)&value : value, error);
}

int main(void) {
    const char *prefix = "";
    size_t length = sizeof prefix;
    show("opt.prof_active", 1);
    show("opt.lg_prof_sample", 8);
    show("opt.dirty_decay_ms", 8);
    show("arenas.dirty_decay_ms", 8);
    show("prof.active", 1);
    show("prof.lg_sample", 8);
    show("background_thread", 1);
    return mallctl("opt.prof_prefix", &prefix, &length, NULL, 0) != 0 ||
           printf("opt.prof_prefix %s\n", prefix) < 0;
}
