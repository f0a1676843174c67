/* SPDX-License-Identifier: MIT
 *
 * Does a program that is linked with libtcmalloc_minimal alone have hakmem's malloc, and
 * gperftools' names with true figures, by the places that its compiler gave virtual functions? With
 * an argument: what a variable of the environment did. */
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/expect.h"

enum { NOT_OWNED = 2, OWNED = 1, MIB = 1 << 20 };

/* Places in the table of MallocExtension, behind two destructors. */
enum {
    GET_STATS = 7,
    GET_NUMERIC = 11,
    SET_NUMERIC = 12,
    RELEASE_FREE = 18,
    SET_RATE = 19,
    GET_RATE = 20,
    ESTIMATED = 21,
    ALLOCATED = 22,
    OWNERSHIP = 23,
    CACHE_SIZE = 27,
    TEMPORARILY_IDLE = 28
};

void *instance(void) __asm__("_ZN15MallocExtension8instanceEv");
int MallocExtension_GetNumericProperty(const char *name, size_t *value);
int MallocExtension_SetNumericProperty(const char *name, size_t value);
int MallocExtension_GetOwnership(const void *block);
double MallocExtension_GetMemoryReleaseRate(void);
void MallocExtension_ReleaseToSystem(size_t bytes);
void MallocExtension_ReleaseFreeMemory(void);
void MallocExtension_MarkThreadIdle(void);
int MallocHook_AddNewHook(void (*hook)(const void *block, size_t size));
void HeapProfilerStart(const char *prefix);
void HeapProfilerDump(const char *reason);
void HeapProfilerStop(void);
int IsHeapProfilerRunning(void);
char *GetHeapProfile(void);
void *tc_malloc(size_t size);
void *tc_calloc(size_t count, size_t size);
void *tc_realloc(void *block, size_t size);
void *tc_memalign(size_t align, size_t size);
int tc_posix_memalign(void **block, size_t align, size_t size);
void tc_free(void *block);
size_t tc_malloc_size(void *block);
const char *tc_version(int *major, int *minor, const char **patch);
void *tc_new(size_t size);
void *tc_newarray_aligned_nothrow(size_t size, size_t align, const void *quiet);
void tc_delete_sized(void *block, size_t size);
void tc_deletearray_aligned(void *block, size_t align);

static char folder[] = "/tmp/hakmem-tcmalloc-XXXXXX";
static void *volatile block_kept;

static size_t property(const char *name) {
    size_t value = 0;
    EXPECT(MallocExtension_GetNumericProperty(name, &value));
    return value;
}

#define METHOD(place, type, ...) ((type(*)(void *, ##__VA_ARGS__))(*(void ***)instance())[place])

static void blocks_of_malloc_are_owned(void) {
    char on_stack = 0;
    void *block = malloc(100);
    EXPECT_EQ(MallocExtension_GetOwnership(block), OWNED);
    EXPECT_EQ(MallocExtension_GetOwnership(&on_stack), NOT_OWNED);
    EXPECT_EQ(MallocExtension_GetOwnership(NULL), NOT_OWNED);
    EXPECT_EQ(METHOD(OWNERSHIP, int, const void *)(instance(), block), OWNED);
    free(block);
}

static void figures_follow_the_heap_and_agree(void) {
    size_t before = property("generic.current_allocated_bytes");
    block_kept = memset(malloc(50 * MIB), 1, 50 * MIB);
    EXPECT(property("generic.current_allocated_bytes") - before >= 50 * MIB);
    EXPECT(property("generic.total_physical_bytes") >= 50 * MIB);
    free(block_kept);
    EXPECT(property("generic.current_allocated_bytes") <= before + MIB);
    EXPECT(property("tcmalloc.pageheap_free_bytes") >= 50 * MIB);
    MallocExtension_ReleaseToSystem(20 * MIB);
    EXPECT(property("tcmalloc.pageheap_free_bytes") <= 30 * MIB);
    MallocExtension_ReleaseFreeMemory();
    EXPECT(property("tcmalloc.pageheap_free_bytes") < MIB);
    EXPECT(property("generic.total_physical_bytes") < 10 * MIB);
    size_t free_bytes = property("tcmalloc.pageheap_free_bytes");
    size_t unmapped = property("tcmalloc.pageheap_unmapped_bytes");
    EXPECT_EQ(property("tcmalloc.slack_bytes"), free_bytes + unmapped);
    EXPECT_EQ(property("tcmalloc.pageheap_committed_bytes"),
              property("generic.heap_size") - unmapped);
}

static void properties_that_are_unknown_or_read_only_are_refused(void) {
    size_t value = 7;
    EXPECT_EQ(MallocExtension_GetNumericProperty("tcmalloc.nonsense", &value), 0);
    EXPECT_EQ(value, 7);
    EXPECT_EQ(MallocExtension_SetNumericProperty("generic.heap_size", 1), 0);
    EXPECT_EQ(MallocExtension_SetNumericProperty("tcmalloc.heap_limit_mb", 1), 0);
    EXPECT_EQ(MallocExtension_SetNumericProperty("", 1), 0);
    const char *cache = "tcmalloc.max_total_thread_cache_bytes";
    EXPECT_EQ(MallocExtension_SetNumericProperty(cache, 256 * MIB), 1);
    EXPECT(property(cache) > 250 * MIB && property(cache) <= 256 * MIB);
}

static void virtual_functions_are_at_their_places(void) {
    void *self = instance(), *block = malloc(100);
    size_t value = 0;
    EXPECT(METHOD(GET_NUMERIC, bool, const char *, size_t *)(self, "generic.heap_size", &value));
    EXPECT(value != 0);
    EXPECT(!METHOD(SET_NUMERIC, bool, const char *, size_t)(self, "generic.heap_size", 1));
    EXPECT(METHOD(ALLOCATED, size_t, const void *)(self, block) >= 100);
    EXPECT_EQ(METHOD(ESTIMATED, size_t, size_t)(self, 100),
              METHOD(ALLOCATED, size_t, void *)(self, block));
    METHOD(SET_RATE, void, double)(self, 7.5);
    EXPECT(METHOD(GET_RATE, double)(self) == 7.5);
    METHOD(SET_RATE, void, double)(self, 1);
    EXPECT(MallocExtension_GetMemoryReleaseRate() == 1);
    METHOD(RELEASE_FREE, void)(self);
    METHOD(TEMPORARILY_IDLE, void)(self);
    EXPECT_EQ(METHOD(CACHE_SIZE, size_t)(self), 0);
    free(block);
}

static void text_of_statistics_fits_the_buffer(void) {
    static const int lengths[] = {1, 10, 100, 4000};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char text[4001];
        memset(text, 'x', sizeof text);
        METHOD(GET_STATS, void, char *, int)(instance(), text, lengths[i]);
        EXPECT(strlen(text) < (size_t)lengths[i] && text[lengths[i]] == 'x');
        EXPECT(lengths[i] < 4000 || strstr(text, "Bytes in use by application") != NULL);
    }
}

static void names_of_the_family_work(void) {
    int major = 0;
    void *aligned = NULL;
    char *block = tc_realloc(tc_calloc(10, 10), 1000);
    EXPECT(block[99] == 0 && tc_malloc_size(block) >= 1000);
    tc_free(block);
    EXPECT_EQ((uintptr_t)(block = tc_memalign(4096, 100)) % 4096, 0);
    free(block);
    EXPECT_EQ(tc_posix_memalign(&aligned, 3, 100), EINVAL);
    EXPECT_EQ(tc_posix_memalign(&aligned, 64, 100), 0);
    tc_free(aligned);
    tc_delete_sized(tc_new(100), 100);
    EXPECT_EQ((uintptr_t)(aligned = tc_newarray_aligned_nothrow(100, 256, "")) % 256, 0);
    tc_deletearray_aligned(aligned, 256);
    EXPECT(tc_newarray_aligned_nothrow(SIZE_MAX - 4096, 256, "") == NULL);
    EXPECT(strstr(tc_version(&major, NULL, NULL), "hakmem") != NULL && major == 2);
    EXPECT_EQ(MallocHook_AddNewHook(NULL), 0);
    tc_free(tc_malloc(0));
}

static size_t file_bytes(const char *name, const char *end) {
    char path[200];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    return stat(path, &found) == 0 ? (size_t)found.st_size : 0;
}

static void heap_profiler_samples_and_writes_files(void) {
    char prefix[100];
    char *text = GetHeapProfile();
    EXPECT(!IsHeapProfilerRunning() && text[0] == '\0');
    free(text);
    snprintf(prefix, sizeof prefix, "%s/dump", folder);
    HeapProfilerStart(prefix);
    EXPECT(IsHeapProfilerRunning());
    for (int i = 0; i < 20000; i++) { /* 20 MB: 40 samples, as one in 512 KiB is */
        block_kept = malloc(1000);
    }
    text = GetHeapProfile();
    EXPECT(strncmp(text, "heap profile: ", 14) == 0 && strstr(text, "] @ 0x") != NULL);
    EXPECT(strstr(text, "\nMAPPED_LIBRARIES:\n") != NULL && strstr(text, " r-xp ") != NULL);
    free(text);
    HeapProfilerDump("a test");
    HeapProfilerDump("a test");
    EXPECT(file_bytes("dump", ".0001.heap") > 100 && file_bytes("dump", ".0002.heap") > 100);
    HeapProfilerStop();
    EXPECT(!IsHeapProfilerRunning());
    HeapProfilerDump("a test");
    EXPECT_EQ(file_bytes("dump", ".0003.heap"), 0);
}

/* The exit status of this program with a variable set. */
static int run_with(const char *variable, char *word) {
    char setting[200], options[] = "/proc/self/exe";
    char *const arguments[] = {options, word, NULL};
    char *const environment[] = {setting, NULL};
    pid_t child;
    int status = -1;
    snprintf(setting, sizeof setting, "%s", variable);
    EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environment), 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void variables_of_tcmalloc_are_followed(void) {
    char variable[200];
    EXPECT_EQ(run_with("TCMALLOC_RELEASE_RATE=0", "rate0"), 0);
    EXPECT_EQ(run_with("TCMALLOC_SAMPLE_PARAMETER=65536", "samples"), 0);
    EXPECT_EQ(run_with("TCMALLOC_AGGRESSIVE_DECOMMIT=t", "decommits"), 0);
    EXPECT_EQ(run_with("TCMALLOC_HEAP_LIMIT_MB=100", "limit"), 0);
    snprintf(variable, sizeof variable, "HEAPPROFILE=%s/whole", folder);
    EXPECT_EQ(run_with(variable, "samples"), 0);
    EXPECT(file_bytes("whole", ".0001.heap") > 20);
}

static void remove_files(void) {
    static const char *const names[] = {"dump.0001", "dump.0002", "whole.0001"};
    char path[200];
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s.heap", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static int variable_did(const char *word) {
    if (strcmp(word, "rate0") == 0) {
        return MallocExtension_GetMemoryReleaseRate() != 0;
    }
    if (strcmp(word, "samples") == 0) {
        return !IsHeapProfilerRunning();
    }
    size_t decommits = property("tcmalloc.aggressive_memory_decommit");
    return strcmp(word, "decommits") == 0 ? decommits != 1 : decommits != 0;
}

int main(int count, char **words) {
    if (count > 1) {
        return variable_did(words[1]);
    }
    EXPECT(mkdtemp(folder) != NULL);
    RUN(blocks_of_malloc_are_owned);
    RUN(figures_follow_the_heap_and_agree);
    RUN(properties_that_are_unknown_or_read_only_are_refused);
    RUN(virtual_functions_are_at_their_places);
    RUN(text_of_statistics_fits_the_buffer);
    RUN(names_of_the_family_work);
    RUN(heap_profiler_samples_and_writes_files);
    RUN(variables_of_tcmalloc_are_followed);
    remove_files();
    return expect_status();
}
