/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe tell PID trim|flush|reset|rate BYTES|option NAME:VALUE [--wait SECONDS] [--force]
 */
#include "command.h"
#include "tell.h"

#include <dirent.h>
#include <stdlib.h>

enum { NOT_YET = 2, WAIT_SECONDS = 5, WAIT_MOST = 1000000 };

typedef struct order {
    obs_wish_t wish;
    uint32_t pid;
    double wait_seconds;
    bool is_forced;
} order_t;

static bool text_set(char *to, size_t room, const char *from, size_t length) {
    if (length >= room) {
        return false;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

/* The words behind the PID: one or two. */
static bool wish_parse(obs_wish_t *wish, const char *what, const char *value) {
    if (value == NULL) {
        wish->request = strcmp(what, "trim") == 0    ? HAK_MAIL_TRIM
                        : strcmp(what, "flush") == 0 ? HAK_MAIL_FLUSH
                        : strcmp(what, "reset") == 0 ? HAK_MAIL_RESET
                                                     : 0;
        return wish->request != 0;
    }
    if (strcmp(what, "rate") == 0) {
        wish->request = HAK_MAIL_RATE;
        return text_set(wish->value, sizeof wish->value, value, strlen(value));
    }
    size_t length = strcspn(value, ":=");
    wish->request = HAK_MAIL_OPTION;
    return strcmp(what, "option") == 0 && value[length] != '\0' &&
           text_set(wish->name, sizeof wish->name, value, length) &&
           text_set(wish->value, sizeof wish->value, value + length + 1,
                    strlen(value + length + 1));
}

static bool order_parse(order_t *order, int argc, char **argv) {
    const char *word[3] = {NULL};
    unsigned words = 0;
    char *end;
    order->wait_seconds = WAIT_SECONDS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--wait") == 0 && i + 1 < argc) {
            order->wait_seconds = strtod(argv[++i], &end);
            if (*end != '\0' || !(order->wait_seconds >= 0 && order->wait_seconds <= WAIT_MOST)) {
                return false;
            }
        } else if (strcmp(argv[i], "--force") == 0) {
            order->is_forced = true;
        } else if (argv[i][0] == '-' || words == 3) {
            return false;
        } else {
            word[words++] = argv[i];
        }
    }
    unsigned long pid = words >= 2 ? strtoul(word[0], &end, 10) : 0;
    order->pid = (uint32_t)pid;
    return words >= 2 && *end == '\0' && pid != 0 && pid <= INT32_MAX &&
           wish_parse(&order->wish, word[1], word[2]);
}

/* Whether one of its threads has a seccomp filter. */
static bool is_filtered(const obs_reader_t *reader) {
    int descriptor = obs_process_open(reader, "task");
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    const struct dirent *entry;
    bool is_it = folder == NULL;
    while (folder != NULL && !is_it && (entry = readdir(folder)) != NULL) {
        char path[sizeof "task//status" + sizeof entry->d_name];
        snprintf(path, sizeof path, "task/%s/status", entry->d_name);
        is_it = entry->d_name[0] != '.' && obs_process_filter(reader, path);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_it;
}

/* Who samples walks stacks, and the scavenger is a thread, by system calls that the process never
 * made: a filter may end it. */
static bool is_endangered(const order_t *order, const obs_reader_t *reader) {
    bool begins = order->wish.request == HAK_MAIL_RATE || order->wish.request == HAK_MAIL_OPTION;
    return begins && !order->is_forced && is_filtered(reader);
}

static int say_of(uint32_t pid, const char *what, int status) {
    fprintf(stderr, "hakmem-observe: process %u %s\n", pid, what);
    return status;
}

static int say_refusal(uint32_t pid, uint32_t result) {
    static const char *const refusals[] = {
        [HAK_MAIL_BROKEN] = "gets several requests at a time: try again",
        [HAK_MAIL_UNKNOWN] = "knows no such option",
        [HAK_MAIL_FIXED] = "reads that option only at its start",
        [HAK_MAIL_INVALID] = "takes no such value",
        [HAK_MAIL_REFUSED] =
            "refuses: it is set-uid, runs on the C library's malloc, or has no memory for it",
    };
    bool is_known = result < sizeof refusals / sizeof *refusals && refusals[result] != NULL;
    return say_of(pid, is_known ? refusals[result] : "answers what this program does not know", 1);
}

int obs_command_tell(int argc, char **argv) {
    static obs_reader_t reader;
    static obs_image_t image;
    order_t order = {0};
    uint32_t result;
    if (!order_parse(&order, argc, argv)) {
        return obs_usage();
    }
    obs_told_t told = OBS_NOT_TOLD;
    uint64_t before = 0, after = 0; /* RSS */
    bool is_open = obs_open_process_quickly(&reader, order.pid) && obs_open_to_write(&reader) &&
                   obs_image_open(&image, &reader);
    if (is_open && is_endangered(&order, &reader)) {
        obs_fail(&reader,
                 "process %u has a seccomp filter, which may end it for the system calls by which "
                 "it would sample: it is left alone; --force samples it nevertheless",
                 order.pid);
    } else if (is_open) {
        before = obs_process_rss(&reader);
        result = HAK_MAIL_REFUSED; /* no allocation of it comes to the events */
        told = image.knobs.force_libc != 0
                   ? OBS_TOLD
                   : obs_tell(&image, &order.wish, (uint64_t)(order.wait_seconds * 1e9), &result);
        after = obs_process_rss(&reader);
    }
    obs_close(&reader);
    if (told == OBS_TOLD && result == HAK_MAIL_DONE) {
        printf("process %u: done", order.pid);
        printf(order.wish.request == HAK_MAIL_TRIM ? ", RSS %lu KiB before, %lu KiB now\n" : "\n",
               (unsigned long)(before >> 10), (unsigned long)(after >> 10));
        return 0;
    }
    switch (told) {
    case OBS_TOLD:
        return say_refusal(order.pid, result);
    case OBS_NOT_YET:
        return say_of(order.pid, "has not answered yet: it does it when it next allocates",
                      NOT_YET);
    case OBS_NOT_SENT:
        return say_of(order.pid, "has not answered yet what another asked: nothing was sent",
                      NOT_YET);
    default:
        return obs_say(reader.error);
    }
}
