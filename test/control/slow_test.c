/* SPDX-License-Identifier: MIT
 *
 * A peer of the control channel that reads its answer slowly, by a clock that obeys. */
#include "control/control.h"
#include "double/os_fault.h"
#include "unit/unit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGE_LINES = 200000, LARGE_BYTES = LARGE_LINES * 16, ANSWER_MOST = 2 * LARGE_BYTES };

static void write_large(unsigned which, const hak_sink_t *sink) {
    for (unsigned i = 0; i < which; i++) {
        hak_sink_format(sink, "a line of 16 b.\n");
    }
}

static const hak_control_topic_t topics[] = {
    {"/large", "text/large", write_large, LARGE_LINES, false},
    {0},
};

static uint32_t is_over;
static char answer[ANSWER_MOST];
static size_t answer_length;

typedef struct slow_reader {
    int fd;
    uint64_t pause_ns; /* of the clock before each piece */
} slow_reader_t;

enum { SLOW_PIECE_BYTES = 4096, SLOW_BUFFER_BYTES = 8192 };

static void *read_slowly(void *argument) {
    slow_reader_t *reader = argument;
    ssize_t done;
    answer_length = 0;
    do {
        hak_os_fault_advance_clock(reader->pause_ns);
        done = read(reader->fd, answer + answer_length, SLOW_PIECE_BYTES);
        answer_length += done > 0 ? (size_t)done : 0;
    } while (done > 0);
    answer[answer_length] = '\0';
    close(reader->fd);
    return NULL;
}

static void serve_slow_reader(uint64_t pause_ns) {
    static const char request[] = "GET /large HTTP/1.0\r\n\r\n";
    const int bytes = SLOW_BUFFER_BYTES;
    int pair[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(write(pair[0], request, sizeof request - 1), sizeof request - 1);
    slow_reader_t reader = {pair[0], pause_ns};
    hak_os_fault_stop_clock();
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
    hak_control_serve(pair[1], &is_over);
    assert_int_equal(pthread_join(thread, NULL), 0);
    hak_os_fault_clear();
}

/* 780 pieces: 8 s, and 78 s. */
static void peer_that_reads_slowly_gets_all_within_half_a_minute(void **state) {
    (void)state;
    serve_slow_reader(10000000);
    assert_memory_equal(answer, "HTTP/1.0 200 OK", 15);
    assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), LARGE_BYTES);
    serve_slow_reader(100000000);
    assert_memory_equal(answer, "HTTP/1.0 200 OK", 15);
    assert_in_range(answer_length, LARGE_BYTES / 10, LARGE_BYTES / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_that_reads_slowly_gets_all_within_half_a_minute),
    };
    hak_control_table.topics = topics;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
