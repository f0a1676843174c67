/* SPDX-License-Identifier: MIT
 *
 * The commands of hakmem-observe: each returns the exit status. */
#ifndef OBS_COMMAND_H
#define OBS_COMMAND_H

#include "observe.h"

/* What is written of a program. */
typedef struct obs_job {
    const char *target; /* a PID, or the path of a core file */
    const char *file;   /* NULL: standard output */
    bool is_stop;
    bool is_quick;     /* without RSS of each mapping */
    bool is_line;      /* newlines become blanks */
    bool is_folded;    /* lines to the width of the terminal */
    uint64_t every_ns; /* 0: once */
    void (*write)(obs_image_t *image, const hak_sink_t *sink, void *context);
    void *context;
} obs_job_t;
int obs_run(const obs_job_t *job);
/* The same of what is at hand: writes a text to where the job says. */
int obs_put_text(const obs_job_t *job, char *text, size_t length);
/* The `put` of a sink whose context is a stream. */
void obs_put_stream(void *stream, const char *data, size_t length);

/* Prints a line on standard error, and returns 1. */
int obs_say(const char *text);
/* Prints how the program is used, and returns 1. */
int obs_usage(void);

int obs_command_profile(int argc, char **argv);
int obs_command_check(int argc, char **argv);
int obs_command_options(int argc, char **argv);
int obs_command_ps(int argc, char **argv);
int obs_command_tell(int argc, char **argv);

#endif
