/* SPDX-License-Identifier: MIT
 * syntax_tree UNITS FUNCTIONS SEED
 *
 * Measures: a compiler without arenas. Each of UNITS writes the text of a small language, FUNCTIONS
 * functions long, reads it into tokens with texts of their own, interns the names in a table of
 * chains, builds a tree with one block for each node (16 to 100 bytes), resolves names in nested
 * scopes, inserts conversions, folds constants (which frees and rebuilds nodes), writes stack code
 * into growing buffers, and frees all of it by walking the tree. Many short lives beside many of
 * one unit; of every fourth unit the code, trimmed to its length, stays to the end between these.
 * Known from: compilers as benchmarks of allocators, such as gcc in the SPEC CPU suites, and the
 * tree and symbol table programs in the classic studies of allocation.
 * Does not measure: threads; blocks above 4 KiB are few (text, table of names, longest code).
 * One operation is one node made. SEED chooses the programs. */
#include "syntax_tree_fold.h"

/* --- code: one byte for the instruction, eight for its operand -------------------------------- */

static void emit(buffer_t *code, char instruction) {
    append(code, &instruction, 1);
}

static void emit_operand(buffer_t *code, char instruction, int64_t operand) {
    emit(code, instruction);
    append(code, &operand, sizeof operand);
}

/* Lets the jump whose operand ends at AFTER lead to the end of the code. */
static void land(buffer_t *code, size_t after) {
    int64_t target = (int64_t)code->length;
    memcpy(code->bytes + after - sizeof target, &target, sizeof target);
}

static void generate(buffer_t *code, const node_t *node);

static void generate_branch(buffer_t *code, const node_t *node) {
    int64_t top = (int64_t)code->length;
    generate(code, node->children[0]);
    emit_operand(code, 'z', 0);
    size_t skip = code->length;
    generate(code, node->children[1]);
    if (node->kind == NODE_WHILE) {
        emit_operand(code, 'j', top);
    } else if (node->count == 3) {
        emit_operand(code, 'j', 0);
        size_t end = code->length;
        land(code, skip);
        generate(code, node->children[2]);
        land(code, end);
        return;
    }
    land(code, skip);
}

static void generate(buffer_t *code, const node_t *node) {
    static const char instructions[] = {
        [NODE_NAME] = 'v', [NODE_NEGATE] = 'n', [NODE_CONVERT] = 'c',
        [NODE_LET] = 's',  [NODE_ASSIGN] = 's', [NODE_RETURN] = 'r'};
    if (node->kind == NODE_IF || node->kind == NODE_WHILE) {
        generate_branch(code, node);
        return;
    }
    unsigned first = node->kind == NODE_FUNCTION ? node->count - 1u : 0;
    for (unsigned i = first; i < node->count; i++) {
        generate(code, node->children[i]);
    }
    switch (node->kind) {
    case NODE_NUMBER:
        emit_operand(code, node->type == TYPE_REAL ? 'R' : 'W', node->whole);
        break;
    case NODE_BINARY:
        emit(code, (char)node->operation);
        emit(code, (char)node->children[0]->type);
        break;
    case NODE_NEGATE:
    case NODE_CONVERT:
    case NODE_RETURN:
        emit(code, instructions[node->kind]);
        break;
    case NODE_NAME:
    case NODE_LET:
    case NODE_ASSIGN:
        emit_operand(code, instructions[node->kind], node->slot);
        break;
    case NODE_CALL:
        emit_operand(code, 'C', node->name->hash);
        break;
    default:
        break;
    }
}

/* --- units ------------------------------------------------------------------------------------ */

/* What is left of a function. */
typedef struct object {
    struct object *next;
    buffer_t code;
    char *name;
    uint32_t name_length;
} object_t;

static object_t *object_new(const node_t *function, object_t *next) {
    object_t *object = take(sizeof *object);
    *object = (object_t){.next = next, .name_length = function->name->length};
    object->name = take(object->name_length + 1);
    memcpy(object->name, function->name->text, object->name_length + 1);
    generate(&object->code, function);
    object->code.bytes = resize(object->code.bytes, object->code.room, object->code.length);
    object->code.room = object->code.length;
    return object;
}

static uint64_t fold_bytes(uint64_t check, const char *bytes, size_t length) {
    for (size_t i = 0; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        check = (check ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        check ^= check >> 29;
    }
    return check ^ length;
}

/* Reads the objects into CHECK and frees them. */
static uint64_t objects_free(object_t *objects, uint64_t check) {
    while (objects != NULL) {
        object_t *object = objects;
        objects = object->next;
        check = fold_bytes(check, object->code.bytes, object->code.length);
        check = (check ^ (uint64_t)object->name[object->name_length - 1]) * 31;
        give(object->name, object->name_length + 1);
        buffer_free(&object->code);
        give(object, sizeof *object);
    }
    return check;
}

static void parse_unit(parser_t *parser, const buffer_t *text, list_t *functions) {
    parser->lexer = (lexer_t){.at = text->bytes, .end = text->bytes + text->length, .line = 1};
    advance(&parser->lexer);
    while (parser->lexer.kind != TOKEN_END) {
        if (!at_word(&parser->lexer, "fn")) {
            bench_fail("line %u: a function expected", parser->lexer.line);
        }
        list_add(functions, parse_function(parser));
    }
    token_end(&parser->lexer);
}

/* Compiles one unit; its objects come before NEXT. */
static object_t *compile(uint64_t seed, unsigned function_count, object_t *next) {
    writer_t writer = {.rng = bench_rng(seed)};
    while (writer.functions < function_count) {
        write_function(&writer);
    }
    strings_t names;
    strings_init(&names);
    parser_t parser = {.names = &names};
    list_t functions = {0};
    parse_unit(&parser, &writer.text, &functions);
    buffer_free(&writer.text);
    for (unsigned i = 0; i < functions.count; i++) {
        annotate_function(functions.nodes[i]);
        functions.nodes[i] = fold(functions.nodes[i]);
    }
    for (unsigned i = 0; i < functions.count; i++) {
        next = object_new(functions.nodes[i], next);
    }
    for (unsigned i = 0; i < functions.count; i++) {
        tree_free(functions.nodes[i]);
    }
    list_free(&functions);
    strings_free(&names);
    return next;
}

int main(int argc, char **argv) {
    enum { KEEP_EVERY = 4 };
    bench_init(argc, argv, "UNITS FUNCTIONS SEED");
    uint64_t units = bench_arg(1, 80, 1, 1u << 20, "UNITS");
    unsigned functions = (unsigned)bench_arg(2, 100, 1, 10000, "FUNCTIONS");
    uint64_t seed = bench_arg(3, 42, 0, UINT64_MAX / 2, "SEED");
    uint64_t warm_up = units / 10 + 1, check = 0;
    object_t *kept = NULL;
    for (uint64_t i = 0; i < warm_up + units; i++) {
        if (i == warm_up) {
            nodes_made = 0;
            bench_start();
        }
        if (i % KEEP_EVERY == 0) {
            kept = compile(seed + i, functions, kept);
        } else {
            check = objects_free(compile(seed + i, functions, NULL), check);
        }
    }
    bench_stop(nodes_made);
    check = objects_free(kept, check);
    if (live != 0) {
        bench_fail("%llu bytes are still live", (unsigned long long)live);
    }
    bench_live_peak(live_peak);
    return bench_finish(check);
}
