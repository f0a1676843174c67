/* SPDX-License-Identifier: MIT
 *
 * Does every function of the family answer extreme arguments as the C library's own does: block or
 * NULL, errno, result code, alignment, the old block when it fails? The program runs itself without
 * the preload; each answer that differs must have a reason ("what differs on purpose").
 */
#include "family.h"

typedef enum function {
    MALLOC,
    CALLOC,
    REALLOC_NULL,
    REALLOC,
    REALLOCARRAY_NULL,
    REALLOCARRAY,
    VALLOC,
    PVALLOC,
    ALIGNED_ALLOC,
    MEMALIGN,
    POSIX_MEMALIGN,
    FUNCTIONS,
} function_t;

static const char *const names[FUNCTIONS] = {"malloc",
                                             "calloc",
                                             "realloc of NULL",
                                             "realloc of a block",
                                             "reallocarray of NULL",
                                             "reallocarray of a block",
                                             "valloc",
                                             "pvalloc",
                                             "aligned_alloc",
                                             "memalign",
                                             "posix_memalign"};

/* `first` is the alignment or the count, where there is one. */
typedef struct call {
    function_t function;
    size_t first, size;
} call_t;

typedef struct answer {
    int errno_after, code;
    bool is_block, is_aligned, is_old_kept;
} answer_t;

enum {
    MOST_CALLS = 8192,
    OLD_BYTES = 100,
    ERRNO_BEFORE = 4711,
    GREAT_LOG2 = 30, /* more may be refused by the kernel, by limits of memory and of overcommit */
    SPACE_LOG2 = 47, /* more than a process's addresses */
};

static call_t calls[MOST_CALLS];
static answer_t ours[MOST_CALLS];
static answer_t theirs[MOST_CALLS + 1]; /* one byte at least behind them, for a final zero */
static size_t call_count;
static char untouched; /* its address is what an output parameter must keep */
static char *program;

static const size_t sizes[] = {0,
                               1,
                               100,
                               70000,
                               (size_t)1 << 47,
                               (size_t)1 << 62,
                               PTRDIFF_MAX - 65536,
                               PTRDIFF_MAX - 4096,
                               PTRDIFF_MAX - 1,
                               PTRDIFF_MAX,
                               (size_t)PTRDIFF_MAX + 1,
                               SIZE_MAX - 65536,
                               SIZE_MAX - 4096,
                               SIZE_MAX - 15,
                               SIZE_MAX - 1,
                               SIZE_MAX};
static const size_t counts[] = {0, 1, 2, 3, (size_t)1 << 32, PTRDIFF_MAX, SIZE_MAX / 3, SIZE_MAX};
static const size_t odd_alignments[] = {0,
                                        3,
                                        5,
                                        24,
                                        100,
                                        4097,
                                        (1 << 30) + 1,
                                        ((size_t)1 << 62) - 1,
                                        ((size_t)1 << 62) + 1,
                                        ((size_t)1 << 63) - 1,
                                        ((size_t)1 << 63) + 1,
                                        SIZE_MAX - 1,
                                        SIZE_MAX};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_pow2(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

static void plan_call(function_t function, size_t first, size_t size) {
    EXPECT(call_count < MOST_CALLS);
    calls[call_count++] = (call_t){function, first, size};
}

static void plan_size(size_t size) {
    static const function_t single[] = {MALLOC, REALLOC_NULL, REALLOC, VALLOC, PVALLOC};
    static const function_t counted[] = {CALLOC, REALLOCARRAY_NULL, REALLOCARRAY};
    for (size_t i = 0; i < COUNT_OF(single); ++i) {
        plan_call(single[i], 0, size);
    }
    for (size_t i = 0; i < COUNT_OF(counted) * COUNT_OF(counts); ++i) {
        plan_call(counted[i / COUNT_OF(counts)], counts[i % COUNT_OF(counts)], size);
    }
    for (function_t function = ALIGNED_ALLOC; function <= POSIX_MEMALIGN; ++function) {
        for (unsigned log2 = 0; log2 < 64; ++log2) {
            plan_call(function, (size_t)1 << log2, size);
        }
        for (size_t i = 0; i < COUNT_OF(odd_alignments); ++i) {
            plan_call(function, odd_alignments[i], size);
        }
    }
}

static size_t alignment_of(const call_t *call) {
    switch (call->function) {
    case ALIGNED_ALLOC:
    case MEMALIGN:
    case POSIX_MEMALIGN:
        return is_pow2(call->first) ? call->first : 1;
    case VALLOC:
    case PVALLOC:
        return (size_t)sysconf(_SC_PAGESIZE);
    default:
        return call->size < 16 ? 1 : 16;
    }
}

static void *call_it(const call_t *call, void *old, answer_t *answer) {
    void *block = &untouched;
    switch (call->function) {
    case MALLOC:
        return family.malloc(call->size);
    case CALLOC:
        return family.calloc(call->first, call->size);
    case REALLOC_NULL:
    case REALLOC:
        return family.realloc(old, call->size);
    case REALLOCARRAY_NULL:
    case REALLOCARRAY:
        return family.reallocarray(old, call->first, call->size);
    case VALLOC:
        return family.valloc(call->size);
    case PVALLOC:
        return family.pvalloc(call->size);
    case ALIGNED_ALLOC:
        return family.aligned_alloc(call->first, call->size);
    case MEMALIGN:
        return family.memalign(call->first, call->size);
    default:
        answer->code = family.posix_memalign(&block, call->first, call->size);
        EXPECT((block == &untouched) == (answer->code != 0));
        return answer->code == 0 ? block : NULL;
    }
}

/* Which of the two frees the old block of a call that gives NULL: neither errno nor size tells. */
static bool frees_old(const call_t *call) {
    return call->size == 0 || (call->function == REALLOCARRAY && call->first == 0);
}

static void answer_call(const call_t *call, answer_t *answer) {
    bool has_old = call->function == REALLOC || call->function == REALLOCARRAY;
    unsigned char *old = has_old ? family.malloc(OLD_BYTES) : NULL;
    EXPECT(!has_old || old != NULL);
    if (has_old) {
        memset(old, 0x5a, OLD_BYTES);
    }
    errno = ERRNO_BEFORE;
    void *block = call_it(call, old, answer);
    answer->errno_after = errno;
    answer->is_block = block != NULL;
    answer->is_aligned = (uintptr_t)block % alignment_of(call) == 0;
    answer->is_old_kept = has_old && block == NULL && !frees_old(call);
    if (answer->is_old_kept) {
        for (size_t i = 0; i < OLD_BYTES; ++i) {
            EXPECT_EQ(old[i], 0x5a);
        }
        family.free(old);
    }
    family.free(block);
}

static void answer_calls(answer_t *answers) {
    for (size_t i = 0; i < call_count; ++i) {
        answer_call(&calls[i], &answers[i]);
    }
}

/* --- the C library's -------------------------------------------------------------------------- */

/* The program once more, without the preload; its standard output. */
static int start_without_preload(void) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", program, "answers", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

static int write_answers(void) {
    answer_calls(ours);
    bool is_written = fwrite(ours, sizeof *ours, call_count, stdout) == call_count;
    return !is_written || fflush(stdout) != 0 || expect_is_hakmem() ? 1 : expect_status();
}

/* --- what differs on purpose ------------------------------------------------------------------ */

static bool is_null_with(const answer_t *answer, int error) {
    return !answer->is_block && answer->errno_after == error;
}

/* C17 7.22.3.1 with DR 460, and C23: an alignment that is not valid fails. glibc before 2.38 has
 * memalign under this name, which rounds up. */
static bool is_invalid_for_c(const call_t *call, const answer_t *our) {
    return call->function == ALIGNED_ALLOC && !is_pow2(call->first) && is_null_with(our, EINVAL);
}

/* POSIX: the result says what went wrong, and no errors are defined for errno; ours keeps it. */
static bool is_errno_of_posix_memalign(const call_t *call, const answer_t *our,
                                       const answer_t *their) {
    return call->function == POSIX_MEMALIGN && our->code == their->code &&
           our->errno_after == ERRNO_BEFORE;
}

/* Much address space: how much the kernel gives a process, and how much an alignment takes for a
 * time, is not what is compared. Whoever fails says so. */
static bool is_up_to_the_kernel(const call_t *call, const answer_t *our, const answer_t *their) {
    size_t alignment = alignment_of(call);
    bool is_great = alignment >> GREAT_LOG2 != 0 && alignment >> SPACE_LOG2 == 0;
    const answer_t *failed = our->is_block ? their : our;
    bool has_said = failed->code == ENOMEM || is_null_with(failed, ENOMEM);
    return is_great && our->is_block != their->is_block && has_said;
}

static bool has_reason(const call_t *call, const answer_t *our, const answer_t *their) {
    return is_invalid_for_c(call, our) || is_errno_of_posix_memalign(call, our, their) ||
           is_up_to_the_kernel(call, our, their);
}

static void say_answer(const char *whose, const answer_t *answer) {
    expect_say("  %s: %s%s%s, errno %d, result %d\n", whose, answer->is_block ? "block" : "NULL",
               answer->is_aligned ? "" : ", not aligned", answer->is_old_kept ? ", old kept" : "",
               answer->errno_after, answer->code);
}

static bool is_same(const answer_t *our, const answer_t *their) {
    return our->errno_after == their->errno_after && our->code == their->code &&
           our->is_block == their->is_block && our->is_aligned == their->is_aligned &&
           our->is_old_kept == their->is_old_kept;
}

static void family_extreme_arguments_are_answered_as_the_c_library_does(void) {
    size_t different = 0;
    int from = start_without_preload();
    answer_calls(ours);
    EXPECT_EQ(expect_read_all(from, (char *)theirs, sizeof theirs), call_count * sizeof *theirs);
    for (size_t i = 0; i < call_count; ++i) {
        EXPECT(ours[i].is_aligned);
        if (!is_same(&ours[i], &theirs[i]) && !has_reason(&calls[i], &ours[i], &theirs[i])) {
            ++different;
            expect_say("%s(%#zx, %#zx)\n", names[calls[i].function], calls[i].first, calls[i].size);
            say_answer("ours", &ours[i]);
            say_answer("the C library's", &theirs[i]);
        }
    }
    expect_say("%zu calls\n", call_count);
    EXPECT_EQ(different, 0);
}

int main(int argc, char **argv) {
    family_load();
    program = argv[0];
    for (size_t i = 0; i < COUNT_OF(sizes); ++i) {
        plan_size(sizes[i]);
    }
    if (argc > 1) {
        return write_answers();
    }
    expect_watchdog();
    RUN(family_extreme_arguments_are_answered_as_the_c_library_does);
    return expect_status();
}
