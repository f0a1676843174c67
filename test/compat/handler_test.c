/* SPDX-License-Identifier: MIT
 *
 * A signal handler that interrupts malloc and free in any instruction may ask for each name of
 * mallctl, and change each setting that does not empty the thread's cache: it gets an error number
 * at worst, waits for nothing that the interrupted code holds, and no block is lost. */
#include <malloc.h>
#include <ucontext.h>

#include "compat/mallctl.h"
#include "double/single_step.h"

#if defined(__x86_64__)

enum { TURNS = 24, EACH_STEP = 13, STEPS_A_CALL = 4000, SAMPLE_LOG2 = 12 };

static const char *const names[] = {
#define HAK_JE_NUMBER(name, type, value) name,
#define HAK_JE_WORD(name, text) name,
#define HAK_JE_FIGURE(name, type, field) name,
#define HAK_JE_AT_START(name, type, field) name,
#define HAK_JE_SETTING(name, type, value) name,
#define HAK_JE_VALUE(name, type, access, id) name,
#include "compat/names.def"
};
enum { NAMES = sizeof names / sizeof names[0] };

static bool on = true, off = false;
static unsigned none;
static uint64_t epoch = 1;
static ssize_t never = -1, later = 5000;
static size_t sample_log2 = SAMPLE_LOG2;
static const char *prefix = "prof";
static const struct change {
    const char *name;
    void *value;
    size_t bytes;
} changes[] = {
    {"epoch", &epoch, sizeof epoch},
    {"arena.0.decay", NULL, 0},
    {"background_thread", &off, sizeof off},
    {"thread.arena", &none, sizeof none},
    {"thread.tcache.enabled", &on, sizeof on},
    {"arena.0.dirty_decay_ms", &never, sizeof never},
    {"arenas.dirty_decay_ms", &later, sizeof later},
    {"arena.0.reset", NULL, 0},
    {"prof.active", &on, sizeof on},
    {"prof.reset", &sample_log2, sizeof sample_log2},
    {"prof.prefix", &prefix, sizeof prefix},
    {"prof.active", &off, sizeof off},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static volatile bool is_stepping;
static volatile unsigned steps, steps_left, asked, refused;

static bool is_number_of_error(int error) {
    return error == 0 || error == EAGAIN || error == EFAULT || error == EINVAL || error == EPERM;
}

/* The next name is read, and the next setting changed. */
static void ask_next(void) {
    char name[64];
    uint64_t value;
    size_t length = sizeof value, at = 0;
    const char *text = names[asked % NAMES];
    for (; text[at] != '\0'; at++) {
        name[at] = text[at] == '#' ? '0' : text[at];
    }
    name[at] = '\0';
    const struct change *change = &changes[asked % CHANGES];
    bool acts = strcmp(name, "prof.dump") == 0; /* writes files */
    int read = acts ? 0 : mallctl(name, &value, &length, NULL, 0);
    int made = mallctl(change->name, NULL, NULL, change->value, change->bytes);
    if (!is_number_of_error(read) || !is_number_of_error(made)) {
        expect_say("%s: %d, %s: %d\n", name, read, change->name, made);
        _exit(3);
    }
    refused += made == EAGAIN;
    asked++;
}

static void step(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    if (is_stepping && ++steps % EACH_STEP == 0) {
        ask_next();
    }
    if (is_stepping && --steps_left == 0) { /* a stack walk is many thousands */
        is_stepping = false;
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~STEP_FLAG;
    }
}

static inline __attribute__((always_inline)) void stepping(bool is_going) {
    steps_left = STEPS_A_CALL;
    steps_switch(is_going);
    is_stepping = is_going;
}

static void every_name_answers_in_any_instruction(void) {
    static const size_t sizes[] = {24, 300, 9000, 60000, 300000, 3 << 20};
    static unsigned char *block[TURNS];
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    size_t turns = expect_cases(TURNS);
    EXPECT_EQ(sigaction(SIGTRAP, &action, NULL), 0);
    for (size_t i = 0; i < turns; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
        stepping(true);
        block[i] = malloc(size);
        stepping(false);
        EXPECT(block[i] != NULL);
        memset(block[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < turns; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
        EXPECT(block[i][0] == i + 1 && block[i][size - 1] == i + 1);
        stepping(true);
        free(block[i]);
        stepping(false);
    }
    EXPECT(asked > NAMES && refused > 0 && refused < asked);
}

int main(void) {
    expect_watchdog();
    next_epoch();
    (void)mallctl("prof.active", NULL, NULL, &on, sizeof on); /* loads the observer, once */
    (void)mallctl("prof.active", NULL, NULL, &off, sizeof off);
    size_t before = read_size("stats.allocated");
    RUN(every_name_answers_in_any_instruction);
    EXPECT_EQ(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    next_epoch();
    EXPECT(read_size("stats.allocated") <= before + 8192); /* of the thread and of signals */
    expect_say("%u questions, %u refused\n", asked, refused);
    return expect_status();
}

#else

int main(void) {
    expect_skip("no single steps");
}

#endif
