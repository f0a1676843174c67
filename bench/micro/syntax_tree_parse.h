/* SPDX-License-Identifier: MIT
 * Part of syntax_tree.c: the tree, and the parser that builds it. */
#ifndef HAK_BENCH_SYNTAX_TREE_PARSE_H
#define HAK_BENCH_SYNTAX_TREE_PARSE_H

#include "syntax_tree_token.h"

static uint64_t nodes_made;

/* --- the tree --------------------------------------------------------------------------------- */

typedef enum kind {
    NODE_NUMBER,
    NODE_NAME,
    NODE_NEGATE,
    NODE_CONVERT, /* from the other type to this one */
    NODE_BINARY,
    NODE_CALL,
    NODE_LET,
    NODE_ASSIGN,
    NODE_IF,
    NODE_WHILE,
    NODE_RETURN,
    NODE_BLOCK,
    NODE_FUNCTION
} kind_t;

typedef enum type { TYPE_NONE, TYPE_WHOLE, TYPE_REAL } type_t;

typedef struct node {
    uint8_t kind, type;
    uint16_t count; /* of children */
    uint32_t line;
    union {
        int64_t whole;
        double real;
        string_t *name;     /* until names are resolved */
        int64_t slot;       /* of a variable, then */
        uint64_t operation; /* one of + - * / < = */
    };
    struct node *children[];
} node_t;

static size_t node_size(unsigned count) {
    return sizeof(node_t) + count * sizeof(node_t *);
}

static node_t *node_new(kind_t kind, uint32_t line, unsigned count) {
    nodes_made++;
    node_t *node = take(node_size(count));
    node->kind = (uint8_t)kind;
    node->type = TYPE_NONE;
    node->count = (uint16_t)count;
    node->line = line;
    node->whole = 0;
    return node;
}

/* The node alone, not its children. */
static void node_free(node_t *node) {
    give(node, node_size(node->count));
}

static void tree_free(node_t *node) {
    for (unsigned i = 0; i < node->count; i++) {
        tree_free(node->children[i]);
    }
    node_free(node);
}

/* --- parsing ---------------------------------------------------------------------------------- */

typedef struct parser {
    lexer_t lexer;
    strings_t *names;
} parser_t;

/* Children whose number is not known yet. */
typedef struct list {
    node_t **nodes;
    unsigned count, room;
} list_t;

static void list_add(list_t *list, node_t *node) {
    if (list->count == list->room) {
        unsigned room = list->room != 0 ? list->room * 2 : 2;
        list->nodes = resize(list->nodes, list->room * sizeof(node_t *), room * sizeof(node_t *));
        list->room = room;
    }
    list->nodes[list->count++] = node;
}

static void list_free(list_t *list) {
    if (list->room != 0) {
        give(list->nodes, list->room * sizeof(node_t *));
    }
}

/* A node with the children in LIST, whose own memory it ends. */
static node_t *node_of_list(kind_t kind, uint32_t line, list_t *list) {
    node_t *node = node_new(kind, line, list->count);
    if (list->count != 0) {
        memcpy(node->children, list->nodes, list->count * sizeof(node_t *));
    }
    list_free(list);
    return node;
}

static string_t *parse_name(parser_t *parser) {
    lexer_t *lexer = &parser->lexer;
    if (lexer->kind != TOKEN_NAME) {
        bench_fail("line %u: a name expected", lexer->line);
    }
    string_t *name = intern(parser->names, lexer->text, lexer->length);
    advance(lexer);
    return name;
}

static node_t *parse_number(parser_t *parser) {
    node_t *node = node_new(NODE_NUMBER, parser->lexer.line, 0);
    int64_t digits = 0, scale = 0;
    for (const char *at = parser->lexer.text; *at != '\0'; at++) {
        if (*at == '.') {
            scale = 1;
        } else {
            digits = digits * 10 + (*at - '0');
            scale *= 10;
        }
    }
    node->type = scale != 0 ? TYPE_REAL : TYPE_WHOLE;
    if (scale != 0) {
        node->real = (double)digits / (double)scale;
    } else {
        node->whole = digits;
    }
    advance(&parser->lexer);
    return node;
}

static node_t *parse_binary(parser_t *parser, unsigned level);

static node_t *parse_name_or_call(parser_t *parser) {
    lexer_t *lexer = &parser->lexer;
    uint32_t line = lexer->line;
    string_t *name = parse_name(parser);
    list_t arguments = {0};
    bool call = at_sign(lexer, '(');
    if (call) {
        do {
            advance(lexer);
            if (!at_sign(lexer, ')')) {
                list_add(&arguments, parse_binary(parser, 0));
            }
        } while (at_sign(lexer, ','));
        expect(lexer, ')');
    }
    node_t *node = node_of_list(call ? NODE_CALL : NODE_NAME, line, &arguments);
    node->name = name;
    return node;
}

static node_t *parse_atom(parser_t *parser) {
    lexer_t *lexer = &parser->lexer;
    if (at_sign(lexer, '-')) {
        node_t *node = node_new(NODE_NEGATE, lexer->line, 1);
        advance(lexer);
        node->children[0] = parse_atom(parser);
        return node;
    }
    if (at_sign(lexer, '(')) {
        advance(lexer);
        node_t *node = parse_binary(parser, 0);
        expect(lexer, ')');
        return node;
    }
    return lexer->kind == TOKEN_NUMBER ? parse_number(parser) : parse_name_or_call(parser);
}

/* The operator that the token is on this LEVEL of binding, or 0. */
static char operator_at(const lexer_t *lexer, unsigned level) {
    static const char *const levels[] = {"<", "+-", "*/"};
    if (lexer->kind == TOKEN_SAME) {
        return level == 0 ? '=' : 0;
    }
    bool here = lexer->kind == TOKEN_SIGN && strchr(levels[level], lexer->sign) != NULL;
    return here ? lexer->sign : 0;
}

static node_t *parse_binary(parser_t *parser, unsigned level) {
    node_t *left = level < 2 ? parse_binary(parser, level + 1) : parse_atom(parser);
    for (char operation; (operation = operator_at(&parser->lexer, level)) != 0;) {
        node_t *node = node_new(NODE_BINARY, parser->lexer.line, 2);
        node->operation = (uint64_t)operation;
        advance(&parser->lexer);
        node->children[0] = left;
        node->children[1] = level < 2 ? parse_binary(parser, level + 1) : parse_atom(parser);
        left = node;
    }
    return left;
}

static node_t *parse_block(parser_t *parser);

/* "if" or "while": the condition, the block, and what stands after "else". */
static node_t *parse_branch(parser_t *parser, kind_t kind) {
    lexer_t *lexer = &parser->lexer;
    list_t parts = {0};
    uint32_t line = lexer->line;
    advance(lexer);
    expect(lexer, '(');
    list_add(&parts, parse_binary(parser, 0));
    expect(lexer, ')');
    list_add(&parts, parse_block(parser));
    if (kind == NODE_IF && at_word(lexer, "else")) {
        advance(lexer);
        list_add(&parts, parse_block(parser));
    }
    return node_of_list(kind, line, &parts);
}

static node_t *parse_statement(parser_t *parser) {
    lexer_t *lexer = &parser->lexer;
    if (at_word(lexer, "if") || at_word(lexer, "while")) {
        return parse_branch(parser, lexer->text[0] == 'i' ? NODE_IF : NODE_WHILE);
    }
    bool returns = at_word(lexer, "return"), let = at_word(lexer, "let");
    node_t *node = node_new(returns ? NODE_RETURN : let ? NODE_LET : NODE_ASSIGN, lexer->line, 1);
    if (returns || let) {
        advance(lexer);
    }
    if (!returns) {
        node->name = parse_name(parser);
        expect(lexer, '=');
    }
    node->children[0] = parse_binary(parser, 0);
    expect(lexer, ';');
    return node;
}

static node_t *parse_block(parser_t *parser) {
    list_t statements = {0};
    uint32_t line = parser->lexer.line;
    expect(&parser->lexer, '{');
    while (!at_sign(&parser->lexer, '}')) {
        list_add(&statements, parse_statement(parser));
    }
    advance(&parser->lexer);
    return node_of_list(NODE_BLOCK, line, &statements);
}

/* The children are the parameters and, last, the block. */
static node_t *parse_function(parser_t *parser) {
    lexer_t *lexer = &parser->lexer;
    list_t parts = {0};
    uint32_t line = lexer->line;
    advance(lexer); /* "fn" */
    string_t *name = parse_name(parser);
    do {
        advance(lexer);
        if (!at_sign(lexer, ')')) {
            node_t *parameter = node_new(NODE_NAME, lexer->line, 0);
            parameter->name = parse_name(parser);
            list_add(&parts, parameter);
        }
    } while (at_sign(lexer, ','));
    expect(lexer, ')');
    list_add(&parts, parse_block(parser));
    node_t *node = node_of_list(NODE_FUNCTION, line, &parts);
    node->name = name;
    return node;
}

#endif
