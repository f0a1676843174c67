/* SPDX-License-Identifier: MIT
 *
 * A running process, by its files in /proc and process_vm_readv. Whether that is allowed the kernel
 * decides, as for a debugger. */
#include "reader.h"

#include "os/optional.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct process {
    int folder;  /* its folder in /proc, which no other process gets */
    int pagemap; /* a word for each OS page; -1: not to be had */
    int memory;  /* where process_vm_readv is refused; -1: not needed so far */
    int written; /* its memory, to write to it; -1: not open */
    bool is_refused;
} process_t;

enum { VECTOR_WORDS = 128 }; /* of the kernel's, of which it has some 50 */

static int process_descriptor(const process_t *process, const char *name) {
    return openat(process->folder, name, O_RDONLY | O_CLOEXEC);
}

static FILE *process_open(const process_t *process, const char *name) {
    int descriptor = process_descriptor(process, name);
    return descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
}

/* Its files are gone with it, even if another process has its PID. */
bool obs_process_lives(const obs_reader_t *reader) {
    int descriptor = process_descriptor(reader->own, "stat");
    char byte;
    bool lives = descriptor >= 0 && read(descriptor, &byte, 1) == 1;
    close(descriptor);
    return lives;
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool copy_by_file(obs_reader_t *reader, uint64_t at, void *to, size_t bytes) {
    process_t *process = reader->own;
    if (process->memory < 0) {
        process->memory = process_descriptor(process, "mem");
    }
    return process->memory >= 0 && at <= INT64_MAX &&
           pread(process->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool process_copy(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at, void *to,
                         size_t bytes) {
    process_t *process = reader->own;
    (void)mapping;
    struct iovec local = {.iov_base = to, .iov_len = bytes};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
    if (!process->is_refused) {
        ssize_t length = process_vm_readv((pid_t)reader->pid, &local, 1, &remote, 1, 0);
        process->is_refused = length < 0 && (errno == ENOSYS || errno == EPERM);
        if (!process->is_refused) {
            return length == (ssize_t)bytes;
        }
    }
    return copy_by_file(reader, at, to, bytes);
}

/* The descriptor is of the memory that the process has now: if it executes another program, nothing
 * is written any more. */
bool obs_open_to_write(obs_reader_t *reader) {
    process_t *process = reader->own;
    process->written = openat(process->folder, "mem", O_WRONLY | O_CLOEXEC);
    return process->written >= 0 ||
           obs_fail(reader, "the memory of process %u may not be written: %s", reader->pid,
                    strerror(errno));
}

bool obs_write(obs_reader_t *reader, uint64_t at, const void *from, size_t bytes) {
    const process_t *process = reader->own;
    return (obs_is_mapped(reader, at, bytes) && at <= INT64_MAX &&
            pwrite(process->written, from, bytes, (off_t)at) == (ssize_t)bytes) ||
           obs_fail(reader, "the memory of process %u cannot be written", reader->pid);
}

/* Bit 63: in memory; bit 62: swapped out. */
static bool process_look(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base) {
    static uint64_t entry[OBS_CHUNK_WORDS * 64];
    const process_t *process = reader->own;
    size_t pages = ((size_t)1 << OBS_CHUNK_LOG2) / reader->page_bytes;
    off_t from = (off_t)(base / reader->page_bytes * sizeof *entry);
    ssize_t length = pread(process->pagemap, entry, pages * sizeof *entry, from);
    if (length < 0) {
        return false;
    }
    for (size_t i = 0; i < (size_t)length / sizeof *entry; i++) {
        uint64_t is_resident = entry[i] >> 63, is_held = is_resident | (entry[i] >> 62 & 1);
        chunk->resident[i / 64] |= is_resident << i % 64;
        chunk->held[i / 64] |= is_held << i % 64;
    }
    return true;
}

static void process_close(obs_reader_t *reader) {
    process_t *process = reader->own;
    if (process != NULL) {
        close(process->folder);
        close(process->pagemap);
        close(process->memory);
        close(process->written);
        free(process);
    }
}

static const obs_source_t process_source = {process_copy, process_look, process_close};

/* --- mappings --------------------------------------------------------------------------------- */

/* start-end rwxp offset device inode path */
static bool mapping_parse(char *line, obs_mapping_t *mapping) {
    char rights[5];
    unsigned long start, end, offset;
    int length = 0;
    int fields = sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, rights, &offset, &length);
    if (fields < 4 || length == 0) {
        return false;
    }
    char *path = line + length;
    path[strcspn(path, "\n")] = '\0';
    bool is_shared = rights[3] == 's';
    hak_os_mapping_kind_t kind = hak_os_kind_of_mapping(path, is_shared);
    bool is_private = !is_shared && (path[0] == '\0' || path[0] == '[');
    *mapping =
        (obs_mapping_t){.start = start,
                        .end = end,
                        .offset = offset,
                        .path = path,
                        .kind = kind,
                        .is_code = rights[2] == 'x',
                        .is_file = kind == HAK_OS_MAPPING_FILE && strncmp(path, "/dev/", 5) != 0,
                        .is_zeroed = is_private && strncmp(path, "[v", 2) != 0};
    return true;
}

/* Lines of smaps; without that file, of maps. The kernel lists some at a time: a mapping that grew
 * or was joined to another meanwhile comes again, and counts as it is then. */
static bool mappings_read(obs_reader_t *reader, FILE *file) {
    char *line = NULL;
    size_t room = 0;
    unsigned long kib;
    obs_mapping_t mapping;
    bool is_good = true;
    while (is_good && getline(&line, &room, file) > 0) {
        bool is_number = sscanf(line, "Rss: %lu kB", &kib) == 1;
        if (is_number && reader->mapping_count != 0) {
            reader->mapping[reader->mapping_count - 1].resident_bytes = (uint64_t)kib << 10;
            reader->knows_rss = true;
        } else if (((line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f')) &&
                   mapping_parse(line, &mapping)) {
            obs_cut_mappings(reader, mapping.start);
            is_good = obs_add_mapping(reader, &mapping);
        }
    }
    free(line);
    return is_good;
}

/* The last address of some machines' lists is the kernel's. */
static bool mappings_open(obs_reader_t *reader, bool wants_rss) {
    const process_t *process = reader->own;
    FILE *file = process_open(process, wants_rss ? "smaps" : "maps");
    if (file == NULL && errno == ENOENT) {
        file = process_open(process, "maps");
    }
    if (process->folder < 0 || (file == NULL && (errno == ENOENT || errno == ESRCH))) {
        return obs_fail(reader, "there is no process %u", reader->pid);
    }
    if (file == NULL) {
        return obs_fail(reader, "process %u: %s", reader->pid, strerror(errno));
    }
    errno = 0;
    bool is_good = mappings_read(reader, file), is_refused = errno == EACCES || errno == EPERM;
    fclose(file);
    if (is_good && reader->mapping_count == 0) {
        return obs_fail(reader, "process %u %s", reader->pid,
                        is_refused ? "is another user's"
                                   : "has no memory: it ends, or is the kernel's");
    }
    return is_good;
}

static void command_read(obs_reader_t *reader) {
    FILE *file = process_open(reader->own, "comm");
    if (file != NULL) {
        size_t length = fread(reader->command, 1, sizeof reader->command - 1, file);
        reader->command[length] = '\0';
        reader->command[strcspn(reader->command, "\n")] = '\0';
        fclose(file);
    }
}

static void vector_read(obs_reader_t *reader) {
    uint64_t word[VECTOR_WORDS];
    int descriptor = process_descriptor(reader->own, "auxv");
    ssize_t length = descriptor >= 0 ? read(descriptor, word, sizeof word) : 0;
    obs_take_vector(reader, word, length > 0 ? (size_t)length / sizeof *word : 0);
    if (descriptor >= 0) {
        close(descriptor);
    }
}

uint64_t obs_process_rss(const obs_reader_t *reader) {
    FILE *file = process_open(reader->own, "statm");
    unsigned long pages = 0;
    if (file != NULL) {
        pages = fscanf(file, "%*u %lu", &pages) == 1 ? pages : 0;
        fclose(file);
    }
    return pages * reader->page_bytes;
}

static bool is_thread_filtered(const process_t *process, const char *path) {
    FILE *file = process_open(process, path);
    char line[256];
    bool is_filtered = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        is_filtered =
            is_filtered || (strncmp(line, "Seccomp:\t", 9) == 0 && strncmp(line + 9, "0", 1) != 0);
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_filtered;
}

bool obs_process_is_filtered(const obs_reader_t *reader) {
    int descriptor = process_descriptor(reader->own, "task");
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    const struct dirent *entry;
    bool is_filtered = folder == NULL;
    while (folder != NULL && !is_filtered && (entry = readdir(folder)) != NULL) {
        char path[sizeof "task//status" + sizeof entry->d_name];
        snprintf(path, sizeof path, "task/%s/status", entry->d_name);
        is_filtered = entry->d_name[0] != '.' && is_thread_filtered(reader->own, path);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_filtered;
}

/* Yama lets only ancestors read, and root. */
static bool is_restricted(void) {
    char text[8] = "";
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    bool is_read = file != NULL && fgets(text, sizeof text, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return is_read && text[0] != '0';
}

/* Whether the memory may be read at all. */
static bool memory_try(obs_reader_t *reader) {
    char byte;
    for (size_t i = 0; i < reader->mapping_count; i++) {
        const obs_mapping_t *mapping = &reader->mapping[i];
        if (mapping->is_file && process_copy(reader, mapping, mapping->start, &byte, 1)) {
            return true;
        }
    }
    return obs_fail(reader, "the memory of process %u may not be read%s", reader->pid,
                    is_restricted() ? ": kernel.yama.ptrace_scope lets only root" : "");
}

static bool process_begin(obs_reader_t *reader, uint32_t pid, bool wants_rss) {
    process_t *process = calloc(1, sizeof *process);
    struct timespec now;
    char path[32];
    if (!obs_begin(reader, &process_source) || process == NULL) {
        free(process);
        return obs_fail(reader, "no memory");
    }
    reader->own = process;
    reader->pid = pid;
    reader->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    process->memory = process->written = -1;
    snprintf(path, sizeof path, "/proc/%u", pid);
    process->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    process->pagemap = process_descriptor(process, "pagemap");
    reader->knows_resident = process->pagemap >= 0;
    command_read(reader);
    reader->resident_bytes = obs_process_rss(reader);
    vector_read(reader);
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
        reader->now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
    return mappings_open(reader, wants_rss) && memory_try(reader);
}

bool obs_open_process(obs_reader_t *reader, uint32_t pid) {
    return process_begin(reader, pid, true);
}

bool obs_open_process_quickly(obs_reader_t *reader, uint32_t pid) {
    return process_begin(reader, pid, false);
}
