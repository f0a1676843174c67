/* SPDX-License-Identifier: MIT
 *
 * The observer: reports of another program's heap. One line says why there is none. */
#ifndef OBS_OBSERVE_H
#define OBS_OBSERVE_H

#include "image.h"

#include <signal.h>

typedef enum obs_verb {
    OBS_EXPLAIN,
    OBS_STATS,
    OBS_MAP,
    OBS_SUMMARY, /* five lines */
    OBS_PROFILE, /* the heap profile: docs/schema/profile.schema.json */
    OBS_LEAKS,   /* what is still allocated, by call site */
    OBS_HEAP,    /* the profile as text for pprof */
    OBS_HEAP_V2, /* for jeprof */
} obs_verb_t;

typedef enum obs_form { OBS_TEXT, OBS_JSON, OBS_METRICS } obs_form_t;

/* Writes a report of the image that was opened. Map and profile are always JSON, the summary and
 * leaks are text, and metrics are those of OBS_STATS. */
void obs_report(obs_image_t *image, obs_verb_t verb, obs_form_t form, const hak_sink_t *sink);

typedef struct obs_thread {
    uint32_t id;
    int signal; /* that it had taken when it was stopped; 0: none */
} obs_thread_t;

/* For how long it may stand while it is read. */
#define OBS_STAND_NS 10000000000ull

/* A process whose threads are all stopped. It runs on if the observer ends. */
typedef struct obs_stopped {
    uint32_t pid;
    obs_thread_t *thread;
    size_t count, room;
    uint64_t began_ns;
    sigset_t mask;   /* of the observer, before */
    char error[256]; /* one line, without its end */
} obs_stopped_t;
/* false: stopped->error says why, and it runs. */
bool obs_stop(obs_stopped_t *stopped, uint32_t pid);
/* Returns for how many ns it stood. */
uint64_t obs_continue(obs_stopped_t *stopped);

#endif
