/* SPDX-License-Identifier: MIT
 *
 * The socket of the control channel. A thread with its own descriptors (CONTROL-2) creates it and
 * serves one peer after another; any thread may remove it. */
#include "base/atomics.h"
#include "base/bits.h"
#include "base/check.h"
#include "control/control.h"

#include <string.h>

enum { CHANNEL_SHOWN_BYTES = 256 /* in a warning */, CHANNEL_PATH_BYTES = 108 /* of a socket */ };

static const uint64_t CHANNEL_NAP_NS = 200000000; /* between two reads of should_stop */
static const uint64_t CHANNEL_REFUSED_NS = 5000000;

static const hak_control_topic_t channel_no_topics[1];
hak_control_table_t hak_control_table = {channel_no_topics};

static char channel_path[CHANNEL_PATH_BYTES]; /* [thread] channel's, until channel_process */
static hak_os_file_id_t channel_file;         /* [thread] the same */
static uint32_t channel_process; /* [atomic] ID of the process that made the socket; 0: none */
static int channel_listener;     /* [thread] the channel's */

bool hak_control_path(const char *pattern, char *path, size_t capacity) {
    hak_text_t text = {.data = path, .capacity = capacity};
    for (const char *at = pattern; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            hak_text_uint(&text, hak_os_process_id());
            at++;
        } else if (at[0] == '%' && at[1] == 'e') {
            hak_text_str(&text, hak_os_program());
            at++;
        } else {
            hak_text_mem(&text, at, 1);
        }
    }
    if (text.length == capacity) {
        return false;
    }
    path[text.length] = '\0';
    return true;
}

void hak_control_warn(const char *option, const char *pattern, const char *message) {
    hak_warn("%s: %m: %s", option, pattern, hak_least(strlen(pattern), CHANNEL_SHOWN_BYTES),
             message);
}

/* false: an abstract name, never a file of that name. */
static bool channel_is_file(void) {
    return channel_path[0] != '@';
}

/* Replaces a socket without a listener. NULL, or the error. */
static const char *channel_listen_alone(void) {
    hak_os_file_id_t there;
    hak_os_listen_t result = hak_os_listen(channel_path, &channel_listener);
    if (result == HAK_OS_LISTEN_TAKEN) {
        bool is_file = channel_is_file();
        if (is_file && !hak_os_find_socket(channel_path, &there)) {
            return "a file that is no socket is there, and stays";
        }
        if (!is_file || !hak_os_is_deserted(channel_path)) {
            return "another process listens there; with %p, its ID, each has a path of its own";
        }
        (void)hak_os_remove_socket(channel_path, &there);
        result = hak_os_listen(channel_path, &channel_listener);
    }
    return result == HAK_OS_LISTEN_DONE ? NULL : "no socket can be made there";
}

/* Between bind and listen a socket looks abandoned: processes that start together wait in turn. */
static const char *channel_listen(void) {
    int lock = channel_is_file() ? hak_os_lock_folder(channel_path) : -1;
    const char *failure = channel_listen_alone();
    if (lock >= 0) {
        hak_os_close_file(lock);
    }
    return failure;
}

/* Relative paths are refused: the program may change its folder, and clients have another. */
const char *hak_control_open(const char *pattern) {
    if (pattern[0] != '/' && pattern[0] != '@') {
        return "the path has to begin with a /, or be a name behind an @";
    }
    if (strcmp(pattern, "@") == 0) {
        return "a name has to follow the @";
    }
    if (!hak_os_own_descriptors()) {
        return "a thread cannot have descriptors of its own here (close_range, Linux 5.9)";
    }
    if (!hak_control_path(pattern, channel_path, sizeof channel_path)) {
        return "too long for a socket, which takes 107 bytes";
    }
    const char *failure = channel_listen();
    if (failure == NULL) {
        channel_file = (hak_os_file_id_t){0};
        if (channel_is_file()) {
            (void)hak_os_find_socket(channel_path, &channel_file);
        }
        hak_store_release(&channel_process, hak_os_process_id()); /* pairs CHANNEL */
    }
    return failure;
}

/* Rests while no connection can be accepted, as when the process has no descriptors left, and
 * briefly after a refused peer: another user could keep it busy. */
void hak_control_run(const uint32_t *should_stop) {
    while (hak_load_relaxed(should_stop) == 0) {
        int peer = -1;
        if (!hak_os_await(channel_listener, false, CHANNEL_NAP_NS)) {
            continue;
        }
        if (!hak_os_accept(channel_listener, &peer)) {
            hak_os_sleep(CHANNEL_NAP_NS);
        } else if (peer < 0) {
            hak_os_sleep(CHANNEL_REFUSED_NS);
        } else {
            hak_control_serve(peer, should_stop);
        }
    }
}

void hak_control_remove(void) {
    if (hak_load_acquire(&channel_process) == hak_os_process_id()) { /* pairs CHANNEL */
        hak_store_relaxed(&channel_process, 0);
        if (channel_is_file()) {
            (void)hak_os_remove_socket(channel_path, &channel_file);
        }
    }
}

void hak_control_after_fork(void) {
    hak_store_relaxed(&channel_process, 0);
}
