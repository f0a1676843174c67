/* SPDX-License-Identifier: MIT
 *
 * After warm-up, does a load of any size mix run without one system call? A seccomp filter lets
 * nothing but write and exit through while the operations run; any other call is named and fails.
 * Arguments: size mix (small|mixed|medium|wide|uniform|aligned|grow), operations (default
 * 10 000 000), slots (default 300), seed of the measured part (default: that of the warm-up). The
 * warm-up uses an eighth more slots: where blocks come to lie depends on addresses, so the same
 * load may need one more stretch of memory than it did before. The clock stands still: on a slow
 * machine memory would be given back that a fast one touches in time.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "api/family.h"
#include "api/still_clock.h"

enum { SLOTS_MAX = 4096, WARM_UP_SEED = 20 };

typedef struct mix {
    const char *name;
    size_t smallest;
    size_t largest;
    bool is_log_uniform;
    bool is_aligned;
    bool is_realloc;
} mix_t;

static const mix_t mixes[] = {
    {"small", 1, 64, false, false, false},
    {"mixed", 16, 1039, false, false, false},
    {"medium", 1 << 10, 64 << 10, false, false, false},
    {"wide", 1, 1 << 20, true, false, false},
    {"uniform", 1, 1 << 20, false, false, false},
    {"aligned", 1, 64 << 10, true, true, false},
    {"grow", 1, 1 << 20, true, false, true},
};

static const mix_t *mix;
static size_t slot_count;
static unsigned char *slots[SLOTS_MAX];

static size_t draw_size(uint64_t *state) {
    uint64_t draw = expect_random(state);
    if (!mix->is_log_uniform) {
        return mix->smallest + draw % (mix->largest - mix->smallest + 1);
    }
    size_t octaves = 0;
    while (mix->smallest << octaves < mix->largest) {
        ++octaves;
    }
    size_t floor = mix->smallest << (draw >> 40) % octaves;
    return floor + draw % floor;
}

/* One replacement of a random slot is two operations: a free and a malloc. */
static void replace(uint64_t *state) {
    size_t slot = expect_random(state) % slot_count;
    size_t size = draw_size(state);
    if (mix->is_realloc) {
        slots[slot] = family.realloc(slots[slot], size);
    } else {
        family.free(slots[slot]);
        slots[slot] =
            mix->is_aligned ? family.memalign((size_t)32 << size % 8, size) : family.malloc(size);
    }
    EXPECT(slots[slot] != NULL);
    slots[slot][0] = slots[slot][size - 1] = 1;
}

static void run_load(size_t operation_count, uint64_t seed) {
    uint64_t state = seed;
    for (size_t i = 0; i < operation_count / 2; ++i) {
        replace(&state);
    }
}

static void report_call(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)context;
    expect_say("FAILED: system call %d in the steady state (see asm/unistd_64.h)\n",
               info->si_syscall);
    _exit(1);
}

/* Any call but write and exit_group raises SIGSYS from here on. */
static bool forbid_system_calls(void) {
    struct sigaction action = {.sa_sigaction = report_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "mixed";
    size_t operation_count = expect_arg(argc, argv, 2, 10000000);
    slot_count = expect_arg(argc, argv, 3, 300);
    size_t seed = expect_arg(argc, argv, 4, WARM_UP_SEED);
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; ++i) {
        mix = strcmp(mixes[i].name, name) == 0 ? &mixes[i] : mix;
    }
    if (mix == NULL || slot_count > SLOTS_MAX / 9 * 8) {
        expect_skip("no such size mix, or too many slots");
    }
    family_load();
    size_t measured_count = slot_count;
    slot_count += slot_count / 8;
    run_load(operation_count, WARM_UP_SEED);
    while (slot_count > measured_count) {
        family.free(slots[--slot_count]);
    }
    if (!forbid_system_calls()) {
        expect_skip("this kernel has no seccomp filters");
    }
    run_load(operation_count, seed);
    expect_say("ok     steady_state_of_%s_sizes_makes_no_system_call\n", name);
    _exit(0);
}
