/* SPDX-License-Identifier: MIT
 *
 * The control channel with any bytes as the request, compared with a second reading of them. The
 * first byte of the input: 1, the peer is gone before its answer; 2, there is no memory; the
 * second: 0, the bytes come as they like, else so many and 127 more at a time. */
#include "control/control.h"
#include "double/os_fault.h"
#include "fuzz/fuzz.h"

#include <sys/socket.h>

enum { REQUEST_MOST = 6000, LONG_LINES = 3000, ANSWER_MOST = 1 << 18 };

static void write_long(unsigned which, const hak_sink_t *sink) {
    for (unsigned i = 0; i < which; i++) {
        hak_sink_format(sink, "0123456789abcde\n");
    }
}

static bool act_any(const char *query, size_t length) {
    unsigned sum = 0; /* reads all of it */
    for (size_t i = 0; i < length; i++) {
        sum += (unsigned char)query[i];
    }
    return sum != 1;
}

static const hak_control_topic_t topics[] = {
    {"/", "text/plain", hak_control_list, 0, NULL},
    {"/a", "text/plain", write_long, 1, NULL},
    {"/long", "text/plain", write_long, LONG_LINES, NULL},
    {"/do", "text/plain", write_long, 2, act_any},
    {0},
};

/* --- the second reading ----------------------------------------------------------------------- */

static bool request_is_whole(const char *text) {
    return strstr(text, "\n\n") != NULL || strstr(text, "\n\r\n") != NULL;
}

/* Three words, one blank between each, and nothing else in the line. */
static unsigned line_status(char *line, size_t length) {
    char *word[3] = {line, NULL, NULL};
    unsigned words = 1;
    if (length > 0 && line[length - 1] == '\r') {
        line[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c != ' ' && (c < 0x21 || c > 0x7e)) {
            return 400;
        }
        if (c == ' ') {
            if (words == 3) {
                return 400;
            }
            line[i] = '\0';
            word[words++] = line + i + 1;
        }
    }
    if (words != 3 || word[0][0] == '\0' || word[1][0] != '/' || strlen(word[2]) != 8 ||
        memcmp(word[2], "HTTP/1.", 7) != 0 || strspn(word[2] + 7, "0123456789") != 1) {
        return 400;
    }
    word[1][strcspn(word[1], "?")] = '\0';
    bool is_action = strcmp(word[1], "/do") == 0;
    if (strcmp(word[0], "POST") == 0) {
        return is_action ? 200 : 405;
    }
    if (strcmp(word[0], "GET") != 0 || is_action) {
        return 405;
    }
    bool is_topic =
        strcmp(word[1], "/") == 0 || strcmp(word[1], "/a") == 0 || strcmp(word[1], "/long") == 0;
    return is_topic ? 200 : 404;
}

static unsigned request_status(const uint8_t *data, size_t size) {
    static char text[HAK_CONTROL_REQUEST_BYTES + 1];
    size = size < HAK_CONTROL_REQUEST_BYTES ? size : HAK_CONTROL_REQUEST_BYTES;
    if (size == 0) {
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        text[i] = data[i] != '\0' ? (char)data[i] : '\1'; /* no text is cut by it */
    }
    text[size] = '\0';
    if (!request_is_whole(text)) {
        return 400;
    }
    size_t length = strcspn(text, "\n");
    text[length] = '\0';
    return line_status(text, length);
}

/* --- the target ------------------------------------------------------------------------------- */

static void peer_send(int fd, const uint8_t *data, size_t size, size_t step) {
    while (size > 0) {
        size_t bytes = size < step ? size : step;
        FUZZ_EXPECT(send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes);
        data += bytes;
        size -= bytes;
    }
    FUZZ_EXPECT(shutdown(fd, SHUT_WR) == 0);
}

static size_t peer_receive(int fd, char *answer) {
    size_t length = 0;
    ssize_t done;
    while ((done = recv(fd, answer + length, ANSWER_MOST - 1 - length, 0)) > 0) {
        length += (size_t)done;
    }
    FUZZ_EXPECT(done == 0);
    answer[length] = '\0';
    return length;
}

static void answer_check(const char *answer, size_t length, unsigned expected) {
    unsigned status = 0;
    if (expected == 0) {
        FUZZ_EXPECT(length == 0);
        return;
    }
    FUZZ_EXPECT(sscanf(answer, "HTTP/1.0 %u ", &status) == 1 && status == expected);
    FUZZ_EXPECT(strstr(answer, "\r\nX-Hakmem-Control: 1\r\n") != NULL);
    const char *body = strstr(answer, "\r\n\r\n");
    const char *said = strstr(answer, "\r\nContent-Length: ");
    FUZZ_EXPECT(body != NULL && said != NULL);
    size_t bytes = length - (size_t)(body + 4 - answer);
    FUZZ_EXPECT(strtoul(said + 18, NULL, 10) == bytes && bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char answer[ANSWER_MOST];
    static const uint32_t is_over = 0;
    int pair[2];
    if (size < 2) {
        return 0;
    }
    unsigned mode = data[0];
    size_t step = data[1] == 0 ? REQUEST_MOST : data[1] + 127u;
    int type = data[1] == 0 ? SOCK_STREAM : SOCK_SEQPACKET;
    data += 2;
    size = size - 2 < REQUEST_MOST ? size - 2 : REQUEST_MOST;
    hak_control_table.topics = topics;
    FUZZ_EXPECT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
    peer_send(pair[0], data, size, step);
    if ((mode & 1) != 0) {
        close(pair[0]);
    }
    if ((mode & 2) != 0) {
        hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 10);
    }
    hak_control_serve(pair[1], &is_over);
    hak_os_fault_clear();
    if ((mode & 1) == 0) {
        unsigned expected = request_status(data, size);
        expected = expected == 200 && (mode & 2) != 0 ? 503 : expected;
        answer_check(answer, peer_receive(pair[0], answer), expected);
        close(pair[0]);
    }
    return 0;
}
