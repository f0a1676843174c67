/* SPDX-License-Identifier: MIT
 *
 * Runs a program and stops its threads like a debugger, at random: any number of them, for up to 20
 * ms, wherever they are, be it in a lock. After COUNT stops, of several threads at a time among
 * them, the program gets SIGTERM, and must come to its end; its status is passed on. Usage:
 * debugger COUNT PROGRAM ARGS... */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, SKIP = 77 };

static uint64_t random_state = 1;
static pid_t program;
static int status;      /* of the program, once it ended */
static int is_over;     /* it did */
static int is_told;     /* to end */
static size_t stops;    /* of threads */
static size_t rounds;   /* in which at least one was stopped */
static size_t together; /* most threads at a time */

static unsigned draw_below(unsigned limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

static void rest(unsigned us) {
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

static size_t list_threads(pid_t *thread) {
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)program);
    DIR *folder = opendir(path);
    for (struct dirent *one; folder != NULL && (one = readdir(folder)) != NULL;) {
        int number = atoi(one->d_name);
        if (number > 0 && count < THREADS_MAX) {
            thread[count++] = number;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* A thread that ends while it is traced waits until its tracer knows. true: it is stopped. */
static int wait_for(pid_t thread, int *found) {
    if (waitpid(thread, found, __WALL) != thread) {
        return 0;
    }
    if (!WIFSTOPPED(*found) && thread == program) {
        is_over = 1;
        status = *found;
    }
    return WIFSTOPPED(*found);
}

/* The signal to pass on to a stopped thread, 0 for none; -1: it has ended instead. */
static int stop(pid_t thread) {
    int found = 0;
    if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) {
        if (errno == EPERM && thread == program && kill(program, 0) == 0 && stops == 0) {
            printf("skip: this system forbids ptrace\n");
            kill(program, SIGKILL);
            exit(SKIP);
        }
        return -1;
    }
    (void)ptrace(PTRACE_INTERRUPT, thread, 0, 0);
    if (!wait_for(thread, &found)) {
        return -1;
    }
    stops++;
    return found >> 16 != 0 ? 0 : WSTOPSIG(found);
}

static void let_go(pid_t thread, int signal) {
    int found;
    if (ptrace(PTRACE_DETACH, thread, 0, (void *)(intptr_t)signal) != 0 && thread != program) {
        (void)wait_for(thread, &found); /* it was killed meanwhile; main waits for the program */
    }
}

static void one_round(void) {
    pid_t all[THREADS_MAX], held[THREADS_MAX];
    int signals[THREADS_MAX];
    size_t count = list_threads(all), held_count = 0;
    unsigned share = 1 + draw_below(4); /* of four quarters */
    for (size_t i = 0; i < count && !is_over; i++) {
        int signal = draw_below(4) < share ? stop(all[i]) : -1;
        if (signal >= 0) {
            held[held_count] = all[i];
            signals[held_count++] = signal;
        }
    }
    rest(draw_below(20000));
    rounds += held_count != 0;
    together = held_count > together ? held_count : together;
    while (held_count > 0) { /* in any order */
        size_t i = draw_below((unsigned)held_count);
        let_go(held[i], signals[i]);
        held[i] = held[--held_count];
        signals[i] = signals[held_count];
        rest(draw_below(500));
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    size_t count = (size_t)atol(argv[1]);
    program = fork();
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    while (!is_over && waitpid(program, &status, WNOHANG) == 0) {
        one_round();
        if (stops >= count && together > 1 && !is_told) { /* once, so that none comes later */
            kill(program, SIGTERM);
            is_told = 1;
        }
        rest(draw_below(10000));
    }
    printf("%zu stops in %zu rounds, of up to %zu threads at a time\n", stops, rounds, together);
    if (!WIFEXITED(status)) {
        printf("the program ended by signal %d\n", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}
