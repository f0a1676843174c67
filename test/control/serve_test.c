/* SPDX-License-Identifier: MIT
 *
 * One peer of the control channel: any request gets the answer it deserves, and no peer is waited
 * for longer than it should be. */
#include "control/control.h"
#include "double/os_fault.h"
#include "unit/unit.h"

#include "base/atomics.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MOST = 8 << 20, LARGE_LINES = 200000, LARGE_BYTES = LARGE_LINES * 16 };

static void write_small(unsigned which, const hak_sink_t *sink) {
    hak_sink_format(sink, "small %u\n", which);
}

static void write_large(unsigned which, const hak_sink_t *sink) {
    for (unsigned i = 0; i < LARGE_LINES; i++) {
        hak_sink_format(sink, "%c%c line of 16 b\n", (char)('a' + i % 26), (char)('a' + which));
    }
}

/* What stands behind the question mark; nothing else than x will do. */
static bool act_on(const char *query, size_t length) {
    return length == 0 || hak_is_word("x", query, length);
}

static const hak_control_topic_t topics[] = {
    {"/", "text/plain", hak_control_list, 0, NULL},
    {"/small", "text/small", write_small, 7, NULL},
    {"/large", "text/large", write_large, 1, NULL},
    {"/act", "text/small", write_small, 8, act_on},
    {0},
};

static uint32_t is_over;
static char answer[ANSWER_MOST];
static size_t answer_length;

typedef struct client {
    int fd;
    const char *request;
    size_t length, step; /* so many bytes at a time */
} client_t;

/* Sends, then reads to the end, which is no reset. */
static void *client_talk(void *argument) {
    client_t *client = argument;
    for (size_t at = 0; at < client->length; at += client->step) {
        size_t left = client->length - at;
        size_t bytes = left < client->step ? left : client->step;
        if (send(client->fd, client->request + at, bytes, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    shutdown(client->fd, SHUT_WR);
    answer_length = 0;
    ssize_t done;
    while ((done = read(client->fd, answer + answer_length, ANSWER_MOST - 1 - answer_length)) > 0) {
        answer_length += (size_t)done;
    }
    assert_int_equal(done, 0);
    answer[answer_length] = '\0';
    close(client->fd);
    return NULL;
}

static void ask(const char *request, size_t length, size_t step) {
    int pair[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    client_t client = {pair[0], request, length, step};
    hak_os_fault_stop_clock(); /* the client may be slow: this is about what it asks */
    assert_int_equal(pthread_create(&thread, NULL, client_talk, &client), 0);
    hak_control_serve(pair[1], &is_over);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static unsigned answer_status(void) {
    unsigned status = 0;
    (void)sscanf(answer, "HTTP/1.0 %u ", &status);
    return status;
}

static const char *answer_body(void) {
    const char *end = strstr(answer, "\r\n\r\n");
    assert_non_null(end);
    const char *length = strstr(answer, "Content-Length: ");
    assert_non_null(length);
    size_t bytes = answer_length - (size_t)(end + 4 - answer);
    assert_int_equal(strtoull(length + strlen("Content-Length: "), NULL, 10), bytes);
    return end + 4;
}

static void topic_is_answered_with_its_type_and_length(void **state) {
    (void)state;
    static const char request[] = "GET /small?x=y HTTP/1.1\r\nHost: any\r\n\r\n";
    ask(request, sizeof request - 1, SIZE_MAX / 2);
    assert_int_equal(answer_status(), 200);
    assert_non_null(strstr(answer, "\r\nServer: hakmem/"));
    assert_non_null(strstr(answer, "\r\nX-Hakmem-Control: 1\r\n"));
    assert_non_null(strstr(answer, "\r\nContent-Type: text/small\r\n"));
    assert_string_equal(answer_body(), "small 7\n");
}

static void topic_of_many_megabytes_arrives_whole(void **state) {
    (void)state;
    static const char request[] = "GET /large HTTP/1.0\r\n\r\n";
    ask(request, sizeof request - 1, SIZE_MAX / 2);
    assert_int_equal(answer_status(), 200);
    const char *body = answer_body();
    assert_int_equal(strlen(body), LARGE_BYTES);
    assert_memory_equal(body + LARGE_BYTES - 16, "hb line of 16 b\n", 16); /* 199 999 % 26 */
}

static void request_in_single_bytes_is_answered(void **state) {
    (void)state;
    static const char request[] = "GET / HTTP/1.0\nA: b\n\n";
    ask(request, sizeof request - 1, 1);
    assert_int_equal(answer_status(), 200);
    assert_string_equal(answer_body(), "/\n/small\n/large\nPOST /act\n");
}

static void every_request_gets_the_status_it_deserves(void **state) {
    (void)state;
    static const struct {
        const char *request;
        unsigned status;
    } rows[] = {
        {"GET / HTTP/1.0\r\n\r\n", 200},
        {"GET /? HTTP/1.9\n\n", 200},
        {"GET / HTTP/1.0\r\n\n", 200},
        {"GET /none HTTP/1.0\r\n\r\n", 404},
        {"GET /smal HTTP/1.0\r\n\r\n", 404},
        {"GET /small/ HTTP/1.0\r\n\r\n", 404},
        {"POST / HTTP/1.0\r\n\r\n", 405},
        {"POST /none HTTP/1.0\r\n\r\n", 405},
        {"POST /act HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody", 200},
        {"POST /act?x HTTP/1.0\r\n\r\n", 200},
        {"POST /act? HTTP/1.0\r\n\r\n", 200},
        {"POST /act?y HTTP/1.0\r\n\r\n", 400},
        {"POST /act?xx HTTP/1.0\r\n\r\n", 400},
        {"GET /act HTTP/1.0\r\n\r\n", 405},
        {"PUT /act HTTP/1.0\r\n\r\n", 405},
        {"POS /act HTTP/1.0\r\n\r\n", 405},
        {"get / HTTP/1.0\r\n\r\n", 405},
        {"GETS / HTTP/1.0\r\n\r\n", 405},
        {"GET / HTTP/2.0\r\n\r\n", 400},
        {"GET / HTTP/1.10\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET  / HTTP/1.0\r\n\r\n", 400},
        {"GET http://a/ HTTP/1.0\r\n\r\n", 400},
        {"GET /\x01 HTTP/1.0\r\n\r\n", 400},
        {" GET / HTTP/1.0\r\n\r\n", 400},
        {"GET", 400},
        {"GET / HTTP/1.0\r\n", 400},
        {"\r\n\r\n", 400},
        {"", 0},
        {"GET / HTTP/1.0 \r\n\r\n", 400},
        {"\xff\xfe\n\n", 400},
    };
    for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
        ask(rows[i].request, strlen(rows[i].request), SIZE_MAX / 2);
        UNIT_EXPECT(answer_status() == rows[i].status, "%s: %u", rows[i].request, answer_status());
        UNIT_EXPECT(rows[i].status != 0 || answer_length == 0, "%s", rows[i].request);
    }
}

static void method_that_would_do_is_told(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"GET /act HTTP/1.0\r\n\r\n", "\r\nAllow: POST\r\n"},
        {"PUT /act HTTP/1.0\r\n\r\n", "\r\nAllow: POST\r\n"},
        {"POST /small HTTP/1.0\r\n\r\n", "\r\nAllow: GET\r\n"},
    };
    for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
        ask(rows[i][0], strlen(rows[i][0]), SIZE_MAX / 2);
        assert_int_equal(answer_status(), 405);
        UNIT_EXPECT(strstr(answer, rows[i][1]) != NULL, "%s", answer);
    }
    ask("POST /act?x HTTP/1.1\r\n\r\n", 24, SIZE_MAX / 2);
    assert_string_equal(answer_body(), "small 8\n");
}

static void request_above_4_kib_is_refused(void **state) {
    (void)state;
    static char request[64 << 10];
    memset(request, 'a', sizeof request);
    memcpy(request, "GET / HTTP/1.0\r\n", 16);
    ask(request, sizeof request, SIZE_MAX / 2);
    assert_int_equal(answer_status(), 400);
}

/* What serve() does with a peer that neither sends nor reads any more. */
static void serve_silent_peer(const char *request) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    hak_os_fault_clear();
    size_t length = strlen(request);
    assert_int_equal(write(pair[0], request, length), length);
    hak_control_serve(pair[1], &is_over);
    answer_length = 0;
    ssize_t done = read(pair[0], answer, 20);
    answer[done > 0 ? done : 0] = '\0';
    close(pair[0]);
}

static void peer_that_stops_sending_is_left(void **state) {
    (void)state;
    serve_silent_peer("");
    assert_int_equal(answer_status(), 0);
    serve_silent_peer("GET / HTT");
    assert_int_equal(answer_status(), 400);
}

static void peer_that_does_not_read_is_left(void **state) {
    (void)state;
    serve_silent_peer("GET /large HTTP/1.0\r\n\r\n");
    assert_int_equal(answer_status(), 200);
}

static void peer_that_is_gone_costs_nothing(void **state) {
    (void)state;
    static const char request[] = "GET /large HTTP/1.0\r\n\r\n";
    int pair[2];
    errno = 0;
    for (unsigned with_request = 0; with_request < 2; with_request++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        if (with_request != 0) {
            assert_int_equal(write(pair[0], request, sizeof request - 1), sizeof request - 1);
        }
        close(pair[0]);
        hak_control_serve(pair[1], &is_over); /* without SIGPIPE */
        assert_int_equal(fcntl(pair[1], F_GETFD), -1);
    }
}

static void service_that_is_over_waits_for_nobody(void **state) {
    (void)state;
    hak_store_relaxed(&is_over, 1);
    serve_silent_peer("");
    assert_int_equal(answer_status(), 0);
    hak_store_relaxed(&is_over, 0);
}

static void answer_without_memory_is_503(void **state) {
    (void)state;
    static const char request[] = "GET /large HTTP/1.0\r\n\r\n";
    for (uint64_t first = 0; first < 3; first++) { /* the first mapping, or one to grow into */
        hak_os_fault_plan(HAK_OS_CALL_MAP, first, 1000);
        ask(request, sizeof request - 1, SIZE_MAX / 2);
        hak_os_fault_clear();
        assert_int_equal(answer_status(), 503);
        assert_string_equal(answer_body(), "Service Unavailable\n");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_is_answered_with_its_type_and_length),
        cmocka_unit_test(topic_of_many_megabytes_arrives_whole),
        cmocka_unit_test(request_in_single_bytes_is_answered),
        cmocka_unit_test(every_request_gets_the_status_it_deserves),
        cmocka_unit_test(method_that_would_do_is_told),
        cmocka_unit_test(request_above_4_kib_is_refused),
        cmocka_unit_test(peer_that_stops_sending_is_left),
        cmocka_unit_test(peer_that_does_not_read_is_left),
        cmocka_unit_test(peer_that_is_gone_costs_nothing),
        cmocka_unit_test(service_that_is_over_waits_for_nobody),
        cmocka_unit_test(answer_without_memory_is_503),
    };
    hak_control_table.topics = topics;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
