/* SPDX-License-Identifier: MIT
 *
 * Strict overcommit (vm.overcommit_memory = 2): does a request above the kernel's limit of
 * commitments end in ENOMEM, and does the process go on? The mode is one of the whole machine, so
 * the test takes it as it is and uses nothing up: other processes live of the same limit.
 * RLIMIT_DATA counts the same mappings for one process; limits_data_* use that up.
 */
#include "api/family.h"

enum { MEBIBYTE = 1 << 20 };

/* A number of kilobytes of /proc/meminfo, in bytes; 0 if it is not there. */
static size_t meminfo_bytes(const char *name) {
    char text[4096] = {0};
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    const char *at = length > 0 ? strstr(text, name) : NULL;
    return at == NULL ? 0 : (size_t)strtoull(at + strlen(name), NULL, 10) << 10;
}

static size_t limit_bytes;

static void overcommit_above_the_limit_is_enomem_and_the_process_goes_on(void) {
    void *kept = family.malloc(1000);
    EXPECT(kept != NULL);
    for (size_t size = limit_bytes + MEBIBYTE; size < limit_bytes * 8; size *= 2) {
        errno = 0;
        EXPECT(family.malloc(size) == NULL);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT(family.realloc(kept, size) == NULL);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT(family.aligned_alloc(1 << 21, size) == NULL);
        EXPECT_EQ(errno, ENOMEM);
    }
    for (size_t size = 16; size <= 64 * MEBIBYTE; size *= 2) {
        void *block = family.malloc(size);
        EXPECT(block != NULL);
        family.free(block);
    }
    family.free(kept);
}

int main(void) {
    char mode = '?';
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &mode, 1) != 1) {
        expect_skip("vm.overcommit_memory cannot be read");
    }
    close(fd);
    limit_bytes = meminfo_bytes("CommitLimit:");
    if (mode != '2' || limit_bytes == 0) {
        expect_skip("vm.overcommit_memory is not 2 on this machine");
    }
    family_load();
    RUN(overcommit_above_the_limit_is_enomem_and_the_process_goes_on);
    return expect_status();
}
