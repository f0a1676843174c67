/* SPDX-License-Identifier: MIT
 *
 * Starts a program as systemd starts a service with SystemCallFilter=@system-service and no error:
 * any other call of it and of its children ends the process. With `pkey` as with @pkey added, which
 * compilers at run time need. Without a program it makes such a call itself.
 * usage: service_filter [service|pkey LIBRARY PROGRAM ARGUMENTS...]    (LIBRARY: may be empty)
 * status: that of the program; 77: no filters here; 127: no such program
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned allowed[] = {
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_pkey_mprotect,
#include "life/system_service.def"
};
enum { PKEYS = 3, COUNT = sizeof allowed / sizeof *allowed, SKIPPED = 77, MISSING = 127 };

static struct sock_filter code[2 * COUNT + 2];

static int install(unsigned first) {
    struct sock_filter *at = code;
    *at++ =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = first; i < COUNT; i++) {
        *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)(at - code), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv) {
    unsigned first = argc > 1 && strcmp(argv[1], "pkey") == 0 ? 0 : PKEYS;
    if ((argc > 2 && setenv("LD_PRELOAD", argv[2], 1) != 0) || !install(first)) {
        return SKIPPED;
    }
    if (argc < 4) {
        unsigned char byte;
        return (int)syscall(SYS_mincore, code, 1, &byte);
    }
    execvp(argv[3], argv + 3);
    return MISSING;
}
