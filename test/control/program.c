/* SPDX-License-Identifier: MIT
 *
 * The program that control_test.py and report_test.py ask and end. Arguments: what to do, and a
 * folder for what needs one. It says "ready" on standard output when it has, and then waits for the
 * end of standard input, without a call of malloc. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int standard_in = 0;
static int standard_out = 1;

static void say(const char *line) {
    ssize_t written = write(standard_out, line, strlen(line));
    (void)written;
}

static void wait_for_end(void) {
    char byte;
    say("ready\n");
    while (read(standard_in, &byte, 1) > 0) {
    }
}

static void allocate(void) {
    static void *volatile kept[3000];
    for (size_t i = 0; i < 3000; ++i) {
        kept[i] = malloc(i + 1);
    }
    for (size_t i = 0; i < 3000; ++i) {
        free(kept[i]);
    }
}

/* As daemons do; then as many descriptors as there were, and more, are its own files. */
static void close_all(void) {
    standard_in = fcntl(0, F_DUPFD, 2000);
    standard_out = fcntl(1, F_DUPFD, 2000);
    for (int fd = 0; fd < 2000; ++fd) {
        close(fd);
    }
    for (int fd = 0; fd < 64; ++fd) {
        int opened = open("/dev/null", O_RDWR);
        if (opened != fd) {
            say("a number was taken\n");
        }
    }
}

/* Blocks of spans, freed again. */
static void take_large(void) {
    static void *volatile kept[64];
    for (size_t i = 0; i < 64; ++i) {
        kept[i] = malloc(500000);
        if (kept[i] != NULL) {
            memset(kept[i], 1, 500000);
        }
    }
    for (size_t i = 0; i < 64; ++i) {
        free(kept[i]);
    }
}

/* As GNU coreutils do. */
static void close_error(void) {
    fclose(stderr);
}

/* And then all that is open. */
static void close_and_reuse(void) {
    for (int fd = 2; fd < 200; ++fd) {
        close(fd);
    }
    for (int fd = 2; fd < 200; ++fd) {
        if (open("/dev/null", O_RDWR) != fd) {
            say("a number was taken\n");
        }
    }
    close(2);
}

static void at_exit(void) {
    fputs("flushed\n", stdout); /* buffered: the C library writes it behind this */
}

static void *end_soon(void *unused) {
    usleep(300000);
    return unused;
}

static void leave_main(void) {
    pthread_t thread;
    atexit(at_exit);
    pthread_create(&thread, NULL, end_soon, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void fork_child(void) {
    pid_t child = fork();
    if (child == 0) {
        allocate();
        wait_for_end();
        exit(0);
    }
    allocate();
    waitpid(child, NULL, 0);
}

/* Children that leave their main thread: one that has a channel by then, and one that has not. */
static int fork_leavers(void) {
    int failed = 0;
    for (int with_channel = 0; with_channel < 2; ++with_channel) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            if (with_channel) {
                allocate();
                usleep(100000);
            }
            leave_main();
        }
        failed |= waitpid(child, &status, 0) != child || status != 0;
    }
    return failed;
}

/* The child can have no channel; it is told so in the middle of an allocation, where a thread that
 * shall end must not end. */
static int fork_cancelled(void) {
    int status = -1, line[2];
    pthread_t thread;
    pthread_create(&thread, NULL, end_soon, NULL);
    pthread_cancel(thread); /* loads what cancelling takes */
    pthread_join(thread, NULL);
    pid_t child = pipe2(line, O_NONBLOCK) == 0 ? fork() : -1;
    if (child == 0) {
        const struct rlimit none = {0, 0};
        char byte;
        dup2(line[1], 2);
        setrlimit(RLIMIT_NOFILE, &none);
        pthread_cancel(pthread_self());
        while (syscall(SYS_read, line[0], &byte, 1) <= 0) { /* no place to end, as read() is */
            allocate();
        }
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        say("survived\n");
        _exit(0);
    }
    return waitpid(child, &status, 0) != child || status != 0;
}

static void on_signal(int number) {
    (void)number;
    exit(0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "idle";
    if (strcmp(what, "close_all") == 0) {
        close_all();
    } else if (strcmp(what, "close_error") == 0) {
        close(2);
    } else if (strcmp(what, "close_at_exit") == 0) {
        atexit(close_error);
        return 0;
    } else if (strcmp(what, "reuse_at_exit") == 0) {
        atexit(close_and_reuse);
        return 0;
    } else if (strcmp(what, "large") == 0) {
        take_large();
    } else if (strcmp(what, "leave_main") == 0) {
        leave_main();
    } else if (strcmp(what, "fork") == 0) {
        fork_child();
        return 0;
    } else if (strcmp(what, "fork_leave") == 0) {
        return fork_leavers();
    } else if (strcmp(what, "fork_cancel") == 0) {
        return fork_cancelled();
    } else if (strcmp(what, "exec") == 0) {
        execl("/proc/self/exe", argv[0], "idle", (char *)NULL);
    } else if (strcmp(what, "chroot") == 0 && (chroot(argv[2]) != 0 || chdir("/") != 0)) {
        return 77;
    } else if (strcmp(what, "chroot_user") == 0 &&
               (chroot(argv[2]) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) {
        return 77;
    } else if (strcmp(what, "allocate") == 0) {
        allocate();
    } else if (strcmp(what, "user") == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
        return 77;
    } else if (strcmp(what, "signal") == 0) {
        signal(SIGTERM, on_signal);
    } else if (strcmp(what, "abort") == 0) {
        abort();
    } else if (strcmp(what, "_exit") == 0) {
        _exit(0);
    }
    wait_for_end();
    return 0;
}
