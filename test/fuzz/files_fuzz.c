/* SPDX-License-Identifier: MIT
 *
 * Every text the core reads from the kernel, and sizes: as any bytes, each compared with a second
 * reading. The first byte of the input says which. */
#include "double/os_fault.h"
#include "fuzz/fuzz.h"
#include "fuzz/reading.h"

#include "base/fmt.h"
#include "os/optional.h"

enum { TEXT_MOST = 16000, PATH_BYTES = 512, FILES = 6 };

static char text[TEXT_MOST + 1]; /* zero-terminated */
static size_t text_bytes;

static void size_of_any_text(void) {
    uint64_t value = 7, expected;
    bool is_size = hak_parse_size(text, text_bytes, &value);
    FUZZ_EXPECT(is_size == reading_size(text, text_bytes, &expected));
    FUZZ_EXPECT(value == (is_size ? expected : 7));
}

static void quota_of_any_text(void) {
    unsigned cpus = hak_os_quota_parse(text, text_bytes);
    FUZZ_EXPECT(cpus == reading_quota(text, text_bytes));
}

static void path_of_any_text(void) {
    char path[PATH_BYTES], expected[PATH_BYTES];
    bool is_found = hak_os_cgroup_path(text, path);
    FUZZ_EXPECT(is_found == reading_path(text, expected, PATH_BYTES));
    FUZZ_EXPECT(!is_found || strcmp(path, expected) == 0);
}

/* --- files ------------------------------------------------------------------------------------ */

static const char *files[FILES]; /* parts of the text, one behind another */
static size_t file_bytes[FILES];
static unsigned level_shift; /* other levels have other files */

static void files_cut(void) {
    size_t at = 1;
    level_shift = (unsigned char)text[0];
    for (unsigned i = 0; i < FILES; i++) {
        at = at < text_bytes ? at : text_bytes;
        const char *end = memchr(text + at, '\xff', text_bytes - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : text_bytes - at;
        files[i] = text + at;
        file_bytes[i] = length;
        at += length + 1;
    }
}

static size_t give(const char *from, size_t length, char *buffer, size_t capacity) {
    memcpy(buffer, from, length < capacity ? length : capacity);
    return length;
}

static size_t serve_groups(const char *path, char *buffer, size_t capacity) {
    static const char *const names[FILES] = {"cgroup",         "memory.high", "memory.max",
                                             "memory.current", "memory.stat", "cpu.max"};
    static const char *const of_version_1[FILES] = {
        "", "", "memory.limit_in_bytes", "memory.usage_in_bytes", "", ""};
    unsigned depth = 0, which = 0;
    for (const char *at = path; *at != '\0'; at++) {
        depth += *at == '/';
    }
    const char *name = strrchr(path, '/') + 1;
    while (which < FILES && strcmp(name, names[which]) != 0 &&
           strcmp(name, of_version_1[which]) != 0) {
        which++;
    }
    FUZZ_EXPECT(which < FILES);
    if (which != 0 && (level_shift >> depth % 8 & 1) != 0) {
        which = 1 + which % (FILES - 1);
    }
    return give(files[which], file_bytes[which], buffer, capacity);
}

static void groups_of_any_files(void) {
    hak_os_memory_t memory = {7, 7}, again = {7, 7};
    files_cut();
    hak_os_fault_files(serve_groups);
    hak_os_fault_groups_anew();
    bool is_limited = hak_os_memory_limit(&memory);
    FUZZ_EXPECT(hak_os_memory_limit(&again) == is_limited);
    unsigned cpus = hak_os_cpu_quota();
    hak_os_fault_files(NULL);
    FUZZ_EXPECT(memory.limit_bytes == again.limit_bytes);
    FUZZ_EXPECT(is_limited || (memory.limit_bytes == 7 && memory.used_bytes == 7));
    FUZZ_EXPECT(cpus >= 1);
}

static size_t serve_text(const char *path, char *buffer, size_t capacity) {
    (void)path;
    return give(text, text_bytes, buffer, capacity);
}

extern char **environ;

/* Before the C library knows the environment it is read from the kernel. */
static void environment_of_any_text(void) {
    char value[100] = "untouched", expected[100] = "untouched";
    char **before = environ;
    hak_os_fault_files(serve_text);
    environ = NULL;
    hak_os_set_env(NULL);
    bool is_set = hak_os_env("HAKMEM_OPTIONS", value, sizeof value);
    environ = before;
    hak_os_fault_files(NULL);
    FUZZ_EXPECT(is_set ==
                reading_variable(text, text_bytes, "HAKMEM_OPTIONS", expected, sizeof expected));
    FUZZ_EXPECT(strcmp(value, expected) == 0);
}

static void huge_mode_of_any_text(void) {
    hak_os_fault_files(serve_text);
    hak_os_huge_detect();
    hak_os_fault_files(NULL);
    char head[64] = {0};
    memcpy(head, text, text_bytes < sizeof head - 1 ? text_bytes : sizeof head - 1);
    FUZZ_EXPECT(hak_os_huge_is_default() == (strstr(head, "[always]") != NULL));
}

static void see_mapping(const hak_os_mapping_t *mapping, void *unused) {
    (void)unused;
    FUZZ_EXPECT(strlen(mapping->path) < TEXT_MOST);
}

static void mappings_of_any_text(void) {
    static char buffer[TEXT_MOST];
    hak_os_fault_files(serve_text);
    hak_os_mappings(buffer, sizeof buffer, see_mapping, NULL);
    (void)hak_os_resident_peak();
    hak_os_fault_files(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(void) = {
        size_of_any_text,        quota_of_any_text,     path_of_any_text,     groups_of_any_files,
        environment_of_any_text, huge_mode_of_any_text, mappings_of_any_text,
    };
    if (size == 0) {
        return 0;
    }
    text_bytes = size - 1 < TEXT_MOST ? size - 1 : TEXT_MOST;
    memcpy(text, data + 1, text_bytes);
    text[text_bytes] = '\0';
    readers[data[0] % (sizeof readers / sizeof *readers)]();
    return 0;
}
