/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdbool.h>
#include <string.h>

enum { ELEMENT_MOST = 128 };

typedef struct sort {
    char *base;
    size_t bytes;
    int (*compare)(const void *, const void *);
} sort_t;

static void swap(const sort_t *sort, size_t a, size_t b) {
    char kept[ELEMENT_MOST], *x = sort->base + a * sort->bytes, *y = sort->base + b * sort->bytes;
    memcpy(kept, x, sort->bytes);
    memcpy(x, y, sort->bytes);
    memcpy(y, kept, sort->bytes);
}

static bool is_less(const sort_t *sort, size_t a, size_t b) {
    return sort->compare(sort->base + a * sort->bytes, sort->base + b * sort->bytes) < 0;
}

static void sift(const sort_t *sort, size_t root, size_t count) {
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        child += child + 1 < count && is_less(sort, child, child + 1);
        if (!is_less(sort, root, child)) {
            return;
        }
        swap(sort, root, child);
        root = child;
    }
}

void obs_sort(void *base, size_t count, size_t bytes, int (*compare)(const void *, const void *)) {
    const sort_t sort = {base, bytes, compare};
    for (size_t root = count / 2; root-- > 0;) {
        sift(&sort, root, count);
    }
    for (size_t end = count; end-- > 1;) {
        swap(&sort, 0, end);
        sift(&sort, 0, end);
    }
}
