/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe explain|stats|map PID|CORE [--json|--metrics] [--stop] [--every S] */
#include "observe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: hakmem-observe explain|stats|map PID|CORE [--json|--metrics] [--stop] [--every S]\n"
    "  explain  why RSS is as high as it is\n"
    "  stats    the statistics of the allocator\n"
    "  map      the use of every unit of the heap, as JSON\n"
    "  --json   as JSON, like the library's own documents\n"
    "  --metrics  the statistics, in the text format of Prometheus\n"
    "  --stop   stop the process meanwhile, for exact figures\n"
    "  --every S  again and again, every S seconds; JSON a line each time\n";

typedef struct order {
    obs_verb_t verb;
    obs_form_t form;
    const char *target;
    bool is_stop;
    uint64_t every_ns; /* 0: once */
} order_t;

enum { SECOND_NS = 1000000000, EVERY_MOST = 86400 };

/* 0: that is no time. */
static uint64_t seconds_parse(const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    bool is_good = *end == '\0' && end != text && seconds >= 0.001 && seconds <= EVERY_MOST;
    return is_good ? (uint64_t)(seconds * SECOND_NS) : 0;
}

static bool order_parse(order_t *order, int argc, char **argv) {
    static const char *const verbs[] = {"explain", "stats", "map"};
    unsigned words = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            order->form = OBS_JSON;
        } else if (strcmp(argv[i], "--metrics") == 0) {
            order->form = OBS_METRICS;
        } else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
            order->every_ns = seconds_parse(argv[++i]);
            if (order->every_ns == 0) {
                return false;
            }
        } else if (strcmp(argv[i], "--stop") == 0) {
            order->is_stop = true;
        } else if (argv[i][0] == '-' || words == 2) {
            return false;
        } else if (words++ == 1) {
            order->target = argv[i];
        } else {
            unsigned verb = 0;
            while (verb <= OBS_MAP && strcmp(argv[i], verbs[verb]) != 0) {
                verb++;
            }
            if (verb > OBS_MAP) {
                return false;
            }
            order->verb = (obs_verb_t)verb;
        }
    }
    return words == 2 && (order->form != OBS_METRICS || order->verb == OBS_STATS);
}

static int say(const char *text) {
    fprintf(stderr, "hakmem-observe: %s\n", text);
    return 1;
}

/* A document that is one of many is a line. */
static bool text_write(const order_t *order, char *text, size_t length) {
    bool is_line = order->every_ns != 0 && (order->form == OBS_JSON || order->verb == OBS_MAP);
    for (size_t i = 0; is_line && i + 1 < length; i++) {
        text[i] = text[i] == '\n' ? ' ' : text[i];
    }
    return fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
}

static void put_file(void *context, const char *data, size_t length) {
    fwrite(data, 1, length, context);
}

/* The report is kept in memory while the process stands: nobody waits for a reader of ours. */
static int observe(const order_t *order, uint32_t pid) {
    static obs_reader_t reader;
    static obs_image_t image;
    obs_stopped_t stopped = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    const hak_sink_t sink = {.put = put_file, .context = memory};
    if (memory == NULL) {
        return say("no memory");
    }
    if (order->is_stop && pid != 0 && !obs_stop(&stopped, pid)) {
        return say(stopped.error);
    }
    bool is_open = pid == 0                     ? obs_open_core(&reader, order->target)
                   : order->verb == OBS_EXPLAIN ? obs_open_process(&reader, pid)
                                                : obs_open_process_fast(&reader, pid);
    reader.until_ns = stopped.count != 0 ? stopped.began_ns + OBS_STAND_NS : 0;
    is_open = is_open && obs_image_open(&image, &reader);
    if (is_open) {
        obs_report(&image, order->verb, order->form, &sink);
    }
    if (stopped.count != 0) {
        uint64_t ns = obs_continue(&stopped);
        fprintf(stderr, "hakmem-observe: process %u stood still for %.1f ms\n", pid,
                (double)ns / 1e6);
    }
    if (reader.is_late) {
        say("it went on before all was read: the report lacks something");
    }
    if (is_open && pid != 0 && !obs_process_lives(&reader)) {
        is_open = obs_fail(&reader, "process %u ended meanwhile", pid);
    }
    fclose(memory);
    obs_close(&reader);
    int result = !is_open                          ? say(reader.error)
                 : text_write(order, text, length) ? 0
                                                   : say("the report cannot be written");
    free(text);
    return result;
}

/* Until it ends, or nobody reads. Its folder in /proc is that of no other process. */
static int observe_process(const order_t *order, uint32_t pid) {
    const struct timespec pause = {.tv_sec = (time_t)(order->every_ns / SECOND_NS),
                                   .tv_nsec = (long)(order->every_ns % SECOND_NS)};
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", pid);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), result;
    while ((result = observe(order, pid)) == 0 && order->every_ns != 0) {
        nanosleep(&pause, NULL);
        if (faccessat(folder, "stat", F_OK, 0) != 0) {
            result = say("the process has ended");
            break;
        }
    }
    close(folder);
    return result;
}

int main(int argc, char **argv) {
    order_t order = {0};
    char *end;
    struct stat status;
    if (!order_parse(&order, argc, argv)) {
        fputs(usage, stderr);
        return 1;
    }
    unsigned long pid = strtoul(order.target, &end, 10);
    bool is_number = *end == '\0' && order.target[0] >= '1' && order.target[0] <= '9';
    if (is_number && stat(order.target, &status) != 0) {
        return pid <= INT32_MAX ? observe_process(&order, (uint32_t)pid) : say("that is no PID");
    }
    return order.is_stop         ? say("a core file cannot be stopped")
           : order.every_ns != 0 ? say("a core file does not change")
                                 : observe(&order, 0);
}
