/* SPDX-License-Identifier: MIT
 *
 * MallocExtension by what hakmem exports. docs/tcmalloc.md says what each name does here. */
#include "extension.hpp"

#include <hakmem/hakmem.h>
#include <hakmem/jemalloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <memory>
#include <new>
#include <sched.h>
#include <unistd.h>

namespace {

/* --- figures ---------------------------------------------------------------------------------- */

std::size_t figure(const char *name) {
    std::uint64_t value = 0;
    std::size_t length = sizeof(std::size_t);
    mallctl(name, &value, &length, nullptr, 0);
    return value;
}

std::size_t excess(std::size_t a, std::size_t b) {
    return a > b ? a - b : 0;
}

/* heap is allocated, the free bytes of slabs (central) and of threads, and unused memory, with
 * pages (free) and without (unmapped); physical is without the last, and with our tables. */
struct figures {
    std::size_t allocated, heap, physical, free, unmapped, slack, committed, thread, central;
    std::size_t purges, purged, cache, sample, aggressive, nothing;
};

bool is_aggressive();

std::size_t option_bytes(const char *name) {
    char text[256] = "";
    char *end = text;
    hak_option_get(name, text, sizeof text);
    std::size_t bytes = std::strtoull(text, &end, 10);
    const char *suffix = *end != '\0' ? std::strchr("kmgt", *end) : nullptr;
    return suffix != nullptr ? bytes << (10 * (suffix - "kmgt" + 1)) : bytes;
}

/* That the first thread may use, at the first question. sysconf would open a file. */
std::size_t cpus() {
    static const int count = [] {
        unsigned long mask[128]; /* as many as Linux can have */
        bool is_told =
            sched_getaffinity(getpid(), sizeof mask, reinterpret_cast<cpu_set_t *>(mask)) == 0;
        return is_told ? CPU_COUNT_S(sizeof mask, reinterpret_cast<cpu_set_t *>(mask)) : 1;
    }();
    return static_cast<std::size_t>(count);
}

figures figures_now() {
    std::uint64_t epoch = 1;
    std::size_t page = figure("arenas.page");
    mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
    figures now = {};
    now.allocated = figure("stats.allocated");
    now.physical = figure("stats.resident");
    now.unmapped = figure("stats.retained");
    now.heap = excess(now.physical + now.unmapped, figure("stats.metadata"));
    now.free = figure("stats.arenas.0.pdirty") * page;
    now.slack = now.free + now.unmapped;
    now.committed = excess(now.heap, now.unmapped);
    now.thread = figure("stats.arenas.0.tcache_bytes");
    now.central = excess(now.heap, now.slack + now.thread + now.allocated);
    now.purges = figure("stats.arenas.0.dirty_nmadvise");
    now.purged = figure("stats.arenas.0.dirty_purged") * page;
    now.cache = option_bytes("cache") * cpus();
    now.sample = option_bytes("profile_rate");
    now.aggressive = is_aggressive();
    return now;
}

const struct {
    const char *name;
    std::size_t figures::*field;
} properties[] = {
    {"generic.current_allocated_bytes", &figures::allocated},
    {"generic.heap_size", &figures::heap},
    {"generic.total_physical_bytes", &figures::physical},
    {"tcmalloc.slack_bytes", &figures::slack},
    {"tcmalloc.pageheap_free_bytes", &figures::free},
    {"tcmalloc.pageheap_unmapped_bytes", &figures::unmapped},
    {"tcmalloc.pageheap_committed_bytes", &figures::committed},
    {"tcmalloc.pageheap_scavenge_count", &figures::purges},
    {"tcmalloc.pageheap_decommit_count", &figures::purges},
    {"tcmalloc.pageheap_total_decommit_bytes", &figures::purged},
    {"tcmalloc.thread_cache_free_bytes", &figures::thread},
    {"tcmalloc.current_total_thread_cache_bytes", &figures::thread},
    {"tcmalloc.central_cache_free_bytes", &figures::central},
    {"tcmalloc.transfer_cache_free_bytes", &figures::nothing},
    {"tcmalloc.heap_limit_mb", &figures::nothing},
    {"tcmalloc.max_total_thread_cache_bytes", &figures::cache},
    {"tcmalloc.sample_parameter", &figures::sample},
    {"tcmalloc.aggressive_memory_decommit", &figures::aggressive},
};

/* --- settings --------------------------------------------------------------------------------- */

/* How much unused memory stays: as the options say, little, none, all. */
enum retention { AS_SET, SOONER, NOTHING, ALL };

const struct {
    const char *option, *value[4];
} retentions[] = {
    {"retain_min", {nullptr, "4m", "0", "1t"}},
    {"retain_percent", {nullptr, "10", "0", nullptr}},
    {"retain_idle", {nullptr, nullptr, "0", "1t"}},
    {"huge_cache", {nullptr, nullptr, "0", "1t"}},
};
enum { RETENTIONS = sizeof retentions / sizeof retentions[0] };

struct options_at_first {
    char value[RETENTIONS][256];
    options_at_first() {
        for (unsigned i = 0; i < RETENTIONS; i++) {
            hak_option_get(retentions[i].option, value[i], sizeof value[i]);
        }
    }
};

bool retain(retention how) {
    static const options_at_first first;
    int error = 0;
    for (unsigned i = 0; i < RETENTIONS; i++) {
        const char *value = retentions[i].value[how];
        error |= hak_option_set(retentions[i].option, value != nullptr ? value : first.value[i]);
    }
    return error == 0;
}

/* What decides how much stays: the release rate, and with the sign aggressive decommit, during
 * which the rate is kept. What is set last is in force. */
constexpr std::uint64_t UNSET = ~0ull, AGGRESSIVE = 1ull << 63;
enum { HIGH_RATE = 5 }; /* of 10 */
std::atomic<std::uint64_t> release{UNSET};

double rate_of(std::uint64_t state) {
    double rate = 1;
    state &= ~AGGRESSIVE;
    if (state != (UNSET & ~AGGRESSIVE)) {
        std::memcpy(&rate, &state, sizeof rate);
    }
    return rate;
}

retention retention_of(std::uint64_t state) {
    double rate = rate_of(state);
    return state == UNSET              ? AS_SET
           : (state & AGGRESSIVE) != 0 ? NOTHING
           : rate <= 0                 ? ALL
           : rate >= HIGH_RATE         ? SOONER
                                       : AS_SET;
}

/* Of two threads that set at a time, the one that finds the other's state completes that. */
bool release_set(double rate, bool is_aggressive) {
    std::uint64_t state = 0;
    bool is_done;
    rate = rate > 0 ? rate : 0;
    std::memcpy(&state, &rate, sizeof rate);
    release = is_aggressive ? state | AGGRESSIVE : state;
    do {
        state = release;
        is_done = retain(retention_of(state));
    } while (state != release);
    if (is_aggressive) {
        malloc_trim(0);
    }
    return is_done;
}

bool is_aggressive() {
    std::uint64_t state = release;
    return state == UNSET ? option_bytes("retain_min") == 0 : (state & AGGRESSIVE) != 0;
}

bool set_bytes(const char *option, std::size_t bytes) {
    char text[24];
    std::snprintf(text, sizeof text, "%zu", bytes);
    return hak_option_set(option, text) == 0;
}

/* Never destroyed, and not allocated: C functions ask for it. */
MallocExtension &own() {
    alignas(MallocExtension) static unsigned char place[sizeof(MallocExtension)];
    static MallocExtension *const extension = new (place) MallocExtension;
    return *extension;
}

std::atomic<MallocExtension *> registered{nullptr};

} // namespace

/* --- the object ------------------------------------------------------------------------------- */

SysAllocator::~SysAllocator() = default;
MallocExtension::~MallocExtension() = default;

void MallocExtension::Initialize() {
}

MallocExtension *MallocExtension::instance() {
    MallocExtension *extension = registered.load(std::memory_order_acquire);
    return extension != nullptr ? extension : &own();
}

void MallocExtension::Register(MallocExtension *extension) {
    registered.store(extension, std::memory_order_release);
}

/* A heap is never found wrong here: misuse ends the process where it happens. */
bool MallocExtension::VerifyAllMemory() {
    return true;
}
bool MallocExtension::VerifyNewMemory(const void *) {
    return true;
}
bool MallocExtension::VerifyArrayNewMemory(const void *) {
    return true;
}
bool MallocExtension::VerifyMallocMemory(const void *) {
    return true;
}

/* Only gperftools' libraries for debugging count blocks. */
bool MallocExtension::MallocMemoryStats(int *blocks, std::size_t *total, int *histogram) {
    enum { SIZES = 64 };
    *blocks = 0;
    *total = 0;
    std::memset(histogram, 0, SIZES * sizeof *histogram);
    return true;
}

void MallocExtension::GetStats(char *text, int length) {
    static const struct {
        std::size_t figures::*field;
        const char *text;
    } lines[] = {
        {&figures::allocated, "Bytes in use by application"},
        {&figures::free, "Bytes in page heap freelist"},
        {&figures::central, "Bytes in central cache freelist"},
        {&figures::thread, "Bytes in thread cache freelists"},
        {&figures::physical, "Actual memory used (physical + swap), tables included"},
        {&figures::unmapped, "Bytes released to OS (aka unmapped)"},
        {&figures::heap, "Virtual address space used"},
    };
    const figures now = figures_now();
    for (const auto &line : lines) {
        int most = length > 0 ? length : 0;
        int made = std::snprintf(text, static_cast<std::size_t>(most),
                                 "MALLOC: %14zu (%9.1f MiB) %s\n", now.*line.field,
                                 static_cast<double>(now.*line.field) / (1 << 20), line.text);
        made = made < most ? made : most;
        text += made;
        length -= made;
    }
}

void MallocExtension::GetHeapSample(std::string *writer) {
    const std::unique_ptr<char, decltype(&std::free)> text(tc_heap_profile(), &std::free);
    writer->append(text != nullptr ? text.get() : "");
}
void MallocExtension::GetHeapGrowthStacks(std::string *) {
}
void MallocExtension::Ranges(void *, void (*)(void *, const base::MallocRange *)) {
}
void **MallocExtension::ReadStackTraces(int *) {
    return nullptr;
}
void **MallocExtension::ReadHeapGrowthStackTraces() {
    return nullptr;
}

bool MallocExtension::GetNumericProperty(const char *property, std::size_t *value) {
    for (const auto &row : properties) {
        if (std::strcmp(row.name, property) == 0) {
            *value = figures_now().*row.field;
            return true;
        }
    }
    return false;
}

bool MallocExtension::SetNumericProperty(const char *property, std::size_t value) {
    if (std::strcmp(property, "tcmalloc.max_total_thread_cache_bytes") == 0) {
        return set_bytes("cache", value / cpus());
    }
    if (std::strcmp(property, "tcmalloc.sample_parameter") == 0) {
        return set_bytes("profile_rate", value);
    }
    return std::strcmp(property, "tcmalloc.aggressive_memory_decommit") == 0 &&
           release_set(rate_of(release), value != 0);
}

void MallocExtension::MarkThreadIdle() {
    hak_collect_thread();
}
void MallocExtension::MarkThreadBusy() {
}
void MallocExtension::MarkThreadTemporarilyIdle() {
    hak_collect_thread();
}

SysAllocator *MallocExtension::GetSystemAllocator() {
    return nullptr;
}
void MallocExtension::SetSystemAllocator(SysAllocator *) {
}

/* At least so much: what stays is of whole units. */
void MallocExtension::ReleaseToSystem(std::size_t bytes) {
    enum { UNIT = 64 << 10 };
    malloc_trim(excess(excess(figures_now().free, bytes), UNIT));
}
void MallocExtension::ReleaseFreeMemory() {
    malloc_trim(0);
}
void MallocExtension::SetMemoryReleaseRate(double rate) {
    release_set(rate, false);
}
double MallocExtension::GetMemoryReleaseRate() {
    return rate_of(release);
}

std::size_t MallocExtension::GetEstimatedAllocatedSize(std::size_t size) {
    return hak_good_size(size);
}
std::size_t MallocExtension::GetAllocatedSize(const void *block) {
    return hak_malloc_usable_size(block);
}
MallocExtension::Ownership MallocExtension::GetOwnership(const void *block) {
    unsigned arena = 0;
    std::size_t length = sizeof arena;
    bool is_ours = mallctl("arenas.lookup", &arena, &length, &block, sizeof block) == 0;
    return is_ours ? kOwned : kNotOwned;
}

void MallocExtension::GetFreeListSizes(std::vector<FreeListInfo> *lists) {
    enum { LARGEST = 64 << 10 };
    const figures now = figures_now();
    lists->assign({{0, LARGEST, now.thread, "tcmalloc.thread"},
                   {0, LARGEST, now.central, "tcmalloc.central"},
                   {LARGEST, SIZE_MAX, now.free, "tcmalloc.large"},
                   {LARGEST, SIZE_MAX, now.unmapped, "tcmalloc.large_unmapped"}});
}

/* That of one thread is not told. */
std::size_t MallocExtension::GetThreadCacheSize() {
    return 0;
}

/* --- the same in C ---------------------------------------------------------------------------- */

/* The object may be the program's, and run out of memory. */
#define TC_C(type, name, parameters, arguments)                                                    \
    extern "C" TC_EXPORT type MallocExtension_##name parameters {                                  \
        try {                                                                                      \
            return static_cast<type>(MallocExtension::instance()->name arguments);                 \
        } catch (const std::bad_alloc &) {                                                         \
            return type();                                                                         \
        }                                                                                          \
    }
TC_C(int, VerifyAllMemory, (), ())
TC_C(int, VerifyNewMemory, (const void *block), (block))
TC_C(int, VerifyArrayNewMemory, (const void *block), (block))
TC_C(int, VerifyMallocMemory, (const void *block), (block))
TC_C(int, MallocMemoryStats, (int *blocks, std::size_t *total, int *histogram),
     (blocks, total, histogram))
TC_C(void, GetStats, (char *text, int length), (text, length))
TC_C(int, GetNumericProperty, (const char *property, std::size_t *value), (property, value))
TC_C(int, SetNumericProperty, (const char *property, std::size_t value), (property, value))
TC_C(void, MarkThreadIdle, (), ())
TC_C(void, MarkThreadBusy, (), ())
TC_C(void, MarkThreadTemporarilyIdle, (), ())
TC_C(void, ReleaseToSystem, (std::size_t bytes), (bytes))
TC_C(void, ReleaseFreeMemory, (), ())
TC_C(void, SetMemoryReleaseRate, (double rate), (rate))
TC_C(double, GetMemoryReleaseRate, (), ())
TC_C(std::size_t, GetEstimatedAllocatedSize, (std::size_t size), (size))
TC_C(std::size_t, GetAllocatedSize, (const void *block), (block))
TC_C(std::size_t, GetThreadCacheSize, (), ())
TC_C(int, GetOwnership, (const void *block), (block))

/* --- settings of the environment -------------------------------------------------------------- */

namespace {

bool is_on(const char *text) {
    return *text != '\0' && std::strchr("1tTyY", *text) != nullptr;
}
void set_rate(const char *text) {
    release_set(std::strtod(text, nullptr), false);
}
void set_decommit(const char *text) {
    release_set(rate_of(release), is_on(text));
}
void set_never(const char *text) {
    if (is_on(text)) {
        release_set(0, false);
    }
}
void set_caches(const char *text) {
    set_bytes("cache", std::strtoull(text, nullptr, 0) / cpus());
}
void set_sample(const char *text) {
    set_bytes("profile_rate", std::strtoull(text, nullptr, 0));
}

/* The last one wins. */
const struct {
    const char *name;
    void (*set)(const char *text); /* nullptr: it has no equal */
} variables[] = {
    {"TCMALLOC_RELEASE_RATE", set_rate},
    {"TCMALLOC_AGGRESSIVE_DECOMMIT", set_decommit},
    {"TCMALLOC_DISABLE_MEMORY_RELEASE", set_never},
    {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", set_caches},
    {"TCMALLOC_SAMPLE_PARAMETER", set_sample},
    {"TCMALLOC_HEAP_LIMIT_MB", nullptr},
    {"TCMALLOC_MEMFS_MALLOC_PATH", nullptr},
    {"TCMALLOC_SKIP_MMAP", nullptr},
    {"TCMALLOC_SKIP_SBRK", nullptr},
    {"HEAPCHECK", nullptr},
};

/* Not where hakmem has variables of its own. */
__attribute__((constructor)) void environment_read() {
    char without[512] = "";
    if (secure_getenv("HAKMEM_OPTIONS") != nullptr || secure_getenv("HAKMEM_PROFILE") != nullptr) {
        return;
    }
    for (const auto &row : variables) {
        const char *text = secure_getenv(row.name);
        if (text != nullptr && row.set != nullptr) {
            row.set(text);
        } else if (text != nullptr) {
            std::size_t length = std::strlen(without);
            std::snprintf(without + length, sizeof without - length, " %s", row.name);
        }
    }
    if (without[0] != '\0') {
        std::fprintf(stderr, "hakmem: without effect here:%s (hakmem docs tcmalloc)\n", without);
    }
}

} // namespace
