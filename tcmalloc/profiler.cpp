/* SPDX-License-Identifier: MIT
 *
 * gperftools' heap profiler, on hakmem's sampler. */
#include "extension.hpp"

#include <hakmem/hakmem.h>
#include <hakmem/jemalloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
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

using write_t = void(int);

/* Of the observer's library (hakmem/observe.h), which is loaded at the first call: from beside the
 * allocator's, or where libraries are looked for. nullptr: it is not there, as a line has said. */
write_t *writer() {
    static write_t *const found = [] {
        std::string name = "libhakmem-observe.so." + std::to_string(HAK_VERSION_MAJOR);
        Dl_info ours;
        void *library = nullptr;
        if (dladdr(reinterpret_cast<void *>(hak_version), &ours) != 0) {
            std::string file = ours.dli_fname;
            library = dlopen((file.substr(0, file.rfind('/') + 1) + name).c_str(), RTLD_NOW);
        }
        library = library != nullptr ? library : dlopen(name.c_str(), RTLD_NOW);
        void *write = library != nullptr ? dlsym(library, "hak_profile_heap") : nullptr;
        if (write == nullptr) {
            std::fprintf(stderr, "hakmem: heap profile: needs %s\n", name.c_str());
        }
        return reinterpret_cast<write_t *>(write);
    }();
    return found;
}

void write_profile(int fd) {
    write_t *write = writer();
    if (write != nullptr) {
        write(fd);
    }
}

/* As long as the library is there. */
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
    write_profile(fd);
    close(fd);
}

void start(const char *name) {
    writer(); /* not at exit, where the first file may be written */
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

std::string tc_heap_profile() {
    std::string text;
    int fd = is_sampling() ? memfd_create("heap", MFD_CLOEXEC) : -1;
    if (fd >= 0) {
        write_profile(fd);
        char piece[4096];
        ssize_t length;
        for (off_t at = 0; (length = pread(fd, piece, sizeof piece, at)) > 0; at += length) {
            text.append(piece, static_cast<std::size_t>(length));
        }
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
    return strdup(tc_heap_profile().c_str());
}
}
