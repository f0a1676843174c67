// SPDX-License-Identifier: MIT
// A service that after its start is killed for socket(2), as a worker is that got its descriptors
// before: says "ready", allocates until its standard input ends, says "served".
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *volatile blocks[5000];

static void allocate(void) {
    for (int i = 0; i < 5000; i++) {
        blocks[i] = malloc(100 + (size_t)i);
    }
    for (int i = 0; i < 5000; i++) {
        free(blocks[i]);
    }
}

int main(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {4, steps};
    fcntl(0, F_SETFL, O_NONBLOCK);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        return 77;
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) != 0) {
        allocate();
        usleep(1000);
    }
    allocate();
    puts("served");
    return 0;
}
