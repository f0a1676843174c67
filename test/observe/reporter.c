/* SPDX-License-Identifier: MIT
 *
 * The program whose reports at exit the tests look at. Arguments: what to do, and a
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

/* The program closed standard error, and the file that it opened next got its number. */
static void write_data(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/data", folder);
    close(2);
    if (open(path, O_WRONLY | O_CREAT, 0600) != 2 || write(2, "DATA", 4) != 4) {
        say("a number was taken\n");
    }
}

/* Nothing more can be mapped. */
static void take_addresses(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
}

static void on_signal(int number) {
    (void)number;
    exit(0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "idle";
    if (strcmp(what, "close_error") == 0) {
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
    } else if (strcmp(what, "write_data") == 0) {
        write_data(argv[2]);
        return 0;
    } else if (strcmp(what, "no_memory") == 0) {
        take_addresses();
        return 0;
    } else if (strcmp(what, "chroot") == 0 && (chroot(argv[2]) != 0 || chdir("/") != 0)) {
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
