/* SPDX-License-Identifier: MIT
 *
 * A trap handler in front of what the program has: each case is a child of its own, with the
 * disposition there was before, and ends as it would without us. */
#include "unit/os.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { EXIT_INFO = 41, EXIT_PLAIN = 42, EXIT_ALIVE = 43, EXIT_WRONG = 44 };

static char *ours, *others;        /* OS pages that nobody may touch */
static volatile unsigned *reports; /* shared with the children: how often a trap was ours */
static uintptr_t toucher;          /* the frame of who makes the access */
static volatile unsigned handled;  /* by the program's handler */

static bool is_ours(const hak_os_trap_t *trap) {
    const char *at = trap->address;
    bool is_inside = at >= ours && at < ours + hak_os_page_bytes();
    bool is_write = strcmp(trap->access, "write") == 0 || strcmp(trap->access, "access") == 0;
    bool is_on_stack = toucher - (uintptr_t)trap->stack < 4096;
    *reports += is_inside && is_write && trap->code != 0 && is_on_stack;
    return is_inside;
}

static void on_info(int signal, siginfo_t *info, void *context) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    bool is_right = (signal == SIGSEGV || signal == SIGBUS) && context != NULL &&
                    ((char *)info->si_addr == others + 5 || (char *)info->si_addr == ours + 5) &&
                    sigismember(&blocked, SIGUSR2);
    _exit(is_right ? EXIT_INFO : EXIT_WRONG);
}

static void on_plain(int signal) {
    _exit(signal == SIGSEGV ? EXIT_PLAIN : EXIT_WRONG);
}

/* Lets the access go on; a second one would find no handler (SA_RESETHAND). */
static void on_once(int signal) {
    handled += signal == SIGSEGV;
    mprotect(others, hak_os_page_bytes(), PROT_READ | PROT_WRITE);
}

/* What the program has. */
static const struct sigaction info = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO},
                              plain = {.sa_handler = on_plain},
                              once = {.sa_handler = on_once, .sa_flags = (int)SA_RESETHAND},
                              ignored = {.sa_handler = SIG_IGN}, nothing = {.sa_handler = SIG_DFL};

static void touch_ours(void) {
    toucher = (uintptr_t)HAK_FRAME();
    *(volatile char *)(ours + 5) = 1;
}

static void touch_others(void) {
    *(volatile char *)(others + 5) = 1;
}

static void touch_others_then_again(void) {
    touch_others();
    mprotect(others, hak_os_page_bytes(), PROT_NONE);
    if (handled == 1) {
        touch_others();
    }
}

static void send(void) {
    kill(getpid(), SIGSEGV);
}

typedef struct trap_case {
    const char *name;
    const struct sigaction *before;
    void (*act)(void);
    int signal, status; /* how it ends */
    unsigned reports;
} trap_case_t;

static const trap_case_t cases[] = {
    {"ours", &nothing, touch_ours, SIGSEGV, 0, 1},
    {"ours, handled", &plain, touch_ours, 0, EXIT_PLAIN, 1},
    {"ours, handled with information", &info, touch_ours, 0, EXIT_INFO, 1},
    {"ours, ignored", &ignored, touch_ours, SIGSEGV, 0, 1},
    {"other", &nothing, touch_others, SIGSEGV, 0, 0},
    {"other, handled", &plain, touch_others, 0, EXIT_PLAIN, 0},
    {"other, handled with information", &info, touch_others, 0, EXIT_INFO, 0},
    {"other, handled once", &once, touch_others_then_again, SIGSEGV, 0, 0},
    {"other, ignored", &ignored, touch_others, SIGSEGV, 0, 0},
    {"sent", &nothing, send, SIGSEGV, 0, 0},
    {"sent, handled", &plain, send, 0, EXIT_PLAIN, 0},
    {"sent, ignored", &ignored, send, 0, EXIT_ALIVE, 0}};

static void run(const trap_case_t *c) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct sigaction before = *c->before; /* in place of what a sanitizer may have set */
    sigaddset(&before.sa_mask, SIGUSR2);
    sigaction(SIGSEGV, &before, NULL);
    if (!hak_os_trap_install(is_ours)) {
        _exit(EXIT_WRONG);
    }
    c->act();
    _exit(EXIT_ALIVE);
}

UNIT_TEST(trap_ends_as_it_would_without_us) {
    for (unsigned i = 0; i < UNIT_COUNT(cases); i++) {
        const trap_case_t *c = &cases[i];
        int status = -1;
        *reports = 0;
        pid_t child = fork();
        if (child == 0) {
            run(c);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        UNIT_EXPECT(signal == c->signal, "%s: signal %d", c->name, signal);
        UNIT_EXPECT(signal != 0 || WEXITSTATUS(status) == c->status, "%s: status %d", c->name,
                    WEXITSTATUS(status));
        UNIT_EXPECT(*reports == c->reports, "%s: %u reports", c->name, *reports);
    }
}

UNIT_TEST(install_that_fails_is_told_and_can_be_tried_again) {
    hak_os_fault_plan(HAK_OS_CALL_SIGNAL, 0, 1);
    assert_false(hak_os_trap_install(is_ours));
    hak_os_fault_clear();
    assert_true(hak_os_trap_install(is_ours));
    assert_true(hak_os_trap_install(is_ours));
}

UNIT_AROUND(trap_begin) {
    hak_os_init();
    ours = hak_os_reserve(hak_os_page_bytes(), hak_os_page_bytes());
    others = hak_os_reserve(hak_os_page_bytes(), hak_os_page_bytes());
    reports =
        mmap(NULL, hak_os_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return ours == NULL || others == NULL || reports == MAP_FAILED;
}

UNIT_GROUP(trap_begin)
