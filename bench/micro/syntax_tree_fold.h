/* SPDX-License-Identifier: MIT
 * Part of syntax_tree.c: what happens to the tree: names and types, then constants. */
#ifndef HAK_BENCH_SYNTAX_TREE_FOLD_H
#define HAK_BENCH_SYNTAX_TREE_FOLD_H

#include "syntax_tree_parse.h"

/* --- names and types -------------------------------------------------------------------------- */

enum { SCOPE_BUCKETS = 8 };

typedef struct symbol {
    struct symbol *next; /* in its bucket */
    const string_t *name;
    uint32_t slot;
    uint8_t type;
} symbol_t;

typedef struct scope {
    struct scope *outer;
    uint32_t next_slot;
    symbol_t *buckets[SCOPE_BUCKETS];
} scope_t;

static scope_t *scope_open(scope_t *outer) {
    scope_t *scope = take(sizeof *scope);
    *scope = (scope_t){.outer = outer, .next_slot = outer != NULL ? outer->next_slot : 0};
    return scope;
}

static void scope_close(scope_t *scope) {
    for (unsigned i = 0; i < SCOPE_BUCKETS; i++) {
        while (scope->buckets[i] != NULL) {
            symbol_t *symbol = scope->buckets[i];
            scope->buckets[i] = symbol->next;
            give(symbol, sizeof *symbol);
        }
    }
    give(scope, sizeof *scope);
}

static symbol_t *declare(scope_t *scope, const string_t *name, uint8_t type) {
    symbol_t **bucket = &scope->buckets[name->hash / 16 % SCOPE_BUCKETS];
    symbol_t *symbol = take(sizeof *symbol);
    *symbol = (symbol_t){*bucket, name, scope->next_slot++, type};
    *bucket = symbol;
    return symbol;
}

static const symbol_t *look_up(const scope_t *scope, const string_t *name, uint32_t line) {
    for (; scope != NULL; scope = scope->outer) {
        const symbol_t *symbol = scope->buckets[name->hash / 16 % SCOPE_BUCKETS];
        for (; symbol != NULL; symbol = symbol->next) {
            if (symbol->name == name) {
                return symbol;
            }
        }
    }
    bench_fail("line %u: %s is not declared", line, name->text);
}

static void convert(node_t **slot, uint8_t type) {
    if ((*slot)->type != type) {
        node_t *node = node_new(NODE_CONVERT, (*slot)->line, 1);
        node->type = type;
        node->children[0] = *slot;
        *slot = node;
    }
}

static void annotate(node_t *node, scope_t *scope);

static void annotate_function(node_t *node) {
    scope_t *scope = scope_open(NULL);
    for (unsigned i = 0; i + 1 < node->count; i++) {
        declare(scope, node->children[i]->name, TYPE_WHOLE);
    }
    annotate(node->children[node->count - 1], scope);
    scope_close(scope);
}

/* A name becomes a slot, after the right-hand side was annotated: "let a = a" means the outer a. */
static void annotate_variable(node_t *node, scope_t *scope) {
    const symbol_t *symbol = node->kind == NODE_LET
                                 ? declare(scope, node->name, node->children[0]->type)
                                 : look_up(scope, node->name, node->line);
    node->type = symbol->type;
    node->slot = symbol->slot;
    if (node->kind != NODE_NAME) {
        convert(&node->children[0], node->type);
    }
}

static void annotate_binary(node_t *node) {
    bool real = node->children[0]->type == TYPE_REAL || node->children[1]->type == TYPE_REAL;
    uint8_t type = real ? TYPE_REAL : TYPE_WHOLE;
    convert(&node->children[0], type);
    convert(&node->children[1], type);
    node->type = node->operation == '<' || node->operation == '=' ? TYPE_WHOLE : type;
}

static void annotate(node_t *node, scope_t *scope) {
    scope_t *inner = node->kind == NODE_BLOCK ? scope_open(scope) : scope;
    for (unsigned i = 0; i < node->count; i++) {
        annotate(node->children[i], inner);
    }
    switch (node->kind) {
    case NODE_NAME:
    case NODE_LET:
    case NODE_ASSIGN:
        annotate_variable(node, scope);
        break;
    case NODE_BINARY:
        annotate_binary(node);
        break;
    case NODE_NEGATE:
        node->type = node->children[0]->type;
        break;
    case NODE_CALL:
        node->type = TYPE_WHOLE;
        for (unsigned i = 0; i < node->count; i++) {
            convert(&node->children[i], TYPE_WHOLE);
        }
        break;
    case NODE_IF:
    case NODE_WHILE:
    case NODE_RETURN:
        convert(&node->children[0], TYPE_WHOLE);
        break;
    case NODE_BLOCK:
        scope_close(inner);
        break;
    default:
        break;
    }
}

/* --- folding constants ------------------------------------------------------------------------ */

static bool is_whole(const node_t *node, int64_t value) {
    return node->kind == NODE_NUMBER && node->type == TYPE_WHOLE && node->whole == value;
}

static int64_t fold_whole(uint64_t operation, int64_t left, int64_t right) {
    switch (operation) {
    case '+':
        return (int64_t)((uint64_t)left + (uint64_t)right);
    case '-':
        return (int64_t)((uint64_t)left - (uint64_t)right);
    case '*':
        return (int64_t)((uint64_t)left * (uint64_t)right);
    case '/':
        return right == -1 ? (int64_t)(0 - (uint64_t)left) : left / right;
    case '<':
        return left < right;
    default:
        return left == right;
    }
}

static double fold_real(uint64_t operation, double left, double right) {
    return operation == '+'   ? left + right
           : operation == '-' ? left - right
           : operation == '*' ? left * right
                              : left / right;
}

/* The number that takes the place of NODE, whose children are numbers. */
static node_t *fold_numbers(node_t *node) {
    const node_t *left = node->children[0], *right = node->children[1];
    node_t *number = node_new(NODE_NUMBER, node->line, 0);
    number->type = node->type;
    if (left->type == TYPE_WHOLE) {
        number->whole = fold_whole(node->operation, left->whole, right->whole);
    } else if (node->type == TYPE_WHOLE) {
        bool less = node->operation == '<';
        number->whole = less ? left->real < right->real : left->real == right->real;
    } else {
        number->real = fold_real(node->operation, left->real, right->real);
    }
    tree_free(node);
    return number;
}

/* Child number INDEX in its parent's place. */
static node_t *hoist(node_t *node, unsigned index) {
    node_t *child = node->children[index];
    for (unsigned i = 0; i < node->count; i++) {
        if (i != index) {
            tree_free(node->children[i]);
        }
    }
    node_free(node);
    return child;
}

static node_t *fold_binary(node_t *node) {
    const node_t *left = node->children[0], *right = node->children[1];
    uint64_t operation = node->operation;
    if (left->kind == NODE_NUMBER && right->kind == NODE_NUMBER) {
        bool zero = right->type == TYPE_WHOLE ? right->whole == 0 : right->real == 0;
        return operation == '/' && zero ? node : fold_numbers(node);
    }
    if (((operation == '+' || operation == '-') && is_whole(right, 0)) ||
        ((operation == '*' || operation == '/') && is_whole(right, 1))) {
        return hoist(node, 0);
    }
    if ((operation == '+' && is_whole(left, 0)) || (operation == '*' && is_whole(left, 1))) {
        return hoist(node, 1);
    }
    return node;
}

/* A negated or converted number. */
static node_t *fold_unary(node_t *node) {
    node_t *number = node->children[0];
    if (number->kind != NODE_NUMBER) {
        return node;
    }
    bool negate = node->kind == NODE_NEGATE;
    if (number->type == TYPE_REAL) {
        double real = number->real;
        bool fits = real > -1e18 && real < 1e18;
        if (negate) {
            number->real = -real;
        } else {
            number->whole = fits ? (int64_t)real : 0;
        }
    } else if (negate) {
        number->whole = (int64_t)(0 - (uint64_t)number->whole);
    } else {
        number->real = (double)number->whole;
    }
    number->type = node->type;
    return hoist(node, 0);
}

/* A condition that is known leaves one side of "if", and nothing of "while". */
static node_t *fold_branch(node_t *node) {
    const node_t *condition = node->children[0];
    if (condition->kind != NODE_NUMBER) {
        return node;
    }
    bool taken = condition->whole != 0;
    if (node->kind == NODE_IF && (taken || node->count == 3)) {
        return hoist(node, taken ? 1 : 2);
    }
    if (taken) {
        return node; /* an endless loop */
    }
    node_t *nothing = node_new(NODE_BLOCK, node->line, 0);
    tree_free(node);
    return nothing;
}

static node_t *fold(node_t *node) {
    for (unsigned i = 0; i < node->count; i++) {
        node->children[i] = fold(node->children[i]);
    }
    switch (node->kind) {
    case NODE_BINARY:
        return fold_binary(node);
    case NODE_NEGATE:
    case NODE_CONVERT:
        return fold_unary(node);
    case NODE_IF:
    case NODE_WHILE:
        return fold_branch(node);
    default:
        return node;
    }
}

#endif
