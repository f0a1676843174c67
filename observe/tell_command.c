/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe tell PID trim|flush|reset|rate BYTES|option NAME:VALUE [--wait SECONDS] [--brief]
 * [--force]
 */
#include "command.h"
#include "tell.h"

#include <dirent.h>
#include <stdarg.h>
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

static const struct {
    const char *name, *form; /* of its value; NULL: it takes none */
    uint32_t request;        /* hak_mail_t */
} requests[] = {{"trim", NULL, HAK_MAIL_TRIM},
                {"flush", NULL, HAK_MAIL_FLUSH},
                {"reset", NULL, HAK_MAIL_RESET},
                {"rate", "BYTES, such as 512k or 0", HAK_MAIL_RATE},
                {"option", "NAME:VALUE, such as retain_idle:0", HAK_MAIL_OPTION}};
enum {
    REQUESTS = sizeof requests / sizeof *requests,
    WORD = 8 /* letters; longer is near to none */
};
static const char known[] = "trim, flush, reset, rate BYTES, option NAME:VALUE";

/* Prints what is wrong with the words, in one line. */
static bool say_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool say_wrong(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("hakmem-observe: tell: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return false;
}

/* How many letters are more, less or other, two that changed places counting as one. */
static unsigned word_mistakes(const char *word, const char *name) {
    unsigned row[WORD + 1][WORD + 1] = {{0}};
    size_t length = strlen(word), wanted = strlen(name);
    for (size_t i = 0; i <= length; i++) {
        for (size_t j = 0; j <= wanted; j++) {
            unsigned least = (unsigned)(i + j); /* one of them is empty */
            if (i > 0 && j > 0) {
                bool is_other = word[i - 1] != name[j - 1];
                bool is_turned =
                    i > 1 && j > 1 && word[i - 1] == name[j - 2] && word[i - 2] == name[j - 1];
                least = row[i - 1][j - 1] + is_other;
                least = row[i - 1][j] < least ? row[i - 1][j] + 1 : least;
                least = row[i][j - 1] < least ? row[i][j - 1] + 1 : least;
                least = is_turned && row[i - 2][j - 2] < least ? row[i - 2][j - 2] + 1 : least;
            }
            row[i][j] = least;
        }
    }
    return row[length][wanted];
}

/* With one mistake, or two if the word has five letters or more. NULL: there is none. */
static const char *request_nearest(const char *word) {
    size_t length = strlen(word);
    unsigned most = length > 4 ? 3 : length > 2 ? 2 : 0; /* more than it may have */
    const char *nearest = NULL;
    for (unsigned i = 0; i < REQUESTS && length <= WORD; i++) {
        unsigned mistakes = word_mistakes(word, requests[i].name);
        if (mistakes < most) {
            most = mistakes;
            nearest = requests[i].name;
        }
    }
    return nearest;
}

/* The words behind the PID: one or two. */
static bool wish_parse(obs_wish_t *wish, const char *what, const char *value) {
    unsigned i = 0;
    while (i < REQUESTS && strcmp(what, requests[i].name) != 0) {
        i++;
    }
    if (i == REQUESTS) {
        const char *nearest = request_nearest(what);
        return say_wrong("unknown request '%.64s'%s%s%s; there are: %s", what,
                         nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                         nearest != NULL ? "?)" : "", known);
    }
    const char *form = requests[i].form;
    wish->request = requests[i].request;
    if (form == NULL) {
        return value == NULL || say_wrong("%s takes no value: leave '%s' out", what, value);
    }
    if (value == NULL) {
        return say_wrong("%s needs %s", what, form);
    }
    const char *text = value;
    bool is_good = true;
    if (wish->request == HAK_MAIL_OPTION) {
        size_t length = strcspn(value, ":=");
        is_good = value[length] != '\0' && text_set(wish->name, sizeof wish->name, value, length);
        text += is_good ? length + 1 : 0;
    }
    is_good = is_good && text_set(wish->value, sizeof wish->value, text, strlen(text));
    return is_good || say_wrong("%s needs %s, not '%s'", what, form, value);
}

static bool wait_parse(double *seconds, const char *text) {
    char *end;
    *seconds = strtod(text, &end);
    return (*end == '\0' && end != text && *seconds >= 0 && *seconds <= WAIT_MOST) ||
           say_wrong("--wait needs seconds, 0 to %d, not '%s'", WAIT_MOST, text);
}

static bool order_parse(order_t *order, int argc, char **argv) {
    const char *word[3] = {NULL};
    unsigned words = 0;
    order->wait_seconds = WAIT_SECONDS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--wait") == 0) {
            const char *text = i + 1 < argc ? argv[++i] : "";
            if (!wait_parse(&order->wait_seconds, text)) {
                return false;
            }
        } else if (strcmp(argv[i], "--force") == 0) {
            order->is_forced = true;
        } else if (strcmp(argv[i], "--brief") == 0) {
            order->wish.is_brief = true;
        } else if (argv[i][0] == '-') {
            return say_wrong("unknown option '%s'; there are: --wait SECONDS, --brief, --force",
                             argv[i]);
        } else if (words == 3) {
            return say_wrong("too many words: leave '%s' out", argv[i]);
        } else {
            word[words++] = argv[i];
        }
    }
    if (words < 2) {
        return say_wrong("a PID and a request are wanted: %s", known);
    }
    char *end;
    unsigned long pid = strtoul(word[0], &end, 10);
    order->pid = (uint32_t)pid;
    return *end == '\0' && pid != 0 && pid <= INT32_MAX
               ? wish_parse(&order->wish, word[1], word[2])
               : say_wrong("'%s' is no PID; the command ps lists them", word[0]);
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

static int say_refusal(const order_t *order, uint32_t result) {
    static const char *const refusals[] = {
        [HAK_MAIL_BROKEN] = "gets several requests at a time: try again",
        [HAK_MAIL_UNKNOWN] = "knows no such option: the command options lists them",
        [HAK_MAIL_FIXED] =
            "reads that option only at its start: start it with that in HAKMEM_OPTIONS",
        [HAK_MAIL_INVALID] = "takes no such value: docs/options.md has those of each option",
        [HAK_MAIL_REFUSED] = "refuses: it is set-uid, runs on the C library's malloc, or has no "
                             "memory for it: start it without the option force_libc, as a program "
                             "without other rights than its user's, or with more memory",
    };
    bool is_known = result < sizeof refusals / sizeof *refusals && refusals[result] != NULL;
    bool is_rate = result == HAK_MAIL_INVALID && order->wish.request == HAK_MAIL_RATE;
    return say_of(order->pid,
                  is_rate    ? "takes no such value: rate needs bytes, such as 512k, at most 1t"
                  : is_known ? refusals[result]
                             : "answers what this program does not know: use that of its version",
                  1);
}

/* What to do where it could not be told. */
static int say_untold(const char *error) {
    static const struct {
        const char *part, *help;
    } helps[] = {
        {"does not use hakmem", "; start it by hakmem run, or name another: ps lists them"},
        {"there is no process", "; the command ps lists those on hakmem"},
        {"ended meanwhile", "; the command ps lists those on hakmem"},
        {"may not be read", "; be its user, or root, with the rights of a debugger"}};
    for (unsigned i = 0; i < sizeof helps / sizeof *helps; i++) {
        if (strstr(error, helps[i].part) != NULL) {
            fprintf(stderr, "hakmem-observe: %s%s\n", error, helps[i].help);
            return 1;
        }
    }
    return obs_say(error);
}

int obs_command_tell(int argc, char **argv) {
    static obs_reader_t reader;
    static obs_image_t image;
    order_t order = {0};
    uint32_t result;
    if (!order_parse(&order, argc, argv)) {
        return 1;
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
        return say_refusal(&order, result);
    case OBS_NOT_YET:
        return say_of(order.pid,
                      "has not answered yet: it does it when it next allocates; give it some work",
                      NOT_YET);
    case OBS_TAKEN_BACK:
        return say_of(order.pid, "has not answered yet: the request was taken back; ask again",
                      NOT_YET);
    case OBS_NOT_SENT:
        return say_of(order.pid,
                      "has not answered yet what another asked: nothing was sent; ask again",
                      NOT_YET);
    default:
        return say_untold(reader.error);
    }
}
