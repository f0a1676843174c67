/* SPDX-License-Identifier: MIT
 *
 * gperftools' heap profiler, on hakmem's sampler. */
#include "extension.hpp"

#include <hakmem/hakmem.h>
#include <hakmem/observe.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

enum { PATH_BYTES = 1024 };

/* Held for a few instructions. No mutex: before 2.34 that of glibc is in libpthread. */
std::atomic_flag prefix_lock = ATOMIC_FLAG_INIT;
struct prefix_guard {
    prefix_guard() {
        while (prefix_lock.test_and_set(std::memory_order_acquire)) {
            usleep(1);
        }
    }
    ~prefix_guard() {
        prefix_lock.clear(std::memory_order_release);
    }
};
char prefix[PATH_BYTES]; /* of files; [prefix_lock] */
unsigned files;          /* [prefix_lock] */

bool is_sampling() {
    char rate[32] = "";
    return hak_option_get("profile_rate", rate, sizeof rate) == 0 && std::strcmp(rate, "0") != 0;
}

void dump(const char *reason) {
    char path[PATH_BYTES + 16];
    {
        const prefix_guard guard;
        if (prefix[0] == '\0') {
            return;
        }
        std::snprintf(path, sizeof path, "%s.%04u.heap", prefix, ++files);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        std::fprintf(stderr, "hakmem: %s: %m (heap profile: %s)\n", path, reason);
        return;
    }
    hak_profile_heap(fd);
    close(fd);
}

void start(const char *name) {
    const prefix_guard guard;
    std::snprintf(prefix, sizeof prefix, "%s", name);
    if (!is_sampling()) {
        hak_option_set("profile_rate", "512k");
    }
}

/* HEAPPROFILE: from start to exit. */
struct whole_run {
    bool is_on = false;
    whole_run() {
        const char *name = secure_getenv("HEAPPROFILE");
        if (name != nullptr && name[0] != '\0') {
            is_on = true;
            start(name);
        }
    }
    ~whole_run() {
        if (is_on && is_sampling()) {
            dump("exiting");
        }
    }
} whole;

} // namespace

char *tc_heap_profile() {
    int fd = is_sampling() ? memfd_create("heap", MFD_CLOEXEC) : -1;
    std::size_t bytes = 0, done = 0;
    if (fd >= 0) {
        hak_profile_heap(fd);
        off_t end = lseek(fd, 0, SEEK_END);
        bytes = end > 0 ? static_cast<std::size_t>(end) : 0;
    }
    char *text = static_cast<char *>(std::malloc(bytes + 1));
    while (text != nullptr && done < bytes) {
        ssize_t length = pread(fd, text + done, bytes - done, static_cast<off_t>(done));
        if (length <= 0) {
            break;
        }
        done += static_cast<std::size_t>(length);
    }
    if (text != nullptr) {
        text[done] = '\0';
    }
    if (fd >= 0) {
        close(fd);
    }
    return text;
}

extern "C" {

TC_EXPORT void HeapProfilerStart(const char *name) {
    if (name != nullptr) {
        start(name);
    }
}

TC_EXPORT int IsHeapProfilerRunning() {
    return is_sampling();
}

TC_EXPORT void HeapProfilerStop() {
    hak_option_set("profile_rate", "0");
}

TC_EXPORT void HeapProfilerDump(const char *reason) {
    if (is_sampling()) {
        dump(reason);
    }
}

TC_EXPORT char *GetHeapProfile() {
    return tc_heap_profile();
}
}
