/* SPDX-License-Identifier: MIT
 * Part of syntax_tree.c: interned strings, and the lexer. */
#ifndef HAK_BENCH_SYNTAX_TREE_TOKEN_H
#define HAK_BENCH_SYNTAX_TREE_TOKEN_H

#include "syntax_tree_text.h"

/* --- interned strings ------------------------------------------------------------------------- */

typedef struct string {
    struct string *next; /* in its bucket */
    uint32_t hash, length;
    char text[]; /* with a NUL */
} string_t;

typedef struct strings {
    string_t **buckets;
    uint32_t bucket_count, count; /* buckets: a power of two */
} strings_t;

static size_t string_size(size_t length) {
    return sizeof(string_t) + length + 1;
}

static void strings_init(strings_t *strings) {
    strings->bucket_count = 16;
    strings->count = 0;
    strings->buckets = take(strings->bucket_count * sizeof(string_t *));
    memset(strings->buckets, 0, strings->bucket_count * sizeof(string_t *));
}

static void strings_grow(strings_t *strings) {
    size_t old_count = strings->bucket_count, count = old_count * 2;
    string_t **buckets = take(count * sizeof(string_t *));
    memset(buckets, 0, count * sizeof(string_t *));
    for (size_t i = 0; i < old_count; i++) {
        while (strings->buckets[i] != NULL) {
            string_t *string = strings->buckets[i];
            strings->buckets[i] = string->next;
            string->next = buckets[string->hash & (count - 1)];
            buckets[string->hash & (count - 1)] = string;
        }
    }
    give(strings->buckets, old_count * sizeof(string_t *));
    strings->buckets = buckets;
    strings->bucket_count = (uint32_t)count;
}

static string_t *intern(strings_t *strings, const char *text, uint32_t length) {
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    }
    string_t **bucket = &strings->buckets[hash & (strings->bucket_count - 1)];
    for (string_t *at = *bucket; at != NULL; at = at->next) {
        if (at->hash == hash && at->length == length && memcmp(at->text, text, length) == 0) {
            return at;
        }
    }
    string_t *string = take(string_size(length));
    *string = (string_t){*bucket, hash, length};
    memcpy(string->text, text, length);
    string->text[length] = '\0';
    *bucket = string;
    if (++strings->count > strings->bucket_count) {
        strings_grow(strings);
    }
    return string;
}

static void strings_free(strings_t *strings) {
    for (uint32_t i = 0; i < strings->bucket_count; i++) {
        while (strings->buckets[i] != NULL) {
            string_t *string = strings->buckets[i];
            strings->buckets[i] = string->next;
            give(string, string_size(string->length));
        }
    }
    give(strings->buckets, strings->bucket_count * sizeof(string_t *));
}

/* --- tokens ----------------------------------------------------------------------------------- */

enum { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN, TOKEN_SAME }; /* SAME is == */

typedef struct lexer {
    const char *at, *end;
    uint32_t line;
    int kind;
    char sign;
    char *text; /* of a name or number: a block of its own, with a NUL */
    uint32_t length;
} lexer_t;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void skip_space(lexer_t *lexer) {
    for (; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '#') {
            while (lexer->at + 1 < lexer->end && *lexer->at != '\n') {
                lexer->at++;
            }
        }
        if (*lexer->at != ' ' && *lexer->at != '\n') {
            return;
        }
        lexer->line += *lexer->at == '\n';
    }
}

static void token_end(lexer_t *lexer) {
    if (lexer->text != NULL) {
        give(lexer->text, lexer->length + 1);
        lexer->text = NULL;
    }
}

/* Lets go of the current token and reads the next. */
static void advance(lexer_t *lexer) {
    token_end(lexer);
    skip_space(lexer);
    const char *start = lexer->at;
    if (start == lexer->end) {
        lexer->kind = TOKEN_END;
    } else if (is_letter(*start) || is_digit(*start)) {
        lexer->kind = is_digit(*start) ? TOKEN_NUMBER : TOKEN_NAME;
        while (lexer->at < lexer->end &&
               (is_letter(*lexer->at) || is_digit(*lexer->at) || *lexer->at == '.')) {
            lexer->at++;
        }
        lexer->length = (uint32_t)(lexer->at - start);
        lexer->text = take(lexer->length + 1);
        memcpy(lexer->text, start, lexer->length);
        lexer->text[lexer->length] = '\0';
    } else {
        bool same = start + 1 < lexer->end && start[0] == '=' && start[1] == '=';
        lexer->kind = same ? TOKEN_SAME : TOKEN_SIGN;
        lexer->sign = *start;
        lexer->at += same ? 2 : 1;
    }
}

static bool at_sign(const lexer_t *lexer, char sign) {
    return lexer->kind == TOKEN_SIGN && lexer->sign == sign;
}

static bool at_word(const lexer_t *lexer, const char *word) {
    return lexer->kind == TOKEN_NAME && strcmp(lexer->text, word) == 0;
}

static void expect(lexer_t *lexer, char sign) {
    if (!at_sign(lexer, sign)) {
        bench_fail("line %u: '%c' expected", lexer->line, sign);
    }
    advance(lexer);
}

#endif
