// SPDX-License-Identifier: MIT
// Has the library's object for attaching, and answers to it as the library does, or in another way.
//     attach ok|refuses|busy|silent|spins|newer|other|filtered|thread|open     says "ready", then
//     each argument it was given; filtered: under a filter of system calls; thread: one of its
//     threads is; open: that, with a socket like ours
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct answer {
    volatile uint64_t result, number;
};

struct attach {
    char magic[8];
    uint32_t version, size;
    volatile uint64_t command, argument, number;
    struct answer *answer;
};

static struct answer answer = {7, 41}; // of an earlier tool

struct attach hak_attach = {
    {'H', 'A', 'K', 'A', 'T', 'T', 'C', 'H'}, 2, sizeof(struct attach), 0, 0, 41, &answer};

static void listen_like_ours(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hakmem-%d", (int)getpid());
    socklen_t bytes = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)length;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, bytes) != 0 || listen(listener, 1) != 0) {
        abort();
    }
}

/* Allows everything: of the calling thread. */
static void enter_filter(void) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {1, &allow};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        abort();
    }
}

static pthread_barrier_t entered;

static void *filtered_thread(void *unused) {
    enter_filter();
    pthread_barrier_wait(&entered);
    for (;;) {
        pause();
    }
    return unused;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "ok";
    if (!strcmp(mode, "newer")) {
        hak_attach.version = 3;
    }
    uint64_t busy = UINT64_C(1) << 63 | EBUSY;
    if (!strcmp(mode, "other")) {
        hak_attach.magic[0] = 'X';
    }
    if (!strcmp(mode, "open")) {
        listen_like_ours();
    }
    if (!strcmp(mode, "thread")) {
        pthread_t thread;
        pthread_barrier_init(&entered, NULL, 2);
        pthread_create(&thread, NULL, filtered_thread, NULL);
        pthread_barrier_wait(&entered);
    } else if (!strcmp(mode, "filtered") || !strcmp(mode, "open")) {
        enter_filter();
    }
    puts("ready");
    fflush(stdout);
    while (!strcmp(mode, "spins") && answer.number == 41) {
    }
    while (!strcmp(mode, "silent")) {
        nanosleep(&(struct timespec){60, 0}, NULL);
    }
    for (int turn = 0; turn < 6000; turn++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        if (hak_attach.number != answer.number) {
            uint64_t failed = UINT64_C(1) << 63 | EADDRINUSE;
            printf("%d %ld\n", (int)hak_attach.command, (long)hak_attach.argument);
            fflush(stdout);
            answer.result = !strcmp(mode, "refuses") ? failed
                            : !strcmp(mode, "busy")  ? busy
                                                     : hak_attach.command;
            nanosleep(&(struct timespec){0, 50000000},
                      NULL); // the tool must not take the result before its number
            answer.number = hak_attach.number;
        }
    }
    return 0;
}
