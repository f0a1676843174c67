/* SPDX-License-Identifier: MIT
 *
 * A handler of SIGSEGV and SIGBUS before the program's, and one of a signal that the user chooses.
 * Installed by plain system calls: the C library may not be ready, or be wrapped by another
 * library. A handler that the program installs later replaces ours. */
#include "base/counters.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* The kernel's structure, on both architectures. */
typedef struct trap_action {
    union {
        void (*plain)(int);
        void (*info)(int, siginfo_t *, void *);
    } handler;
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} trap_action_t;

enum { TRAP_RESTORER = 0x04000000 };

static hak_os_trap_handler_t *trap_handler; /* [init] before the first signal */
static trap_action_t trap_before[2];        /* [init] the program's: SIGSEGV, SIGBUS */

#if defined(__x86_64__)
/* The kernel needs the function that a handler returns to; unwinders recognise it by these bytes,
 * and read one byte before it, where no function may be. */
__asm__(".text\n"
        ".p2align 4\n"
        "nop\n"
        ".type hak_os_trap_return, @function\n"
        "hak_os_trap_return:\n"
        "movq $15, %rax\n"
        "syscall\n"
        ".size hak_os_trap_return, . - hak_os_trap_return\n");
extern void hak_os_trap_return(void) HAK_HIDDEN;
#endif

static trap_action_t *trap_before_of(int signal) {
    return &trap_before[signal == SIGBUS];
}

static bool trap_set(int signal, const trap_action_t *action, trap_action_t *before) {
    return hak_syscall(SYS_rt_sigaction, signal, action, before, sizeof action->mask) == 0;
}

/* Continues as the kernel would have: a fault repeats on return; a sent signal is sent again. */
static void trap_pass_on(int signal, siginfo_t *info, void *context) {
    trap_action_t *before = trap_before_of(signal);
    /* nor does a memory error that no access met */
    bool is_sent = info->si_code <= 0 || (signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
    if (before->handler.plain == SIG_IGN && is_sent) {
        return;
    }
    if (before->handler.plain == SIG_DFL || before->handler.plain == SIG_IGN) {
        (void)trap_set(signal, before, NULL);
        if (is_sent) {
            long process = hak_syscall(SYS_getpid, 0);
            hak_syscall(SYS_rt_tgsigqueueinfo, process, hak_os_thread_id(), signal, info);
        }
        return;
    }
    if ((before->flags & SA_RESETHAND) != 0) {
        trap_action_t none = {.handler.plain = SIG_DFL};
        (void)trap_set(signal, &none, NULL);
    }
    if ((before->flags & SA_SIGINFO) != 0) {
        before->handler.info(signal, info, context);
    } else {
        before->handler.plain(signal);
    }
}

#if defined(__x86_64__)
static hak_os_trap_t trap_read(const siginfo_t *info, const ucontext_t *context) {
    const greg_t *registers = context->uc_mcontext.gregs;
    return (hak_os_trap_t){
        .address = info->si_addr,
        .access = (registers[REG_ERR] & 2) != 0 ? "write" : "read",
        .stack = (const void *)registers[REG_RSP],
        .frame = (const void *)registers[REG_RBP],
        .code = (uintptr_t)registers[REG_RIP],
    };
}
#else
enum { TRAP_ESR_MAGIC = 0x45535201, TRAP_ESR_WRITE = 1 << 6, TRAP_CODE_TAG = 9 };

/* Finds the record of the syndrome register in a list that ends in zeros. */
static const char *trap_access(const ucontext_t *context) {
    const unsigned char *at = (const unsigned char *)&context->uc_mcontext.__reserved;
    const unsigned char *end = at + sizeof context->uc_mcontext.__reserved;
    while (at + 16 <= end) {
        const uint32_t *head = (const uint32_t *)(const void *)at;
        if (head[0] == TRAP_ESR_MAGIC) {
            return (*(const uint64_t *)(const void *)(at + 8) & TRAP_ESR_WRITE) != 0 ? "write"
                                                                                     : "read";
        }
        if (head[0] == 0 || head[1] < 8) {
            break;
        }
        at += head[1];
    }
    return "access";
}

static hak_os_trap_t trap_read(const siginfo_t *info, const ucontext_t *context) {
    return (hak_os_trap_t){
        .address = info->si_addr,
        .access = trap_access(context),
        .stack = (const void *)context->uc_mcontext.sp,
        .frame = (const void *)context->uc_mcontext.regs[29],
        .code = (uintptr_t)context->uc_mcontext.pc,
        .link = (uintptr_t)context->uc_mcontext.regs[30],
        .is_tag = info->si_signo == SIGSEGV && info->si_code == TRAP_CODE_TAG,
    };
}
#endif

static void trap_enter(int signal, siginfo_t *info, void *context) {
    if (info->si_code > 0) {
        hak_os_trap_t trap = trap_read(info, context);
        if (trap_handler(&trap)) {
            (void)trap_set(signal, trap_before_of(signal), NULL);
            return;
        }
    }
    trap_pass_on(signal, info, context);
}

/* Keeps mask and flags of the previous handler, which ours may call. */
HAK_AT_START static bool trap_install_for(int signal) {
    trap_action_t before = {0};
    if (!trap_set(signal, NULL, &before)) {
        return false;
    }
    if (before.handler.info == trap_enter) {
        return true; /* already ours; the other signal failed last time */
    }
    *trap_before_of(signal) = before;
    bool is_theirs = before.handler.plain != SIG_DFL && before.handler.plain != SIG_IGN;
    unsigned long kept =
        SA_NODEFER | SA_RESTART | SA_ONSTACK; /* a large handler may need its stack */
    trap_action_t ours = {
        .handler.info = trap_enter,
        .flags = (before.flags & kept) | SA_SIGINFO | (is_theirs ? 0 : SA_ONSTACK),
        .mask = before.mask,
    };
#if defined(__x86_64__)
    ours.flags |= TRAP_RESTORER;
    ours.restorer = hak_os_trap_return;
#endif
    return trap_set(signal, &ours, NULL);
}

HAK_AT_START bool hak_os_trap_install(hak_os_trap_handler_t *handler) {
    trap_handler = handler;
    bool is_done = !(HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_SIGNAL)) &&
                   trap_install_for(SIGSEGV) && trap_install_for(SIGBUS);
    if (!is_done) {
        hak_count(os_failure);
    }
    return is_done;
}

/* --- a signal of the user's choice ------------------------------------------------------------ */

static hak_os_signal_handler_t *signal_handler; /* [init] before the first signal */

static void signal_enter(int signal) {
    (void)signal;
    signal_handler();
}

bool hak_os_signal_install(int signal, hak_os_signal_handler_t *handler) {
    trap_action_t before = {0};
    trap_action_t ours = {.handler.plain = signal_enter, .flags = SA_RESTART | SA_ONSTACK};
#if defined(__x86_64__)
    ours.flags |= TRAP_RESTORER;
    ours.restorer = hak_os_trap_return;
#endif
    signal_handler = handler;
    bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
                    signal == SIGTRAP || signal == SIGABRT;
    return !is_fault && !(HAK_FAULT && hak_os_fault_hit(HAK_OS_CALL_SIGNAL)) &&
           trap_set(signal, NULL, &before) && before.handler.plain == SIG_DFL &&
           trap_set(signal, &ours, NULL);
}
