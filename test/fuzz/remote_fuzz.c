/* SPDX-License-Identifier: MIT
 *
 * Any sequence of calls by two threads in turns: the highest bit of an operation says whose turn it
 * is, so each frees and resizes what the other allocated. The second thread may end; the next one
 * comes with its next turn. */
#include "fuzz/operations.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

enum { BY_OTHER = 0x80, CODE_END_OTHER = 0x7f };

typedef struct other {
    pthread_t thread;
    sem_t go, done;
    fuzz_tape_t *tape; /* NULL: it shall end */
    unsigned code;
    bool is_running;
} other_t;

static other_t other;

static void semaphore_wait(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {
        FUZZ_EXPECT(errno == EINTR);
    }
}

static void *other_main(void *unused) {
    (void)unused;
    for (semaphore_wait(&other.go); other.tape != NULL; semaphore_wait(&other.go)) {
        fuzz_operation(other.code, other.tape);
        sem_post(&other.done);
    }
    return NULL;
}

static void other_turn(unsigned code, fuzz_tape_t *tape) {
    if (!other.is_running) {
        sem_init(&other.go, 0, 0);
        sem_init(&other.done, 0, 0);
        FUZZ_EXPECT(pthread_create(&other.thread, NULL, other_main, NULL) == 0);
        other.is_running = true;
    }
    other.code = code;
    other.tape = tape;
    sem_post(&other.go);
    semaphore_wait(&other.done);
}

static void other_end(void) {
    if (other.is_running) {
        other.tape = NULL;
        sem_post(&other.go);
        FUZZ_EXPECT(pthread_join(other.thread, NULL) == 0);
        other.is_running = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_tape_t tape = {data, data + size};
    fuzz_operations_begin();
    while (tape.at < tape.end) {
        unsigned byte = fuzz_byte(&tape), code = byte & 0x7f;
        if (code == CODE_END_OTHER) {
            other_end();
        } else if (byte & BY_OTHER) {
            other_turn(code, &tape);
        } else {
            fuzz_operation(code, &tape);
        }
    }
    fuzz_operations_end();
    other_end();
    fuzz_operations_rest();
    return 0;
}
