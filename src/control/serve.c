/* SPDX-License-Identifier: MIT
 *
 * One request of HTTP/1.x, by its first line; its answer in HTTP/1.0. CONTROL-3 bounds waits. */
#include "base/atomics.h"
#include "base/version.h"
#include "control/control.h"

#include <string.h>

enum { SERVE_PIECE_BYTES = 64 << 10 };          /* between two reads of the clock */
static const uint64_t SERVE_NAP_NS = 100000000; /* between two reads of should_stop */

/* The status of an answer is one of these; NULL: there is no answer, or none yet. */
static const char SERVE_OK[] = "200 OK", SERVE_BAD[] = "400 Bad Request",
                  SERVE_UNKNOWN[] = "404 Not Found", SERVE_METHOD[] = "405 Method Not Allowed",
                  SERVE_NO_MEMORY[] = "503 Service Unavailable";

typedef struct request {
    const hak_control_topic_t *topic; /* NULL: none */
    bool is_action;                   /* the path is an action's: POST would do */
    const char *query;                /* of the topic, in the request's text */
    size_t query_length;
} request_t;

/* --- the request ------------------------------------------------------------------------------ */

/* Whether the text has the empty line that ends a request, with either kind of line end. */
static bool request_is_complete(const char *text, size_t length) {
    return memmem(text, length, "\n\n", 2) != NULL || memmem(text, length, "\n\r\n", 3) != NULL;
}

static bool is_word_char(char c) {
    return c > ' ' && c < 0x7f;
}

/* Length of the printable, non-blank characters at *at, which a blank follows; moves *at behind it.
 * 0: there are none, or no blank follows. */
static size_t request_word(const char **at, const char *end) {
    const char *from = *at, *to = from;
    while (to < end && is_word_char(*to)) {
        to++;
    }
    if (to == end || *to != ' ') {
        return 0;
    }
    *at = to + 1;
    return (size_t)(to - from);
}

static bool request_is_version(const char *text, size_t length) {
    static const char prefix[] = "HTTP/1.";
    enum { PREFIX = sizeof prefix - 1 };
    if (length > 0 && text[length - 1] == '\r') {
        length--;
    }
    return length == PREFIX + 1 && memcmp(text, prefix, PREFIX) == 0 && text[PREFIX] >= '0' &&
           text[PREFIX] <= '9';
}

const hak_control_topic_t *hak_control_find(const char *path, size_t length, bool is_action) {
    const hak_control_topic_t *topic = hak_control_table.topics;
    while (topic->path != NULL &&
           ((topic->act != NULL) != is_action || !hak_is_word(topic->path, path, length))) {
        topic++;
    }
    return topic->path != NULL ? topic : NULL;
}

void hak_control_list(unsigned which, const hak_sink_t *sink) {
    (void)which;
    for (const hak_control_topic_t *at = hak_control_table.topics; at->path != NULL; at++) {
        hak_sink_format(sink, "%s%s\n", at->act != NULL ? "POST " : "", at->path);
    }
}

/* The status of the request line; NULL: the request is incomplete. */
static const char *request_parse(const char *text, size_t length, request_t *request) {
    if (!request_is_complete(text, length)) {
        return NULL;
    }
    const char *at = text, *end = memchr(text, '\n', length);
    size_t method = request_word(&at, end);
    const char *target = at;
    size_t target_length = method != 0 ? request_word(&at, end) : 0;
    if (target_length == 0 || target[0] != '/' || !request_is_version(at, (size_t)(end - at))) {
        return SERVE_BAD;
    }
    const char *query = memchr(target, '?', target_length);
    size_t path_length = query != NULL ? (size_t)(query - target) : target_length;
    bool is_post = hak_is_word("POST", text, method);
    request->query = query != NULL ? query + 1 : target + target_length;
    request->query_length = (size_t)(target + target_length - request->query);
    request->topic = hak_control_find(target, path_length, is_post);
    request->is_action = hak_control_find(target, path_length, true) != NULL;
    if (!is_post && !hak_is_word("GET", text, method)) {
        return SERVE_METHOD;
    }
    return request->topic != NULL          ? SERVE_OK
           : is_post || request->is_action ? SERVE_METHOD
                                           : SERVE_UNKNOWN;
}

/* --- the peer --------------------------------------------------------------------------------- */

/* false: out of time, or stopped. */
static bool peer_await(int peer, bool is_to_send, uint64_t due_ns, const uint32_t *should_stop) {
    while (hak_load_relaxed(should_stop) == 0) {
        uint64_t now = hak_os_now_ns();
        if (now >= due_ns) {
            return false;
        }
        uint64_t left = due_ns - now;
        if (hak_os_await(peer, is_to_send, left < SERVE_NAP_NS ? left : SERVE_NAP_NS)) {
            return true;
        }
    }
    return false;
}

/* A peer that keeps reading gets more time, until most_ns. */
static bool peer_send(int peer, const char *data, size_t length, uint64_t most_ns,
                      const uint32_t *should_stop) {
    uint64_t due_ns = 0;
    for (long done = 1; length > 0;) {
        if (done > 0) {
            uint64_t now = hak_os_now_ns(), soon_ns = now + HAK_CONTROL_ANSWER_NS;
            if (now >= most_ns) {
                return false;
            }
            due_ns = soon_ns < most_ns ? soon_ns : most_ns;
        }
        done = hak_os_send(peer, data, length < SERVE_PIECE_BYTES ? length : SERVE_PIECE_BYTES);
        if (done == 0 || (done == HAK_OS_NOT_NOW && !peer_await(peer, true, due_ns, should_stop))) {
            return false;
        }
        if (done > 0) {
            data += done;
            length -= (size_t)done;
        }
    }
    return true;
}

/* Receives until complete, too long, or too late. Returns the status; NULL: no answer. */
static const char *peer_request(int peer, char *text, request_t *request,
                                const uint32_t *should_stop) {
    uint64_t due_ns = hak_os_now_ns() + HAK_CONTROL_REQUEST_NS;
    size_t length = 0;
    const char *status = NULL;
    while (status == NULL && length < HAK_CONTROL_REQUEST_BYTES) {
        long got = hak_os_receive(peer, text + length, HAK_CONTROL_REQUEST_BYTES - length);
        if (got == 0 || (got == HAK_OS_NOT_NOW && !peer_await(peer, false, due_ns, should_stop))) {
            return length == 0 ? NULL : SERVE_BAD;
        }
        if (got > 0) {
            length += (size_t)got;
            status = request_parse(text, length, request);
        }
    }
    return status != NULL ? status : SERVE_BAD;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void answer_head(hak_text_t *head, const char *status, const char *type, size_t length,
                        const char *more) {
    hak_text_format(head,
                    "HTTP/1.0 %s\r\nServer: hakmem/" HAK_VERSION_TEXT "\r\n"
                    "X-Hakmem-Control: 1\r\nContent-Type: %s\r\nContent-Length: %z\r\n",
                    status, type, length);
    hak_text_str(head, more);
    hak_text_str(head, "Cache-Control: no-store\r\nConnection: close\r\n\r\n");
}

static void answer_error(hak_text_t *head, const char *status, bool is_action) {
    const char *reason = status + sizeof "400";
    answer_head(head, status, "text/plain; charset=utf-8", strlen(reason) + 1,
                status != SERVE_METHOD ? ""
                : is_action            ? "Allow: POST\r\n"
                                       : "Allow: GET\r\n");
    hak_text_format(head, "%s\n", reason);
}

void hak_control_serve(int peer, const uint32_t *should_stop) {
    char text[HAK_CONTROL_REQUEST_BYTES]; /* the request, then the head of the answer */
    request_t request = {0};
    hak_body_t body = {0};
    const char *status = peer_request(peer, text, &request, should_stop);
    hak_text_t head = {.data = text, .capacity = sizeof text};
    if (status == SERVE_OK && request.topic->act != NULL &&
        !request.topic->act(request.query, request.query_length)) {
        status = SERVE_BAD;
    }
    if (status == SERVE_OK) {
        hak_body_make(&body, request.topic);
        status = body.is_cut ? SERVE_NO_MEMORY : SERVE_OK;
    }
    uint64_t most_ns = hak_os_now_ns() + HAK_CONTROL_ANSWER_MOST_NS;
    if (status == SERVE_OK) {
        answer_head(&head, status, request.topic->type, body.length, "");
    } else if (status != NULL) {
        answer_error(&head, status, request.is_action);
    }
    if (peer_send(peer, head.data, head.length, most_ns, should_stop) && status == SERVE_OK) {
        (void)peer_send(peer, body.data, body.length, most_ns, should_stop);
    }
    hak_body_drop(&body);
    hak_os_hang_up(peer);
}
