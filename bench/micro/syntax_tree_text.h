/* SPDX-License-Identifier: MIT
 * Part of syntax_tree.c: blocks that are counted, bytes that grow, the writer of program text. */
#ifndef HAK_BENCH_SYNTAX_TREE_TEXT_H
#define HAK_BENCH_SYNTAX_TREE_TEXT_H

#include "bench.h"

#include <stdbool.h>
#include <string.h>

static uint64_t live, live_peak;

static void *count_block(void *block, size_t size) {
    live += size;
    live_peak = live > live_peak ? live : live_peak;
    return block;
}

static void *take(size_t size) {
    return count_block(BENCH_MALLOC(size), size);
}

static void give(void *block, size_t size) {
    live -= size;
    BENCH_FREE(block, size);
}

static void *resize(void *block, size_t old_size, size_t size) {
    live -= old_size;
    return count_block(BENCH_REALLOC(block, old_size, size), size);
}

/* --- bytes that grow -------------------------------------------------------------------------- */

typedef struct buffer {
    char *bytes;
    size_t length, room;
} buffer_t;

static void append(buffer_t *buffer, const void *bytes, size_t length) {
    if (buffer->length + length > buffer->room) {
        size_t room = buffer->room != 0 ? buffer->room : 32;
        while (room < buffer->length + length) {
            room *= 2;
        }
        buffer->bytes = resize(buffer->bytes, buffer->room, room);
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}

static void buffer_free(buffer_t *buffer) {
    if (buffer->room != 0) {
        give(buffer->bytes, buffer->room);
    }
    *buffer = (buffer_t){0};
}

/* --- writing the program text ----------------------------------------------------------------- */

enum { MAX_PARAMETERS = 4, MAX_LOCALS = 24, MAX_DEPTH = 3 };

typedef struct writer {
    buffer_t text;
    bench_rng_t rng;
    unsigned functions; /* complete, so that they can be called */
    unsigned locals[MAX_LOCALS], local_count;
    unsigned next_name, depth;
} writer_t;

static const char *const words[] = {"alpha",  "index", "count", "limit", "total", "buffer",
                                    "next",   "line",  "node",  "sum",   "width", "scale",
                                    "offset", "value", "rate",  "step"};

static void write_text(writer_t *writer, const char *text) {
    append(&writer->text, text, strlen(text));
}

static void write_number(writer_t *writer, unsigned number) {
    char digits[12], *at = &digits[sizeof digits - 1];
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    write_text(writer, at);
}

static void write_name(writer_t *writer, unsigned name) {
    write_text(writer, words[name % BENCH_COUNT(words)]);
    write_text(writer, "_");
    write_text(writer, words[name / 7 % BENCH_COUNT(words)]);
    write_number(writer, name);
}

/* Functions are f0, f1 …; number N has this many parameters. */
static unsigned parameters_of(unsigned function) {
    return function * 7 % (MAX_PARAMETERS + 1);
}

static void write_expression(writer_t *writer, unsigned depth);

static void write_call(writer_t *writer, unsigned depth) {
    unsigned function = bench_below(&writer->rng, writer->functions);
    write_text(writer, "f");
    write_number(writer, function);
    write_text(writer, "(");
    for (unsigned i = 0; i < parameters_of(function); i++) {
        write_text(writer, i != 0 ? ", " : "");
        write_expression(writer, depth - 1);
    }
    write_text(writer, ")");
}

static void write_atom(writer_t *writer) {
    unsigned kind = bench_below(&writer->rng, 8);
    if (kind < 4 && writer->local_count != 0) {
        write_name(writer, writer->locals[bench_below(&writer->rng, writer->local_count)]);
    } else {
        write_number(writer, bench_below(&writer->rng, kind == 4 ? 100000 : 10));
        write_text(writer, kind == 5 ? ".25" : "");
    }
}

static void write_expression(writer_t *writer, unsigned depth) {
    static const char *const operators[] = {" + ", " - ", " * ", " / ", " < ", " == "};
    unsigned kind = bench_below(&writer->rng, 10);
    if (depth == 0 || kind < 2) {
        write_atom(writer);
    } else if (kind == 2 && writer->functions != 0) {
        write_call(writer, depth);
    } else if (kind == 3) {
        write_text(writer, "-");
        write_atom(writer);
    } else {
        bool brackets = kind < 7;
        write_text(writer, brackets ? "(" : "");
        write_expression(writer, depth - 1);
        write_text(writer, operators[bench_below(&writer->rng, BENCH_COUNT(operators))]);
        write_expression(writer, depth - 1);
        write_text(writer, brackets ? ")" : "");
    }
}

static void write_indent(writer_t *writer) {
    append(&writer->text, "                ", 4 * writer->depth);
}

static void write_block(writer_t *writer);

static void write_statement(writer_t *writer) {
    unsigned kind = bench_below(&writer->rng, 10);
    write_indent(writer);
    if (writer->depth < MAX_DEPTH && kind < 2) {
        write_text(writer, kind == 0 ? "while (" : "if (");
        write_expression(writer, 2);
        write_text(writer, ") ");
        write_block(writer);
        if (kind == 1 && bench_below(&writer->rng, 2) == 0) {
            write_indent(writer);
            write_text(writer, "else ");
            write_block(writer);
        }
        return;
    }
    if (writer->local_count < MAX_LOCALS && (kind < 6 || writer->local_count == 0)) {
        unsigned name = writer->next_name++ % 600;
        write_text(writer, "let ");
        write_name(writer, name);
        write_text(writer, " = ");
        write_expression(writer, 3);
        writer->locals[writer->local_count++] = name;
    } else {
        write_name(writer, writer->locals[bench_below(&writer->rng, writer->local_count)]);
        write_text(writer, " = ");
        write_expression(writer, 4);
    }
    write_text(writer, ";\n");
}

static void write_block(writer_t *writer) {
    unsigned outer_locals = writer->local_count;
    write_text(writer, "{\n");
    writer->depth++;
    for (unsigned i = bench_between(&writer->rng, 2, 9); i > 0; i--) {
        write_statement(writer);
    }
    if (writer->depth == 1) {
        write_text(writer, "    return ");
        write_expression(writer, 2);
        write_text(writer, ";\n");
    }
    writer->depth--;
    write_indent(writer);
    write_text(writer, "}\n");
    writer->local_count = outer_locals;
}

static void write_function(writer_t *writer) {
    write_text(writer, "# one of many functions\nfn f");
    write_number(writer, writer->functions);
    write_text(writer, "(");
    writer->local_count = 0;
    for (unsigned i = 0; i < parameters_of(writer->functions); i++) {
        unsigned name = writer->next_name++ % 600;
        write_text(writer, i != 0 ? ", " : "");
        write_name(writer, name);
        writer->locals[writer->local_count++] = name;
    }
    write_text(writer, ") ");
    write_block(writer);
    writer->functions++;
}

#endif
