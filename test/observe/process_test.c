/* SPDX-License-Identifier: MIT
 *
 * A process that ends while it is read, one that stands, and a time that is up. */
#include "api/expect.h"
#include "observe.h"

static obs_reader_t reader;

static int is_blocked(int number) {
    sigset_t mask;
    EXPECT(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
    return sigismember(&mask, number);
}

/* Job control does not stop the observer while the process stands. */
static void stands(uint32_t pid) {
    obs_stopped_t stopped;
    if (!obs_stop(&stopped, pid)) {
        fprintf(stderr, "%s\n", stopped.error); /* ptrace is forbidden here */
        return;
    }
    EXPECT(is_blocked(SIGTSTP) == 1 && is_blocked(SIGTTIN) == 1 && is_blocked(SIGTTOU) == 1);
    obs_continue(&stopped);
    EXPECT(is_blocked(SIGTSTP) == 0 && is_blocked(SIGTTIN) == 0 && is_blocked(SIGTTOU) == 0);
}

int main(void) {
    static uint64_t number = 1234567, seen;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    if (!obs_open_process(&reader, (uint32_t)child)) {
        fprintf(stderr, "skipped: %s\n", reader.error);
        kill(child, SIGKILL);
        return EXPECT_SKIP_STATUS;
    }
    EXPECT(obs_read(&reader, (uintptr_t)&number, &seen, sizeof seen) && seen == number);
    EXPECT(obs_process_lives(&reader));
    stands((uint32_t)child);
    reader.until_ns = 1;
    EXPECT(!obs_read(&reader, (uintptr_t)&number, &seen, sizeof seen) && reader.is_late);
    obs_forget(&reader);
    EXPECT(obs_resident(&reader, (uintptr_t)&number, 1) == SIZE_MAX);
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    EXPECT(!obs_process_lives(&reader));
    uint64_t bytes = reader.mapped_bytes; /* a mapping that comes again, in part and as a whole */
    size_t count = reader.mapping_count;
    obs_mapping_t first = reader.mapping[0], last = reader.mapping[count - 1];
    obs_cut_mappings(&reader, last.end);
    EXPECT(reader.mapping_count == count && reader.mapped_bytes == bytes);
    obs_cut_mappings(&reader, last.start + 1);
    EXPECT(reader.mapping_count == count &&
           reader.mapped_bytes == bytes - (last.end - last.start - 1));
    obs_cut_mappings(&reader, last.start);
    EXPECT(reader.mapping_count == count - 1);
    obs_cut_mappings(&reader, first.start + 1);
    EXPECT(reader.mapping_count == 1 && reader.mapped_bytes == 1);
    first.path = "";
    first.end = first.start + 2;
    obs_cut_mappings(&reader, first.start);
    EXPECT(obs_add_mapping(&reader, &first) && reader.mapping_count == 1 &&
           reader.mapped_bytes == 2);
    obs_close(&reader);
    return 0;
}
