/* SPDX-License-Identifier: MIT
 *
 * Stops all threads of a process as a debugger does, so that it runs on whatever becomes of the
 * observer, and no parent is told. */
#include "observe.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS_MOST = 1 << 20,
    ROUNDS_MOST = 100,   /* over the list of threads: it grows while they start others */
    WAIT_MOST_MS = 2000, /* for one thread, which may sleep in the kernel */
    NAP_NS = 100000,
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool stop_fail(obs_stopped_t *stopped, const char *why) {
    snprintf(stopped->error, sizeof stopped->error, "process %u cannot be stopped: %s",
             stopped->pid, why);
    return false;
}

/* Waits until a seized thread stands, or has ended. It may have taken a signal before it was told
 * to stop, and stand for that: the signal is delivered when it goes on, also if the observer ends
 * first, as its state is not consumed. */
static bool thread_wait(obs_stopped_t *stopped, obs_thread_t *thread) {
    const int flags = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
    uint64_t end = now_ns() + (uint64_t)WAIT_MOST_MS * 1000000;
    siginfo_t state = {0};
    while (waitid(P_PID, thread->id, &state, flags) == 0 && state.si_pid == 0) {
        if (now_ns() > end) {
            return stop_fail(stopped, "a thread sleeps in the kernel");
        }
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    if (state.si_pid == 0 && errno != ECHILD) {
        return stop_fail(stopped, strerror(errno)); /* Linux before 4.7 */
    }
    bool is_signal = state.si_code == CLD_TRAPPED && state.si_status >> 8 != PTRACE_EVENT_STOP;
    thread->signal = is_signal ? state.si_status & 0x7f : 0;
    return true;
}

static bool is_known(const obs_stopped_t *stopped, uint32_t thread) {
    for (size_t i = stopped->count; i-- > 0;) {
        if (stopped->thread[i].id == thread) {
            return true;
        }
    }
    return false;
}

/* A thread that has ended already cannot be seized: it is the first, whose process goes on. */
static bool is_ended(uint32_t pid, uint32_t thread) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, thread);
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    text[length] = '\0';
    const char *state = strrchr(text, ')');
    return state == NULL || strlen(state) < 3 || state[2] == 'Z' || state[2] == 'X';
}

/* *is_seized: it is about to stand. */
static bool thread_stop(obs_stopped_t *stopped, uint32_t thread, bool *is_seized) {
    *is_seized = ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0;
    if (*is_seized) {
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
        return true;
    }
    int error = errno;
    return error == ESRCH || is_ended(stopped->pid, thread) ||
           stop_fail(stopped,
                     error == EPERM ? "it is another user's, or is being traced" : strerror(error));
}

static bool thread_keep(obs_stopped_t *stopped, uint32_t thread) {
    if (stopped->count == stopped->room) {
        size_t room = stopped->room * 2 + 64;
        obs_thread_t *all = realloc(stopped->thread, room * sizeof *all);
        if (all == NULL || room > THREADS_MOST) {
            return stop_fail(stopped, "it has too many threads");
        }
        stopped->thread = all;
        stopped->room = room;
    }
    stopped->thread[stopped->count++] = (obs_thread_t){.id = thread};
    return true;
}

/* Stops the threads that are listed and run: all are told, then waited for. *found: there was one.
 */
static bool threads_stop(obs_stopped_t *stopped, DIR *folder, bool *found) {
    const struct dirent *entry;
    size_t before = stopped->count;
    while ((entry = readdir(folder)) != NULL) {
        uint32_t thread = (uint32_t)strtoul(entry->d_name, NULL, 10);
        bool is_seized;
        if (thread == 0 || is_known(stopped, thread)) {
            continue;
        }
        if (!thread_stop(stopped, thread, &is_seized)) {
            return false;
        }
        if (is_seized && !thread_keep(stopped, thread)) {
            return false; /* the kernel lets it go when the observer ends */
        }
    }
    *found = stopped->count != before;
    for (size_t i = before; i < stopped->count; i++) {
        if (!thread_wait(stopped, &stopped->thread[i])) {
            return false;
        }
    }
    return true;
}

bool obs_stop(obs_stopped_t *stopped, uint32_t pid) {
    char path[64];
    bool found = true, is_good = true;
    sigset_t job;
    *stopped = (obs_stopped_t){.pid = pid, .began_ns = now_ns()};
    sigemptyset(&job); /* nobody stops the observer while others wait for it */
    sigaddset(&job, SIGTSTP);
    sigaddset(&job, SIGTTIN);
    sigaddset(&job, SIGTTOU);
    sigprocmask(SIG_BLOCK, &job, &stopped->mask);
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    for (unsigned round = 0; found && is_good && round < ROUNDS_MOST; round++) {
        DIR *folder = opendir(path);
        is_good = folder != NULL ? threads_stop(stopped, folder, &found)
                                 : stop_fail(stopped, "there is no such process");
        if (folder != NULL) {
            closedir(folder);
        }
    }
    if (is_good && stopped->count == 0) {
        is_good = stop_fail(stopped, "it has ended");
    }
    if (!is_good) {
        obs_continue(stopped);
    }
    return is_good;
}

uint64_t obs_continue(obs_stopped_t *stopped) {
    for (size_t i = 0; i < stopped->count; i++) {
        const obs_thread_t *thread = &stopped->thread[i];
        ptrace(PTRACE_DETACH, thread->id, NULL, (void *)(intptr_t)thread->signal);
    }
    free(stopped->thread);
    stopped->thread = NULL;
    stopped->count = stopped->room = 0;
    sigprocmask(SIG_SETMASK, &stopped->mask, NULL);
    return now_ns() - stopped->began_ns;
}
