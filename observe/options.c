/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe options PID|CORE: the options in force, whoever set them, as JSON. Those that only
 * the start of a program reads are not among them: they are in its environment. */
#include "command.h"

#include "base/bits.h"

typedef struct option {
    const char *name;
    uint64_t value, initial;
    char kind;                 /* of its type: the first letter */
    const char *const *choice; /* its names; NULL: it is a number */
    size_t choices;
} option_t;

static void value_put(const hak_sink_t *sink, const option_t *option, uint64_t value) {
    static const char suffix[] = " kmgt";
    unsigned k = 0;
    if (option->choice != NULL) {
        hak_sink_format(sink, "\"%s\"", value < option->choices ? option->choice[value] : "?");
        return;
    }
    for (; option->kind == 'B' && value != 0 && value % 1024 == 0 && k < 4; k++) {
        value /= 1024;
    }
    hak_sink_format(sink, "\"%l", value);
    hak_sink_format(sink, k != 0 ? "%c\"" : "\"", suffix[k]);
}

static void option_put(const hak_sink_t *sink, const option_t *option, const char *comma) {
    hak_sink_format(sink, "%s{\"name\":\"%s\",\"value\":", comma, option->name);
    value_put(sink, option, option->value);
    hak_sink_format(sink, ",\"default\":");
    value_put(sink, option, option->initial);
    hak_sink_format(sink, "}");
}

/* A switch is no size, however large: its letter is that of no unit. */
#define KIND_BOOL 'S', NULL, 0
#define KIND_COUNT 'C', NULL, 0
#define KIND_PERCENT 'P', NULL, 0
#define KIND_BYTES 'B', NULL, 0
#define KIND_TEXT 'T', NULL, 0
#define KIND_CHOICE(...)                                                                           \
    'N', (const char *const[]){__VA_ARGS__},                                                       \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define ROW_OWN(name, type, initial, knob)
#define ROW_START(name, type, initial, knob)                                                       \
    option_put(sink, &(option_t){#name, knobs->knob, initial, KIND_##type}, comma);                \
    comma = ",\n";
#define ROW_LIVE ROW_START
#define ROW_ALWAYS ROW_START

static void options_put(const hak_sink_t *sink, const obs_knobs_t *knobs) {
    const char *comma = "\n";
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text)                             \
    ROW_##kept(name, type, initial, knob)
#include "base/options.def"
#undef HAK_OPTION
}

static void write_options(obs_image_t *image, const hak_sink_t *sink, void *context) {
    (void)context;
    hak_sink_format(sink, "{\"hakmem\":\"%s\",\"schema\":1,\"pid\":%u,\n\"options\":[",
                    image->library, image->reader->pid);
    options_put(sink, &image->knobs);
    hak_sink_format(sink, "]}\n");
}

int obs_command_options(int argc, char **argv) {
    const obs_job_t job = {.target = argv[1], .is_quick = true, .write = write_options};
    return argc == 2 && argv[1][0] != '-' ? obs_run(&job) : obs_usage();
}
