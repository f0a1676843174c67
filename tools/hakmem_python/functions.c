/* SPDX-License-Identifier: MIT
 *
 * Names the functions of CPython 3.9 to 3.11 in stacks, as later ones do themselves for
 * PYTHONPERFSUPPORT: a code object runs through a few instructions of its own, which a row of
 * /tmp/perf-PID.map names. sitecustomize.py starts it.
 *
 * Python's headers are not needed. What is called is exported and the same in these versions; where
 * a frame holds its code object differs, and is found by running known functions. All runs with
 * Python's global lock held, which protects all state, but only between two calls of Python: those
 * may release it, or run other functions, which are named meanwhile. Whatever fails, Python runs on
 * without names. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#define PYTHONS extern __attribute__((weak)) /* NULL: not exported, or this is no CPython */

typedef void *(*evaluate_t)(void *thread, void *frame, int is_throwing);
typedef void *(*stub_t)(void *thread, void *frame, int is_throwing, evaluate_t evaluate);

PYTHONS void *PyInterpreterState_Get(void);
PYTHONS void *PyInterpreterState_Main(void);
PYTHONS evaluate_t _PyInterpreterState_GetEvalFrameFunc(void *interpreter);
PYTHONS void _PyInterpreterState_SetEvalFrameFunc(void *interpreter, evaluate_t evaluate);
PYTHONS intptr_t _PyEval_RequestCodeExtraIndex(void (*freed)(void *));
PYTHONS int _PyCode_GetExtra(void *code, intptr_t index, void **extra);
PYTHONS int _PyCode_SetExtra(void *code, intptr_t index, void *extra);
PYTHONS void *PyObject_CallObject(void *function, void *arguments);
PYTHONS void *PyObject_GetAttrString(void *object, const char *name);
PYTHONS const char *PyUnicode_AsUTF8(void *text);
PYTHONS long PyLong_AsLong(void *number);
PYTHONS void PyErr_SetString(void *type, const char *text);
PYTHONS void PyErr_Clear(void);
PYTHONS void Py_DecRef(void *object);
PYTHONS void *PyExc_RecursionError;
PYTHONS const unsigned long Py_Version; /* since 3.11 */

enum {
    FRAME_WORDS = 8, /* at the start of a frame, one of which is its code object */
    ARENA_BYTES = 64 * 1024,
    ARENAS = 32,
    ROW_BYTES = 4096,
    STACK_RESERVE =
        128 * 1024, /* what the interpreter and C functions need between two Python functions */
    MAIN_STACK_MOST = 128 * 1024 * 1024, /* the kernel keeps so much free whatever the limit */
    ARGUMENTS_MOST = 16 * 1024 * 1024,   /* with the environment, above the main thread's stack */
#if defined(__x86_64__)
    STUB_BYTES = 16,
#else
    STUB_BYTES = 32,
#endif
};

/* Calls its fourth argument with the first three, on a frame of its own: walks by frame pointers
 * and src/stack/ pass it. */
extern const char hak_stub[] HIDDEN, hak_stub_end[] HIDDEN;
__asm__(".pushsection .rodata\n"
        ".globl hak_stub, hak_stub_end\n"
        ".hidden hak_stub, hak_stub_end\n"
        "hak_stub:\n"
#if defined(__x86_64__)
        "endbr64\n"
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        "call *%rcx\n"
        "pop %rbp\n"
        "ret\n"
#elif defined(__aarch64__)
        "hint #34\n" /* bti c */
        "stp x29, x30, [sp, #-16]!\n"
        "mov x29, sp\n"
        "blr x3\n"
        "ldp x29, x30, [sp], #16\n"
        "ret\n"
#else
#error "no stub for this processor"
#endif
        "hak_stub_end:\n"
        ".popsection\n");

static char no_stub; /* extra of a code object that runs without one */

static struct {
    evaluate_t before; /* what evaluates frames otherwise */
    intptr_t extra;    /* index of what code objects keep for us: NULL, &no_stub, or their stub */
    unsigned code_word;
    char *next, *end; /* unused stubs; */
    unsigned arenas;
    int file;     /* the map; negative: none */
    pid_t pid;    /* whose map it is */
    dev_t device; /* of the map: */
    ino_t inode;
    off_t file_bytes; /* rows */
    bool is_left;     /* the next child */
    void *probed;     /* code object of the function that the self-test runs, */
    unsigned found;   /* words of its frame that are that, a bit each, and */
    bool was_run;
} state = {.file = -1};

/* --- the map --- */

static int map_open(pid_t pid, int more) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)pid);
    return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | more, 0600);
}

/* fstat, which glibc exports since 2.33 only; the kernel's structure is that of 64-bit C libraries.
 */
static int status_of(int file, struct stat *found) {
    return (int)syscall(SYS_fstat, file, found);
}

/* Of this process. */
static void map_make(void) {
    struct stat found;
    state.pid = getpid();
    state.file_bytes = 0;
    state.file = map_open(state.pid, O_CREAT);
    /* What is there is of an earlier process, or of this one before it executed Python. */
    if (state.file >= 0 &&
        (status_of(state.file, &found) != 0 || !S_ISREG(found.st_mode) || found.st_nlink != 1 ||
         found.st_uid != geteuid() || ftruncate(state.file, 0) != 0)) {
        close(state.file);
        state.file = -1;
    }
    state.device = state.file >= 0 ? found.st_dev : 0;
    state.inode = state.file >= 0 ? found.st_ino : 0;
}

static bool is_map(int file) {
    struct stat found;
    return file >= 0 && status_of(file, &found) == 0 && found.st_dev == state.device &&
           found.st_ino == state.inode && found.st_size >= state.file_bytes;
}

/* Before each use of the descriptor: a program that closes all (a daemon) may have a file of its
 * own at that number, which is not touched. The map is opened anew if it stands at its place. */
static bool map_is_open(void) {
    if (state.file >= 0 && !is_map(state.file)) {
        state.file = map_open(state.pid, 0);
        if (state.file >= 0 && !is_map(state.file)) {
            close(state.file);
            state.file = -1;
        }
    }
    return state.file >= 0;
}

static bool map_write(const char *text, size_t bytes) {
    if (!map_is_open()) {
        return false;
    }
    if (pwrite(state.file, text, bytes, state.file_bytes) != (ssize_t)bytes) {
        if (ftruncate(state.file, state.file_bytes) != 0) { /* no half row */
            close(state.file);
            state.file = -1;
        }
        return false;
    }
    state.file_bytes += (off_t)bytes;
    return true;
}

/* A child has the parent's code at the same places: its map begins with the same rows. */
static void map_copy(void) {
    int parents = map_is_open() ? state.file : -1;
    off_t left = parents >= 0 ? state.file_bytes : 0, at = 0;
    map_make();
    while (at < left) {
        char part[ROW_BYTES];
        size_t most = left - at < (off_t)sizeof part ? (size_t)(left - at) : sizeof part;
        ssize_t bytes = pread(parents, part, most, at);
        if (bytes <= 0 || !map_write(part, (size_t)bytes)) {
            break;
        }
        at += bytes;
    }
    if (parents >= 0) {
        close(parents);
    }
}

static bool is_started(void) {
    return state.before != NULL;
}

/* Before a fork: whether the child executes another program next. It has no names and no map. */
SHOWN void hak_python_leave(int is_left) {
    state.is_left = is_left != 0;
}

SHOWN void hak_python_forked(void) {
    if (!is_started() || getpid() == state.pid) {
        return;
    }
    int saved = errno;
    if (state.is_left) {
        state.file = -1;
        state.pid = getpid();
    } else {
        map_copy();
    }
    errno = saved;
}

/* "START BYTES py::FUNCTION:FILE", numbers in base 16; FUNCTION@LINE where its name is not whole.
 */
static bool map_add(const char *function, long line, const char *file) {
    char row[ROW_BYTES], place[32] = "";
    if (line > 0) {
        snprintf(place, sizeof place, "@%ld", line);
    }
    int bytes = snprintf(row, sizeof row, "%lx %x py::%s%s:%s\n", (unsigned long)state.next,
                         (unsigned)STUB_BYTES, function, place, file);
    if (bytes < 0 || bytes >= (int)sizeof row) {
        return false;
    }
    for (int at = 0; at < bytes - 1; at++) {
        if ((unsigned char)row[at] < ' ') {
            row[at] = '?';
        }
    }
    hak_python_forked(); /* by C code, which tells nobody */
    return map_write(row, (size_t)bytes);
}

/* --- stubs --- */

/* Memory that can be written can never be executed meanwhile. */
static bool arena_make(void) {
    if (state.arenas == ARENAS) {
        return false;
    }
    char *arena =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) {
        return false;
    }
    for (char *at = arena; at < arena + ARENA_BYTES; at += STUB_BYTES) {
        memcpy(at, hak_stub, (size_t)(hak_stub_end - hak_stub));
    }
    __builtin___clear_cache(arena, arena + ARENA_BYTES);
    if (mprotect(arena, ARENA_BYTES, PROT_READ | PROT_EXEC) != 0) {
        munmap(arena, ARENA_BYTES);
        return false;
    }
    state.next = arena;
    state.end = arena + ARENA_BYTES;
    state.arenas++;
    return true;
}

static void *attribute(void *code, const char *name) {
    void *found = PyObject_GetAttrString(code, name);
    if (found == NULL) {
        PyErr_Clear();
    }
    return found;
}

static const char *text_of(void *object) {
    return object != NULL ? PyUnicode_AsUTF8(object) : NULL;
}

static char *stub_take(const char *function, long line, const char *file) {
    char *stub = &no_stub;
    if ((state.next < state.end || arena_make()) && map_add(function, line, file)) {
        stub = state.next;
        state.next += STUB_BYTES;
    }
    return stub;
}

static void *stub_make(void *code) {
    int saved = errno;
    bool has_whole = &Py_Version != NULL;
    void *function = attribute(code, has_whole ? "co_qualname" : "co_name"),
         *file = attribute(code, "co_filename"),
         *line = has_whole ? NULL : attribute(code, "co_firstlineno");
    const char *function_text = text_of(function), *file_text = text_of(file);
    long line_number = line != NULL ? PyLong_AsLong(line) : 0;
    PyErr_Clear();
    void *stub = NULL; /* Python may have run it meanwhile */
    if (_PyCode_GetExtra(code, state.extra, &stub) != 0 || stub == NULL) {
        stub = function_text != NULL && file_text != NULL
                   ? stub_take(function_text, line_number, file_text)
                   : &no_stub;
        (void)_PyCode_SetExtra(code, state.extra, stub); /* refused: it runs by this stub once */
    }
    PyErr_Clear();
    Py_DecRef(function);
    Py_DecRef(file);
    Py_DecRef(line);
    errno = saved;
    return stub;
}

/* --- evaluation --- */

/* Begin of each thread's stack, not a thread-local variable: that asks for glibc's loader by name,
 * which musl lacks. */
static pthread_key_t stack_key;

static uintptr_t stack_find(void) {
    pthread_attr_t found;
    void *begin = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &found) == 0) {
        pthread_attr_getstack(&found, &begin, &bytes);
        pthread_attr_destroy(&found);
    }
    /* Of the main thread's musl tells only what is mapped so far. The kernel put 16 bytes above it.
     */
    uintptr_t top = (uintptr_t)begin + bytes, random = getauxval(AT_RANDOM);
    struct rlimit limit;
    if (top > random - ARGUMENTS_MOST && top < random + ARGUMENTS_MOST &&
        getrlimit(RLIMIT_STACK, &limit) == 0) {
        size_t most = limit.rlim_cur < MAIN_STACK_MOST ? (size_t)limit.rlim_cur : MAIN_STACK_MOST;
        bytes = bytes > most ? bytes : most;
    }
    /* A small stack keeps a quarter. */
    uintptr_t unused = bytes / 4 < STACK_RESERVE ? STACK_RESERVE - bytes / 4 : 0;
    uintptr_t stack = top > bytes + STACK_RESERVE ? top - bytes - unused : 1;
    pthread_setspecific(stack_key, (void *)stack); /* refused: found again next time */
    return stack;
}

static bool is_below_reserve(uintptr_t stack) {
    return (uintptr_t)__builtin_frame_address(0) - stack < STACK_RESERVE;
}

/* While another evaluates frames, each call of a Python function needs C's stack, in 3.11 too,
 * where programs may have set a recursion limit far above what it holds. The main thread's may have
 * been raised since it was found. */
static bool is_stack_low(void) {
    uintptr_t stack = (uintptr_t)pthread_getspecific(stack_key);
    return (stack == 0 || is_below_reserve(stack)) && is_below_reserve(stack_find());
}

/* NULL: it cannot be called. */
static __attribute__((noinline)) stub_t stub_of(void *frame, int is_throwing) {
    void *code = ((void **)frame)[state.code_word], *stub = NULL;
    if (is_stack_low()) {
        PyErr_SetString(PyExc_RecursionError,
                        "maximum depth of the C stack exceeded while functions are named (hakmem)");
        return NULL;
    }
    if (_PyCode_GetExtra(code, state.extra, &stub) != 0) {
        stub = &no_stub;
        if (!is_throwing) {
            PyErr_Clear();
        }
    } else if (stub == NULL) { /* an error that is being thrown stays */
        stub = is_throwing ? &no_stub : stub_make(code);
    }
    return stub == &no_stub ? (stub_t)(void (*)(void))state.before : (stub_t)(uintptr_t)stub;
}

/* Not in the stack itself: its last act is a jump. */
static void *evaluate(void *thread, void *frame, int is_throwing) {
    stub_t stub = stub_of(frame, is_throwing);
    return stub != NULL ? stub(thread, frame, is_throwing, state.before) : NULL;
}

/* --- start --- */

static void *probe(void *thread, void *frame, int is_throwing) {
    unsigned found = 0;
    for (unsigned word = 0; word < FRAME_WORDS; word++) {
        found |= (unsigned)(((void **)frame)[word] == state.probed) << word;
    }
    state.found &= found;
    state.was_run = true;
    return state.before(thread, frame, is_throwing);
}

/* Whether one word of the frame of a function, which returns nothing, may be its code object. */
static bool self_test(void *interpreter, void *function, void *code, evaluate_t evaluates) {
    state.probed = code;
    state.was_run = false;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluates);
    void *result = PyObject_CallObject(function, NULL);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, state.before);
    if (result == NULL) {
        PyErr_Clear();
    }
    Py_DecRef(result);
    return result != NULL && state.was_run;
}

static bool has_all_of_python(void) {
    return PyInterpreterState_Get != NULL && PyInterpreterState_Main != NULL &&
           _PyInterpreterState_GetEvalFrameFunc != NULL &&
           _PyInterpreterState_SetEvalFrameFunc != NULL && _PyEval_RequestCodeExtraIndex != NULL &&
           _PyCode_GetExtra != NULL && _PyCode_SetExtra != NULL && PyObject_CallObject != NULL &&
           PyObject_GetAttrString != NULL && PyUnicode_AsUTF8 != NULL && PyLong_AsLong != NULL &&
           PyErr_SetString != NULL && PyErr_Clear != NULL && Py_DecRef != NULL &&
           &PyExc_RecursionError != NULL;
}

/* Takes two functions without parameters, and their code objects. Whether functions that are called
 * from now on are named. Only those of the main interpreter: others have indices of extras of their
 * own. */
SHOWN int hak_python_start(void *one, void *one_code, void *other, void *other_code) {
    if (is_started() || !has_all_of_python()) {
        return 0;
    }
    void *interpreter = PyInterpreterState_Get();
    if (interpreter != PyInterpreterState_Main()) {
        return 0;
    }
    state.before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    state.found = (1u << FRAME_WORDS) - 1;
    bool is_known = self_test(interpreter, one, one_code, probe) &&
                    self_test(interpreter, other, other_code, probe) &&
                    __builtin_popcount(state.found) == 1;
    if (is_known && pthread_key_create(&stack_key, NULL) == 0) {
        state.code_word = (unsigned)__builtin_ctz(state.found);
        state.extra = _PyEval_RequestCodeExtraIndex(NULL);
        if (state.extra >= 0 && arena_make()) {
            map_make();
        }
        if (state.file < 0) {
            pthread_key_delete(stack_key);
        }
    }
    if (state.file < 0) {
        state.before = NULL;
        return 0;
    }
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    return 1;
}
