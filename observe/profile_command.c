/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe profile PID|CORE|FILE [--format json|pprof|heap_v2] [-o FILE] [--stop] */
#include "command.h"
#include "kept.h"
#include "profile.h"

#include <stdlib.h>
#include <unistd.h>

typedef enum format { JSON, PPROF, HEAP_V2, FORMATS } format_t;

typedef struct order {
    format_t format;
    const char *note;
} order_t;

static bool format_parse(format_t *format, const char *name) {
    static const char *const names[] = {"json", "pprof", "heap_v2"};
    for (*format = 0; *format < FORMATS; (*format)++) {
        if (strcmp(name, names[*format]) == 0) {
            return true;
        }
    }
    return false;
}

static bool order_parse(order_t *order, obs_job_t *job, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc) {
            if (!format_parse(&order->format, argv[++i])) {
                return false;
            }
        } else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            job->file = argv[++i];
        } else if (strcmp(argv[i], "--json") == 0) {
            order->format = JSON;
        } else if (strcmp(argv[i], "--stop") == 0) {
            job->is_stop = true;
        } else if (argv[i][0] == '-' || job->target != NULL) {
            return false;
        } else {
            job->target = argv[i];
        }
    }
    return job->target != NULL;
}

static void write_profile(obs_image_t *image, const hak_sink_t *sink, void *context) {
    order_t *order = context;
    static obs_write_profile_t *const writers[] = {
        [PPROF] = obs_write_pprof, [HEAP_V2] = obs_write_heap_v2};
    order->note = order->format == JSON ? obs_write_profile_json(image, sink)
                                        : obs_write_profile(image, sink, writers[order->format]);
}

/* Of a file that a process left. */
static int command_kept(const order_t *order, const obs_job_t *job) {
    static obs_copy_t copy;
    static obs_write_profile_t *const writers[] = {
        [JSON] = obs_write_json_copy, [PPROF] = obs_write_pprof, [HEAP_V2] = obs_write_heap_v2};
    char *text = NULL;
    size_t length = 0;
    const char *error = obs_kept_read(job->target, &copy);
    FILE *memory = error == NULL ? open_memstream(&text, &length) : NULL;
    if (memory == NULL) {
        return obs_say(error != NULL ? error : "no memory");
    }
    const hak_sink_t sink = {.put = obs_put_stream, .context = memory};
    writers[order->format](&sink, &copy);
    fclose(memory);
    int result = obs_put_text(job, text, length);
    free(text);
    if (copy.doubt != NULL && result == 0) {
        obs_say(copy.doubt);
    }
    return result;
}

int obs_command_profile(int argc, char **argv) {
    order_t order = {0};
    obs_job_t job = {.is_quick = true, .write = write_profile, .context = &order};
    if (!order_parse(&order, &job, argc, argv)) {
        return obs_usage();
    }
    bool is_binary = order.format == PPROF && job.file == NULL;
    if (is_binary && isatty(STDOUT_FILENO)) {
        return obs_say("pprof's form is no text: give it a file (-o)");
    }
    bool is_pid = job.target[strspn(job.target, "0123456789")] == '\0';
    if (!is_pid && obs_kept_is(job.target)) {
        return job.is_stop ? obs_say("a file cannot be stopped") : command_kept(&order, &job);
    }
    int result = obs_run(&job);
    if (order.note != NULL && result == 0) {
        obs_say(order.note);
    }
    return result;
}
