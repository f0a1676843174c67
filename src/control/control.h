/* SPDX-License-Identifier: MIT
 *
 * The control channel, HTTP on a unix socket served by a thread of ours (life/control.c). life/
 * fills in the table of topics.
 *
 *   CONTROL-1  Nothing here runs with a lock held, or takes one; only the writers of topics do,
 *              before the peer gets a byte.
 *   CONTROL-2  The descriptors of the channel are in the table of its own thread.
 *   CONTROL-3  A peer costs at most HAK_CONTROL_REQUEST_NS and HAK_CONTROL_ANSWER_MOST_NS, and
 *              HAK_CONTROL_ANSWER_NS if it reads nothing. */
#ifndef HAK_CONTROL_CONTROL_H
#define HAK_CONTROL_CONTROL_H

#include "base/fmt.h"
#include "os/optional.h"
#include "os/socket.h"

typedef struct hak_control_topic {
    const char *path, *type; /* HTTP: "/stats.json", "application/json" */
    void (*write)(unsigned which, const hak_sink_t *sink);
    unsigned which;
    /* For POST: does it, with the text behind the path's question mark, before the answer is
     * written. false: it understands no such text, or cannot do it. NULL: a topic for GET. */
    bool (*act)(const char *query, size_t length);
} hak_control_topic_t;

/* The table ends with a NULL path. */
typedef struct hak_control_table {
    const hak_control_topic_t *topics;
} HAK_SEALED hak_control_table_t;
extern hak_control_table_t hak_control_table; /* [init] */
/* NULL: none */
const hak_control_topic_t *hak_control_find(const char *path, size_t length, bool is_action);
/* A topic: the paths of all topics and actions. */
void hak_control_list(unsigned which, const hak_sink_t *sink);

enum { HAK_CONTROL_REQUEST_BYTES = 4096, HAK_CONTROL_PATH_BYTES = 1536 /* 255 bytes, all %p */ };
static const uint64_t HAK_CONTROL_REQUEST_NS = 1000000000, HAK_CONTROL_ANSWER_NS = 2000000000,
                      HAK_CONTROL_ANSWER_MOST_NS = 30000000000;

/* --- text_mapping.c: a text of any length, in its own mapping --------------------------------- */
typedef struct hak_body {
    char *data;
    size_t length, capacity;
    bool is_cut; /* memory ran out */
} hak_body_t;

/* The topic's document. hak_body_drop unmaps it. */
void hak_body_make(hak_body_t *body, const hak_control_topic_t *topic);
void hak_body_drop(hak_body_t *body);

/* --- serve.c: one request, one answer --------------------------------------------------------- */
/* Reads a request, answers it, and hangs up; early once another thread sets `should_stop`. */
void hak_control_serve(int peer, const uint32_t *should_stop);

/* --- channel.c: the socket -------------------------------------------------------------------- */
/* Replaces %p by the process's ID and %e by its program's name. false: too long. */
bool hak_control_path(const char *pattern, char *path, size_t capacity);
/* Makes the socket, in the thread that will serve it. Returns NULL, or the error. */
const char *hak_control_open(const char *pattern);
/* Serves, in the thread that opened it, until `should_stop`. */
void hak_control_run(const uint32_t *should_stop);
/* Removes the socket if this process made it; in any thread. */
void hak_control_remove(void);
/* In the child of a fork: the socket is the parent's, even if both have one ID, in two
 * namespaces. */
void hak_control_after_fork(void);
/* Prints a warning about an option's value. */
void hak_control_warn(const char *option, const char *pattern, const char *message);

#endif
