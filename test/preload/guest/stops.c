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
    return node->value * 2;
}

int main(void) {
    struct node *first = NULL;
    for (int i = 0; i < 5; i++) {
        struct node *node = calloc(1, sizeof *node);
        node->value = i;
        node->weight = i / 4.0;
        node->next = first;
        first = node;
    }
    int sum = 0;
    while (first != NULL) {
        struct node *next = first->next;
        sum += visit(first);
        free(first);
        first = next;
    }
    printf("sum %d\n", sum);
    return 0;
}
