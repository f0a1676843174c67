/* SPDX-License-Identifier: MIT
 *
 * A process that ends while it is read, and a time that is up. */
#include "api/expect.h"
#include "reader.h"

#include <signal.h>

static obs_reader_t reader;

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
    reader.until_ns = 1;
    EXPECT(!obs_read(&reader, (uintptr_t)&number, &seen, sizeof seen) && reader.is_late);
    obs_forget(&reader);
    EXPECT(obs_resident(&reader, (uintptr_t)&number, 1) == SIZE_MAX);
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    EXPECT(!obs_process_lives(&reader));
    obs_close(&reader);
    return 0;
}
