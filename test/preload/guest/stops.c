// SPDX-License-Identifier: MIT
// A list on the heap to be looked at by a debugger.
#include <stdio.h>
#include <stdlib.h>

struct node {
    int value;
    double weight;
    struct node *next;
};

static int visit(const struct node *node) {
    return node == NULL ? 0 : node->value * 2 + visit(node->next);
}

int main(void) {
    struct node *first = NULL;
    for (int i = 0; i < 5; i++) {
        struct node *node = calloc(1, sizeof *node);
        *node = (struct node){i, i / 4.0, first};
        first = node;
    }
    printf("sum %d\n", visit(first));
    return 0;
}
