/* SPDX-License-Identifier: MIT
 *
 * One request of HTTP/1.x and its answer in HTTP/1.0. Only the first line of the request counts.
 * CONTROL-3 bounds every wait. */
#include "base/atomics.h"
#include "base/version.h"
#include "control/control.h"

#include <string.h>

enum { SERVE_PIECE_BYTES = 64 << 10 };          /* between two reads of the clock */
static const uint64_t SERVE_NAP_NS = 100000000; /* between two reads of should_stop */

typedef struct serve_status {
    unsigned code;
    const char *reason;
} serve_status_t;

static const serve_status_t serve_statuses[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {503, "Service Unavailable"},
};

typedef struct request {
    const char *path; /* within the text, without a query */
    size_t path_length;
    bool is_post; /* else GET */
} request_t;

/* --- the request ------------------------------------------------------------------------------ */

/* Whether the text has the empty line that ends a request, with either kind of line end. */
static bool request_is_complete(const char *text, size_t length) {
    for (size_t i = 1; i < length; i++) {
        bool is_end = text[i] == '\n' && (text[i - 1] == '\n' ||
                                          (i > 1 && text[i - 1] == '\r' && text[i - 2] == '\n'));
        if (is_end) {
            return true;
        }
    }
    return false;
}

/* Length of the leading printable, non-blank characters. */
static size_t request_word(const char *text, size_t length) {
    size_t i = 0;
    while (i < length && text[i] > ' ' && text[i] < 0x7f) {
        i++;
    }
    return i;
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

static bool request_is_method(const char *text, size_t length, const char *method) {
    return strlen(method) == length && memcmp(text, method, length) == 0;
}

/* The HTTP status of the request line; 0: the request is incomplete. */
static unsigned request_parse(const char *text, size_t length, request_t *request) {
    *request = (request_t){.path = text};
    if (!request_is_complete(text, length)) {
        return 0;
    }
    const char *end = memchr(text, '\n', length);
    size_t line = (size_t)(end - text);
    size_t method = request_word(text, line);
    if (method == 0 || method == line || text[method] != ' ') {
        return 400;
    }
    const char *target = text + method + 1;
    size_t rest = line - method - 1;
    size_t target_length = request_word(target, rest);
    if (target_length == 0 || target_length == rest || target[target_length] != ' ' ||
        target[0] != '/' ||
        !request_is_version(target + target_length + 1, rest - target_length - 1)) {
        return 400;
    }
    const char *query = memchr(target, '?', target_length);
    request->path = target;
    request->path_length = query != NULL ? (size_t)(query - target) : target_length;
    request->is_post = request_is_method(text, method, "POST");
    return request->is_post || request_is_method(text, method, "GET") ? 200 : 405;
}

static const hak_control_topic_t *topic_find(const hak_control_topic_t *topic, const char *path,
                                             size_t length) {
    while (topic->path != NULL &&
           (strlen(topic->path) != length || memcmp(topic->path, path, length) != 0)) {
        topic++;
    }
    return topic->path != NULL ? topic : NULL;
}

const hak_control_topic_t *hak_control_find(const char *path, size_t length) {
    return topic_find(hak_control_tables.topics, path, length);
}

void hak_control_list(unsigned which, const hak_sink_t *sink) {
    (void)which;
    for (const hak_control_topic_t *topic = hak_control_tables.topics; topic->path != NULL;
         topic++) {
        hak_sink_format(sink, "%s\n", topic->path);
    }
    for (const hak_control_topic_t *topic = hak_control_tables.actions; topic->path != NULL;
         topic++) {
        hak_sink_format(sink, "POST %s\n", topic->path);
    }
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

typedef struct peer_wish {
    const hak_control_topic_t *topic;
    bool is_action; /* the path is an action's: POST would do */
} peer_wish_t;

static unsigned peer_choose(const request_t *request, unsigned status, peer_wish_t *wish) {
    const char *path = request->path;
    const hak_control_topic_t *topic = hak_control_find(path, request->path_length);
    const hak_control_topic_t *action =
        topic_find(hak_control_tables.actions, path, request->path_length);
    wish->topic = request->is_post ? action : topic;
    wish->is_action = action != NULL;
    if (status == 405 || wish->topic != NULL) {
        return status;
    }
    return request->is_post || wish->is_action ? 405 : 404;
}

/* Receives until complete, too long, or too late. Returns the status; 0: no answer. */
static unsigned peer_request(int peer, char *text, peer_wish_t *wish, const uint32_t *should_stop) {
    uint64_t due_ns = hak_os_now_ns() + HAK_CONTROL_REQUEST_NS;
    request_t request = {0};
    size_t length = 0;
    unsigned status = 0;
    while (status == 0 && length < HAK_CONTROL_REQUEST_BYTES) {
        long got = hak_os_receive(peer, text + length, HAK_CONTROL_REQUEST_BYTES - length);
        if (got == 0 || (got == HAK_OS_NOT_NOW && !peer_await(peer, false, due_ns, should_stop))) {
            return length == 0 ? 0 : 400;
        }
        if (got > 0) {
            length += (size_t)got;
            status = request_parse(text, length, &request);
        }
    }
    if (status == 200 || status == 405) {
        status = peer_choose(&request, status, wish);
    }
    return status != 0 ? status : 400;
}

/* --- the answer ------------------------------------------------------------------------------- */

static const char *status_reason(unsigned code) {
    const serve_status_t *status = serve_statuses;
    while (status->code != code) {
        status++;
    }
    return status->reason;
}

static void answer_head(hak_text_t *head, unsigned status, const char *type, size_t length,
                        const char *more) {
    hak_text_format(head,
                    "HTTP/1.0 %u %s\r\nServer: hakmem/" HAK_VERSION_TEXT "\r\n"
                    "X-Hakmem-Control: 1\r\nContent-Type: %s\r\nContent-Length: %z\r\n",
                    status, status_reason(status), type, length);
    hak_text_str(head, more);
    hak_text_str(head, "Cache-Control: no-store\r\nConnection: close\r\n\r\n");
}

static void answer_error(hak_text_t *head, unsigned status, bool is_action) {
    const char *reason = status_reason(status);
    answer_head(head, status, "text/plain; charset=utf-8", strlen(reason) + 1,
                status != 405 ? ""
                : is_action   ? "Allow: POST\r\n"
                              : "Allow: GET\r\n");
    hak_text_format(head, "%s\n", reason);
}

void hak_control_serve(int peer, const uint32_t *should_stop) {
    char text[HAK_CONTROL_REQUEST_BYTES]; /* the request, then the head of the answer */
    peer_wish_t wish = {0};
    hak_body_t body = {0};
    unsigned status = peer_request(peer, text, &wish, should_stop);
    hak_text_t head;
    hak_text_init(&head, text, sizeof text);
    if (status == 200) {
        hak_body_make(&body, wish.topic);
        status = body.is_cut ? 503 : 200;
    }
    uint64_t most_ns = hak_os_now_ns() + HAK_CONTROL_ANSWER_MOST_NS;
    if (status == 200) {
        answer_head(&head, status, wish.topic->type, body.length, "");
    } else if (status != 0) {
        answer_error(&head, status, wish.is_action);
    }
    if (peer_send(peer, head.data, head.length, most_ns, should_stop) && status == 200) {
        (void)peer_send(peer, body.data, body.length, most_ns, should_stop);
    }
    hak_body_drop(&body);
    hak_os_hang_up(peer);
}
