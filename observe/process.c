/* SPDX-License-Identifier: MIT
 *
 * A running process, by its files in /proc and process_vm_readv. Whether that is allowed the kernel
 * decides, as for a debugger. */
#include "reader.h"

#include "base/bits.h"
#include "base/fmt.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Of the calling thread: the folder of the process is that of its first one, and empty once that
 * has ended. Before Linux 3.17 there is no other. */
static const char SELF[] = "/proc/thread-self", SELF_FIRST[] = "/proc/self";

typedef struct process {
    int folder;      /* its folder in /proc, which no other process gets */
    int pagemap;     /* a word for each OS page; -1: not to be had */
    int memory;      /* where process_vm_readv is refused; -1: not needed so far */
    int written;     /* its memory, to write to it; -1: not open */
    bool is_refused; /* process_vm_readv */
    bool is_self;
} process_t;

enum {
    VECTOR_WORDS = 128,     /* of the kernel's, of which it has some 50 */
    LINES_BYTES = 16 << 10, /* of a line: the rest is left out */
};

static int process_descriptor(const process_t *process, const char *name) {
    return openat(process->folder, name, O_RDONLY | O_CLOEXEC);
}

int obs_process_open(const obs_reader_t *reader, const char *name) {
    return process_descriptor(reader->own, name);
}

/* Passes the whole lines in the buffer, and one that fills it, until one is the last. Returns the
 * bytes left. */
static size_t lines_take(char *text, size_t length, bool *is_rest, obs_take_line_t *take,
                         void *context, bool *goes_on) {
    size_t taken = 0;
    while (*goes_on) {
        char *end = memchr(text + taken, '\n', length - taken);
        bool is_cut = end == NULL && taken == 0 && length == LINES_BYTES;
        if (end == NULL && !is_cut) {
            break;
        }
        end = is_cut ? text + length - 1 : end;
        *end = '\0';
        *goes_on = *is_rest || take(text + taken, context);
        *is_rest = is_cut;
        taken = (size_t)(end - text) + 1;
    }
    memmove(text, text + taken, length - taken);
    return length - taken;
}

/* Without the C library's streams: they may be gone, and take memory. */
int obs_process_lines(const obs_reader_t *reader, const char *name, obs_take_line_t *take,
                      void *context) {
    static char text[LINES_BYTES + 1];
    size_t length = 0;
    bool is_rest = false, goes_on = true;
    int descriptor = obs_process_open(reader, name), error = descriptor < 0 ? errno : 0;
    while (descriptor >= 0 && goes_on) {
        ssize_t more = read(descriptor, text + length, LINES_BYTES - length);
        if (more <= 0) {
            error = more < 0 ? errno : 0;
            break;
        }
        length = lines_take(text, length + (size_t)more, &is_rest, take, context, &goes_on);
    }
    if (length != 0 && goes_on && error == 0 && !is_rest) { /* the last one has no end */
        text[length] = '\0';
        take(text, context);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return error;
}

/* Its files are gone with it, even if another process has its PID. */
bool obs_process_lives(const obs_reader_t *reader) {
    int descriptor = obs_process_open(reader, "stat");
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

/* For a process that lost the right to read its own file. What is not resident may be swapped out.
 */
static bool self_look(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base) {
    static unsigned char is_there[OBS_CHUNK_WORDS * 64];
    uint64_t page = reader->page_bytes, end = base + ((uint64_t)1 << OBS_CHUNK_LOG2);
    memset(chunk->held, 0xff, sizeof chunk->held);
    for (size_t i = 0; i < reader->mapping_count && reader->mapping[i].start < end; i++) {
        uint64_t from = hak_most(reader->mapping[i].start, base);
        uint64_t to = hak_least(reader->mapping[i].end, end);
        if (from >= to || mincore((void *)(uintptr_t)from, to - from, is_there) != 0) {
            continue; /* it is gone */
        }
        for (uint64_t at = from; at < to; at += page) {
            uint64_t number = (at - base) / page;
            chunk->resident[number / 64] |= (uint64_t)(is_there[(at - from) / page] & 1)
                                            << number % 64;
        }
    }
    return true;
}

/* Bit 63: in memory; bit 62: swapped out; bit 56: mapped here alone, since Linux 4.2. */
static bool process_look(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base) {
    static uint64_t entry[OBS_CHUNK_WORDS * 64];
    const process_t *process = reader->own;
    size_t pages = ((size_t)1 << OBS_CHUNK_LOG2) / reader->page_bytes;
    off_t from = (off_t)(base / reader->page_bytes * sizeof *entry);
    ssize_t length = pread(process->pagemap, entry, pages * sizeof *entry, from);
    if (length < 0) {
        return process->is_self && self_look(reader, chunk, base);
    }
    for (size_t i = 0; i < (size_t)length / sizeof *entry; i++) {
        uint64_t is_resident = entry[i] >> 63, is_held = is_resident | (entry[i] >> 62 & 1);
        chunk->resident[i / 64] |= is_resident << i % 64;
        chunk->held[i / 64] |= is_held << i % 64;
        chunk->shared[i / 64] |= (is_resident & ~(entry[i] >> 56)) << i % 64;
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
        obs_drop(process);
    }
}

static const obs_source_t process_source = {process_copy, process_look, process_close};

/* --- mappings --------------------------------------------------------------------------------- */

/* Moves behind a field and the blanks that follow it. */
static char *field_skip(char *at) {
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

/* By the path of its line, or "". */
static obs_mapping_kind_t mapping_kind(const char *path, bool is_shared) {
    static const struct {
        const char *start;
        obs_mapping_kind_t kind;
    } rows[] = {
        {"[heap]", OBS_MAPPING_BREAK},       {"[stack", OBS_MAPPING_STACK},
        {"[anon_shmem", OBS_MAPPING_SHARED}, {"[anon", OBS_MAPPING_ANONYMOUS},
        {"/dev/shm/", OBS_MAPPING_SHARED},   {"/memfd:", OBS_MAPPING_SHARED},
        {"/SYSV", OBS_MAPPING_SHARED},       {"/dev/zero", OBS_MAPPING_SHARED},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(path, rows[i].start, strlen(rows[i].start)) == 0) {
            return rows[i].kind;
        }
    }
    return path[0] != '\0' ? OBS_MAPPING_FILE
           : is_shared     ? OBS_MAPPING_SHARED
                           : OBS_MAPPING_ANONYMOUS;
}

/* start-end rwxp offset device inode path */
static bool mapping_parse(char *line, obs_mapping_t *mapping) {
    const char *at = line;
    uint64_t start = hak_parse_hex(&at);
    at += *at == '-';
    uint64_t end = hak_parse_hex(&at);
    char *rights = field_skip(line), *rest = field_skip(rights);
    if (end == 0 || *at != ' ' || rest - rights < 5) {
        return false;
    }
    at = rest;
    uint64_t offset = hak_parse_hex(&at);
    char *path = field_skip(field_skip(field_skip(rest)));
    bool is_shared = rights[3] == 's';
    obs_mapping_kind_t kind = mapping_kind(path, is_shared);
    bool is_private = !is_shared && (path[0] == '\0' || path[0] == '[');
    *mapping =
        (obs_mapping_t){.start = start,
                        .end = end,
                        .offset = offset,
                        .path = path,
                        .kind = kind,
                        .is_code = rights[2] == 'x',
                        .is_file = kind == OBS_MAPPING_FILE && strncmp(path, "/dev/", 5) != 0,
                        .is_zeroed = is_private && strncmp(path, "[v", 2) != 0};
    return true;
}

static uint64_t number_in(const char *text) {
    uint64_t number;
    return hak_parse_number(&text, strchr(text, '\0'), &number) ? number : 0;
}

/* Lines of smaps; without that file, of maps. The kernel lists some at a time: a mapping that grew
 * or was joined to another meanwhile comes again, and counts as it is then. */
static bool mappings_line(char *line, void *context) {
    obs_reader_t *reader = context;
    obs_mapping_t mapping;
    if (strncmp(line, "Rss:", 4) == 0 && reader->mapping_count != 0) {
        reader->mapping[reader->mapping_count - 1].resident_bytes = number_in(line + 4) << 10;
        reader->knows_rss = true;
    } else if (((line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f')) &&
               mapping_parse(line, &mapping)) {
        obs_cut_mappings(reader, mapping.start);
        return obs_add_mapping(reader, &mapping); /* false: reader->error says why */
    }
    return true;
}

/* The last address of some machines' lists is the kernel's. */
static bool mappings_open(obs_reader_t *reader, bool wants_rss) {
    const process_t *process = reader->own;
    int error = obs_process_lines(reader, wants_rss ? "smaps" : "maps", mappings_line, reader);
    if (error == ENOENT && wants_rss) {
        error = obs_process_lines(reader, "maps", mappings_line, reader);
    }
    bool is_none = reader->mapping_count == 0;
    if (process->folder < 0 || (is_none && (error == ENOENT || error == ESRCH))) {
        return obs_fail(reader, "there is no process %u", reader->pid);
    }
    if (is_none && error != 0) {
        return obs_fail(reader, "process %u: %s", reader->pid, strerror(error));
    }
    if (is_none && reader->error[0] == '\0') {
        return obs_fail(reader, "process %u has no memory: it ends, or is the kernel's",
                        reader->pid);
    }
    return reader->error[0] == '\0';
}

static bool command_line(char *line, void *context) {
    snprintf(context, OBS_COMMAND_BYTES, "%s", line);
    return false;
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

static bool rss_line(char *line, void *pages) {
    *(uint64_t *)pages = number_in(field_skip(line));
    return false;
}

uint64_t obs_process_rss(const obs_reader_t *reader) {
    uint64_t pages = 0;
    (void)obs_process_lines(reader, "statm", rss_line, &pages);
    return pages * reader->page_bytes;
}

static bool peak_line(char *line, void *bytes) {
    bool is_it = strncmp(line, "VmHWM:", 6) == 0;
    *(uint64_t *)bytes = is_it ? number_in(line + strspn(line + 6, " \t") + 6) << 10 : 0;
    return !is_it;
}

uint64_t obs_process_peak(const obs_reader_t *reader) {
    uint64_t bytes = 0;
    if (!reader->is_core) {
        (void)obs_process_lines(reader, "status", peak_line, &bytes);
    }
    return bytes;
}

static bool scope_line(char *line, void *is_restricted) {
    *(bool *)is_restricted = line[0] != '0';
    return false;
}

/* Yama lets only ancestors read, and root. */
static bool is_restricted(const obs_reader_t *reader) {
    bool is_it = false;
    (void)obs_process_lines(reader, "/proc/sys/kernel/yama/ptrace_scope", scope_line, &is_it);
    return is_it;
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
                    is_restricted(reader) ? ": kernel.yama.ptrace_scope lets only root" : "");
}

/* *is_filtered: system calls that it does not make may end it. */
static bool filter_line(char *line, void *is_filtered) {
    bool is_it = strncmp(line, "Seccomp:\t", 9) == 0;
    *(bool *)is_filtered = is_it && line[9] != '0';
    return !is_it;
}

bool obs_process_filter(const obs_reader_t *reader, const char *status) {
    bool is_filtered = true;
    int error = obs_process_lines(reader, status, filter_line, &is_filtered);
    return is_filtered && error == 0;
}

/* Itself is read by its file: a filter that lets it be opened lets it be read. Who may not open it,
 * as after setuid, may call the kernel, unless there is a filter. */
static void self_begin(obs_reader_t *reader) {
    process_t *process = reader->own;
    process->memory = process_descriptor(process, "mem");
    process->is_refused = process->memory >= 0 || obs_process_filter(reader, "status");
    reader->knows_resident =
        reader->knows_resident || !obs_process_filter(reader, "status"); /* by mincore */
}

static bool process_begin(obs_reader_t *reader, uint32_t pid, const char *path, bool wants_rss) {
    process_t *process = obs_take(sizeof *process);
    struct timespec now;
    if (!obs_begin(reader, &process_source) || process == NULL) {
        obs_drop(process);
        return obs_fail(reader, "no memory");
    }
    reader->own = process;
    reader->pid = pid;
    reader->page_bytes = getauxval(AT_PAGESZ); /* Debian takes sysconf for a need of glibc 2.34 */
    process->memory = process->written = -1;
    process->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    process->is_self = path == SELF;
    if (process->is_self && process->folder < 0) {
        process->folder = open(SELF_FIRST, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    process->pagemap = process_descriptor(process, "pagemap");
    reader->knows_resident = process->pagemap >= 0;
    if (process->is_self) {
        self_begin(reader);
    }
    (void)obs_process_lines(reader, process->is_self ? "/proc/self/comm" : "comm", command_line,
                            reader->command);
    reader->resident_bytes = obs_process_rss(reader);
    vector_read(reader);
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
        reader->now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
    return mappings_open(reader, wants_rss) && memory_try(reader);
}

bool obs_open_process(obs_reader_t *reader, uint32_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", pid);
    return process_begin(reader, pid, path, true);
}

bool obs_open_process_quickly(obs_reader_t *reader, uint32_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", pid);
    return process_begin(reader, pid, path, false);
}

bool obs_open_self(obs_reader_t *reader, bool wants_rss) {
    return process_begin(reader, (uint32_t)getpid(), SELF, wants_rss);
}
