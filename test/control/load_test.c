/* SPDX-License-Identifier: MIT
 *
 * The control channel of a busy process: a hundred clients at once while eight threads allocate,
 * and, unless the argument is "threads", fork. It runs in the process it asks. */
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "thread/block.h"

enum { WORKERS = 8, KEPT = 500, CLIENTS = 100, REQUESTS = 4, FORKS = 50 };

static atomic_bool is_done;

static void *work(void *seed) {
    static block_t *all[WORKERS][KEPT];
    block_t **blocks = all[(uintptr_t)seed];
    uint64_t state = (uintptr_t)seed + 1;
    while (!atomic_load(&is_done)) {
        size_t i = expect_random(&state) % KEPT;
        block_unmake(blocks[i], &state);
        blocks[i] = block_make(&state);
    }
    for (size_t i = 0; i < KEPT; ++i) {
        block_unmake(blocks[i], &state);
    }
    return NULL;
}

static int connect_to(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path + 1, name, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    while (connect(fd, (struct sockaddr *)&address, bytes) != 0) {
        EXPECT(errno == EINTR);
    }
    return fd;
}

static char name[64];

/* The map of a busy process has more than 64 KiB. */
static char texts[CLIENTS][1 << 18];

enum { PATHS = 5 };

static const char *const paths[PATHS] = {"/stats.txt", "/", "/map.json", "/none", "/metrics"};

/* false: the machine was so busy that the request came late. */
static bool ask_once(char *text, size_t which) {
    int fd = connect_to(name);
    int length = snprintf(text, sizeof texts[0], "GET %s HTTP/1.0\r\n\r\n", paths[which]);
    bool is_sent = send(fd, text, (size_t)length, MSG_NOSIGNAL) == length;
    size_t bytes = 0;
    ssize_t done;
    while ((done = read(fd, text + bytes, sizeof texts[0] - 1 - bytes)) > 0) {
        bytes += (size_t)done;
    }
    text[bytes] = '\0';
    close(fd);
    if (!is_sent || done < 0 || bytes == 0 || strncmp(text, "HTTP/1.0 400 ", 13) == 0) {
        return false;
    }
    const char *body = strstr(text, "\r\n\r\n");
    const char *length_said = strstr(text, "Content-Length: ");
    EXPECT(body != NULL && length_said != NULL);
    EXPECT_EQ(strtoul(length_said + 16, NULL, 10), strlen(body + 4));
    EXPECT_EQ(strncmp(text, which == 3 ? "HTTP/1.0 404 " : "HTTP/1.0 200 ", 13), 0);
    return true;
}

static void *ask(void *argument) {
    for (size_t i = 0; i < REQUESTS; ++i) {
        while (!ask_once(texts[(uintptr_t)argument], ((uintptr_t)argument + i) % PATHS)) {
        }
    }
    return NULL;
}

static void fork_often(void) {
    for (size_t i = 0; i < FORKS; ++i) {
        pid_t child = fork();
        if (child == 0) {
            uint64_t state = i + 1;
            expect_watchdog();
            for (size_t k = 0; k < 1000; ++k) {
                block_unmake(block_make(&state), &state);
            }
            _exit(0);
        }
        EXPECT_CHILD(child, 0);
    }
}

static bool forks;

static void channel_answers_all_clients_of_a_busy_process(void) {
    pthread_t workers[WORKERS];
    pthread_t clients[CLIENTS];
    for (size_t i = 0; i < WORKERS; ++i) {
        workers[i] = thread_start(work, (void *)i);
    }
    for (size_t i = 0; i < CLIENTS; ++i) {
        clients[i] = thread_start(ask, (void *)i);
    }
    if (forks) {
        fork_often();
    }
    for (size_t i = 0; i < CLIENTS; ++i) {
        EXPECT_EQ(pthread_join(clients[i], NULL), 0);
    }
    atomic_store(&is_done, true);
    for (size_t i = 0; i < WORKERS; ++i) {
        EXPECT_EQ(pthread_join(workers[i], NULL), 0);
    }
}

int main(int argc, char **argv) {
    forks = argc < 2 || strcmp(argv[1], "threads") != 0;
    snprintf(name, sizeof name, "hakmem_load.%d", (int)getpid());
    family_load();
    expect_watchdog();
    RUN(channel_answers_all_clients_of_a_busy_process);
    return expect_status();
}
