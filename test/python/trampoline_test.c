/* SPDX-License-Identifier: MIT
 *
 * A Python of four code objects, which exports what tools/hakmem_python asks for: each runs through
 * instructions of its own, with its arguments, its result and a frame pointer; one that is being
 * thrown into gets none; the map names them. The C library tells of the main thread's stack only
 * what is mapped so far, as musl does. Usage: trampoline_test LIBRARY */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(is_right)                                                                            \
    do {                                                                                           \
        if (!(is_right)) {                                                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #is_right);                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef void *(*evaluate_t)(void *thread, void *frame, int is_throwing);

enum { CODES = 4, THROWN = 3, PAGE = 64 * 1024, KEYS_MOST = 1024 };

typedef struct code {
    char name[8];
    void *extra;
} code_t;

typedef struct frame {
    void *before[4], *code, *behind[8];
} frame_t;

static code_t codes[CODES] = {{"one", NULL}, {"two", NULL}, {"a\nb", NULL}, {"thrown", NULL}};
static int thread, result, interpreter, other_interpreter;
static void *main_interpreter = &interpreter;
static evaluate_t evaluator;
static uintptr_t last_return; /* to where the last evaluation returns */
static int last_throwing;
static uintptr_t stack_top;
static uint64_t stack_limit = 1 << 20;
static int too_deep;
void *PyExc_RecursionError = &result;
const unsigned long Py_Version = 0x030b0000;

static __attribute__((noinline)) void *evaluate_plainly(void *of, void *frame, int is_throwing) {
    uintptr_t *own = __builtin_frame_address(0);
    CHECK(of == &thread && ((frame_t *)frame)->code != NULL);
    CHECK(own[0] > (uintptr_t)own &&
          own[0] - (uintptr_t)own < 4096); /* a caller with a frame pointer */
    last_return = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    last_throwing = is_throwing;
    return &result;
}

static __attribute__((noinline)) void *run(code_t *code, int is_throwing) {
    frame_t frame = {.code = code};
    evaluate_t evaluates = evaluator != NULL ? evaluator : evaluate_plainly;
    void *found = evaluates(&thread, &frame, is_throwing);
    CHECK(last_throwing == is_throwing);
    return found;
}

void *PyInterpreterState_Get(void) {
    return &interpreter;
}

void *PyInterpreterState_Main(void) {
    return main_interpreter;
}

evaluate_t _PyInterpreterState_GetEvalFrameFunc(void *of) {
    CHECK(of == &interpreter);
    return evaluate_plainly;
}

void _PyInterpreterState_SetEvalFrameFunc(void *of, evaluate_t evaluates) {
    CHECK(of == &interpreter);
    evaluator = evaluates;
}

intptr_t _PyEval_RequestCodeExtraIndex(void (*freed)(void *)) {
    CHECK(freed == NULL);
    return 5;
}

int _PyCode_GetExtra(void *code, intptr_t index, void **extra) {
    CHECK(index == 5);
    *extra = ((code_t *)code)->extra;
    return 0;
}

int _PyCode_SetExtra(void *code, intptr_t index, void *extra) {
    CHECK(index == 5);
    ((code_t *)code)->extra = extra;
    return 0;
}

void *PyObject_CallObject(void *function, void *arguments) {
    CHECK(arguments == NULL);
    return run(function, 0);
}

void *PyObject_GetAttrString(void *object, const char *name) {
    static char file[] = "/x.py";
    return strcmp(name, "co_qualname") == 0   ? object
           : strcmp(name, "co_filename") == 0 ? file
                                              : NULL;
}

const char *PyUnicode_AsUTF8(void *text) {
    return text;
}

long PyLong_AsLong(void *number) {
    return number != NULL;
}

void PyErr_SetString(void *type, const char *text) {
    CHECK(type == PyExc_RecursionError && text != NULL);
    too_deep++;
}

int pthread_getattr_np(pthread_t of, pthread_attr_t *found) {
    uintptr_t page = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(PAGE - 1);
    uintptr_t here = page - 2 * PAGE, end = stack_top - stack_limit; /* glibc refuses less bytes */
    here = here > end ? here : end;
    CHECK(pthread_equal(of, pthread_self()) && pthread_attr_init(found) == 0);
    return pthread_attr_setstack(found, (void *)here, stack_top - here);
}

int getrlimit(int resource, uint64_t limit[2]) {
    CHECK(resource == 3); /* RLIMIT_STACK */
    limit[0] = limit[1] = stack_limit;
    return 0;
}

/* Runs a function at each depth of the stack. */
static __attribute__((noinline)) void descend(unsigned steps) {
    char used[PAGE / 4];
    __asm__ volatile("" : : "r"(used) : "memory");
    int before = too_deep;
    CHECK(run(&codes[0], 0) == (before == too_deep ? &result : NULL));
    if (steps > 0) {
        descend(steps - 1);
    }
    __asm__ volatile("" : : "r"(used) : "memory");
}

void PyErr_Clear(void) {
}

void Py_DecRef(void *object) {
    (void)object;
}

static char map_path[64];

static void remove_map(void) {
    unlink(map_path);
}

int main(int count, char **words) {
    CHECK(count == 2);
    stack_top = ((uintptr_t)words | (PAGE - 1)) + 1;
    void *library = dlopen(words[1], RTLD_NOW);
    CHECK(library != NULL);
    int (*start)(void *, void *, void *, void *) =
        (int (*)(void *, void *, void *, void *))(uintptr_t)dlsym(library, "hak_python_start");
    snprintf(map_path, sizeof map_path, "/tmp/perf-%ld.map", (long)getpid());
    atexit(remove_map);
    main_interpreter = &other_interpreter;
    CHECK(start(&codes[0], &codes[0], &codes[1], &codes[1]) == 0 &&
          evaluator == NULL); /* not the main one */
    main_interpreter = &interpreter;
    for (int at = 0; at < KEYS_MOST; at++) { /* code objects that no frame has; each costs no key */
        CHECK(start(&codes[0], &codes[1], &codes[1], &codes[0]) == 0);
    }
    CHECK(start(&codes[0], &codes[0], &codes[1], &codes[1]) == 1);

    uintptr_t returns[CODES];
    for (int round = 0; round < 2; round++) {
        for (int at = 0; at < CODES; at++) {
            CHECK(run(&codes[at], at == THROWN) == &result);
            CHECK(round == 0 || returns[at] == last_return);
            returns[at] = last_return;
        }
    }
    char wanted[256] = "", found[256] = "";
    FILE *map = fopen(map_path, "r");
    CHECK(map != NULL);
    size_t bytes = fread(found, 1, sizeof found - 1, map);
    fclose(map);
    for (int at = 0; at < THROWN; at++) {
        uintptr_t begin = (uintptr_t)codes[at].extra;
        unsigned size = (unsigned)((uintptr_t)codes[1].extra - (uintptr_t)codes[0].extra);
        CHECK(returns[at] > begin && returns[at] < begin + size);
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%lx %x py::%s:/x.py\n",
                 (unsigned long)begin, size, at == 2 ? "a?b" : codes[at].name);
    }
    CHECK(codes[THROWN].extra == NULL);
    descend(128); /* 2 MiB */
    CHECK(too_deep > 0);
    too_deep = 0;
    stack_limit = 8 << 20; /* which a program has raised */
    descend(128);
    CHECK(too_deep == 0);
    if (bytes == 0 || strcmp(found, wanted) != 0) {
        fprintf(stderr, "found:\n%swanted:\n%s", found, wanted);
        return 1;
    }
    return 0;
}
