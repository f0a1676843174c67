/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe explain|stats|map PID|CORE [--json|--metrics] [--stop] [--every S], and the
 * commands of command.h */
#include "command.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: hakmem-observe explain|stats|map PID|CORE [--json|--metrics|--wide] "
    "[--stop] [--every S]\n"
    "  explain  why RSS is as high as it is\n"
    "  stats    the statistics of the allocator\n"
    "  map      the use of every unit of the heap, as JSON\n"
    "  --json   as JSON, like the library's own documents\n"
    "  --metrics  the statistics, in the text format of Prometheus\n"
    "  --wide   text is not folded to the terminal, or to 80 columns\n"
    "  --stop   stop the process meanwhile, for exact figures\n"
    "  --every S  again and again, every S seconds; JSON a line each time\n"
    "hakmem-observe profile PID|CORE|FILE [--format json|pprof|heap_v2] "
    "[-o FILE] [--stop]\n"
    "  profile  the call sites that hold the memory; also of the file of\n"
    "           a process that was killed (report:profile)\n"
    "hakmem-observe check PID|CORE\n"
    "  check    which allocator serves it, and what cannot be read\n"
    "hakmem-observe options PID|CORE\n"
    "  options  those in force that are no texts, as JSON\n"
    "hakmem-observe ps\n"
    "  ps       all processes on hakmem that may be read, by RSS\n"
    "hakmem-observe tell PID trim|flush|reset|rate BYTES|option NAME:VALUE "
    "[--wait SECONDS] [--brief] [--force]\n"
    "  tell     asks the process for something, when it next allocates;\n"
    "           --brief: withdraws it if the wait ends without an answer\n"
    "           trim: return unused memory to the system;\n"
    "           flush: empty the cache of each thread;\n"
    "           rate: sample the heap profile one in so many bytes, 0: stop;\n"
    "           reset: forget what was sampled so far;\n"
    "           option: change an option of the allocator\n";

typedef struct order {
    obs_verb_t verb;
    obs_form_t form;
    const char *target;
    bool is_stop, is_wide;
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
        } else if (strcmp(argv[i], "--wide") == 0) {
            order->is_wide = true;
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

int obs_say(const char *text) {
    fprintf(stderr, "hakmem-observe: %s\n", text);
    return 1;
}

int obs_usage(void) {
    fputs(usage, stderr);
    return 1;
}

void obs_put_stream(void *context, const char *data, size_t length) {
    fwrite(data, 1, length, context);
}

enum { WIDTH = 80, WIDTH_LEAST = 40, INDENT = sizeof "hakmem: " - 1 };

static size_t terminal_width(void) {
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_LEAST;
    return is_known ? size.ws_col : WIDTH;
}

/* Where lines go on that follow a line: below its last column, which begins behind two blanks. */
static size_t line_indent(const char *line, size_t length, size_t width) {
    size_t indent = INDENT;
    for (size_t i = 2; i < length && i < width * 2 / 3; i++) {
        indent = line[i - 1] == ' ' && line[i - 2] == ' ' && line[i] != ' ' ? i : indent;
    }
    return indent;
}

/* The blank at which a part of a line ends: the last one within the width, else the first one. */
static size_t line_break(const char *line, size_t from, size_t length, size_t width) {
    size_t found = length;
    for (size_t i = from + 1; i < length && (i <= width || found == length); i++) {
        found = line[i] == ' ' ? i : found;
    }
    return found;
}

static void put_folded(FILE *file, const char *line, size_t length, size_t width) {
    size_t indent = line_indent(line, length, width);
    size_t end = length > width ? line_break(line, indent, length, width) : length;
    fwrite(line, 1, end, file);
    while (end < length) {
        line += end + 1;
        length -= end + 1;
        end = length > width - indent ? line_break(line, 0, length, width - indent) : length;
        fprintf(file, "\n%*s%.*s", (int)indent, "", (int)end, line);
    }
    putc('\n', file);
}

/* A document that is one of many is a line. */
int obs_put_text(const obs_job_t *job, char *text, size_t length) {
    for (size_t i = 0; job->is_line && i + 1 < length; i++) {
        text[i] = text[i] == '\n' ? ' ' : text[i];
    }
    if (job->is_folded) {
        size_t width = terminal_width();
        for (char *end; (end = memchr(text, '\n', length)) != NULL; text = end + 1) {
            put_folded(stdout, text, (size_t)(end - text), width);
            length -= (size_t)(end + 1 - text);
        }
    }
    FILE *file = job->file != NULL ? fopen(job->file, "we") : stdout;
    bool is_put = file != NULL && fwrite(text, 1, length, file) == length && fflush(file) == 0;
    if (file != NULL && file != stdout) {
        is_put = fclose(file) == 0 && is_put;
    }
    return is_put ? 0 : obs_say("the report cannot be written");
}

/* The report is kept in memory while the process stands: nobody waits for a reader of ours. */
static int observe(const obs_job_t *job, uint32_t pid) {
    static obs_reader_t reader;
    static obs_image_t image;
    obs_stopped_t stopped = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    const hak_sink_t sink = {.put = obs_put_stream, .context = memory};
    if (memory == NULL) {
        return obs_say("no memory");
    }
    if (job->is_stop && pid != 0 && !obs_stop(&stopped, pid)) {
        return obs_say(stopped.error);
    }
    bool is_open = pid == 0        ? obs_open_core(&reader, job->target)
                   : job->is_quick ? obs_open_process_quickly(&reader, pid)
                                   : obs_open_process(&reader, pid);
    reader.until_ns = stopped.count != 0 ? stopped.began_ns + OBS_STAND_NS : 0;
    is_open = is_open && obs_image_open(&image, &reader);
    if (is_open) {
        job->write(&image, &sink, job->context);
    }
    if (stopped.count != 0) {
        uint64_t ns = obs_continue(&stopped);
        fprintf(stderr, "hakmem-observe: process %u stood still for %.1f ms\n", pid,
                (double)ns / 1e6);
    }
    if (reader.is_late) {
        obs_say("it went on before all was read: the report lacks something");
    }
    if (is_open && pid != 0 && !obs_process_lives(&reader)) {
        is_open = obs_fail(&reader, "process %u ended meanwhile", pid);
    }
    fclose(memory);
    obs_close(&reader);
    int result = is_open ? obs_put_text(job, text, length) : obs_say(reader.error);
    free(text);
    return result;
}

/* Until it ends, or nobody reads. Its folder in /proc is that of no other process. */
static int observe_process(const obs_job_t *job, uint32_t pid) {
    const struct timespec pause = {.tv_sec = (time_t)(job->every_ns / SECOND_NS),
                                   .tv_nsec = (long)(job->every_ns % SECOND_NS)};
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", pid);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), result;
    while ((result = observe(job, pid)) == 0 && job->every_ns != 0) {
        nanosleep(&pause, NULL);
        if (faccessat(folder, "stat", F_OK, 0) != 0) {
            result = obs_say("the process has ended");
            break;
        }
    }
    close(folder);
    return result;
}

int obs_run(const obs_job_t *job) {
    char *end;
    unsigned long pid = strtoul(job->target, &end, 10);
    bool is_number = *end == '\0' && job->target[0] >= '1' && job->target[0] <= '9';
    if (is_number) {
        return pid <= INT32_MAX ? observe_process(job, (uint32_t)pid) : obs_say("that is no PID");
    }
    return job->is_stop         ? obs_say("a core file cannot be stopped")
           : job->every_ns != 0 ? obs_say("a core file does not change")
                                : observe(job, 0);
}

static void write_report(obs_image_t *image, const hak_sink_t *sink, void *context) {
    const order_t *order = context;
    obs_report(image, order->verb, order->form, sink);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"profile", obs_command_profile},
                    {"check", obs_command_check},
                    {"options", obs_command_options},
                    {"ps", obs_command_ps},
                    {"tell", obs_command_tell}};
    order_t order = {0};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (!order_parse(&order, argc, argv)) {
        return obs_usage();
    }
    bool is_text = order.form != OBS_JSON && order.form != OBS_METRICS && order.verb != OBS_MAP;
    const obs_job_t job = {.target = order.target,
                           .is_folded = is_text && !order.is_wide,
                           .is_stop = order.is_stop,
                           .is_quick = order.verb != OBS_EXPLAIN,
                           .is_line = order.every_ns != 0 &&
                                      (order.form == OBS_JSON || order.verb == OBS_MAP),
                           .every_ns = order.every_ns,
                           .write = write_report,
                           .context = &order};
    return obs_run(&job);
}
