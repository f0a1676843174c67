/* SPDX-License-Identifier: MIT
 *
 * What the allocator calls of this library, which it loads (life/observer.c): the report at exit
 * (option report), and jemalloc's prof.dump. Many programs, all GNU coreutils among them, close
 * standard error before they end: then the report goes to a copy of it, unless the program closed
 * that, too. */
#include "kept.h"
#include "library.h"

#include "base/atomics.h"
#include "base/observer.h"
#include "os/os.h"
#include "os/syscall_linux.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { PATTERN_BYTES = 256, PATH_BYTES = 1536 /* 255 bytes, all %p */, SHOWN_BYTES = 256 };

static const struct choice {
    const char *name;
    obs_verb_t verb;
    obs_form_t form;
} choices[] = {
    {"exit", OBS_SUMMARY, OBS_TEXT},    {"json", OBS_STATS, OBS_JSON},
    {"explain", OBS_EXPLAIN, OBS_TEXT}, {"map", OBS_MAP, OBS_JSON},
    {"stats", OBS_STATS, OBS_TEXT},     {"profile", OBS_PROFILE, OBS_JSON},
    {"leaks", OBS_LEAKS, OBS_TEXT},
};

static const struct choice *chosen;
static char pattern[PATTERN_BYTES], program[PATTERN_BYTES];
static int kept_fd = -1;
static obs_file_id_t kept_file;

static void text_set(char to[PATTERN_BYTES], const char *from) {
    size_t length = strnlen(from, PATTERN_BYTES - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

/* Replaces %p by the process's ID and %e by its program's name. false: too long. */
static bool path_make(char path[PATH_BYTES]) {
    hak_text_t text = {.data = path, .capacity = PATH_BYTES};
    for (const char *at = pattern; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            hak_text_uint(&text, (uint64_t)getpid());
            at++;
        } else if (at[0] == '%' && at[1] == 'e') {
            hak_text_str(&text, program);
            at++;
        } else {
            hak_text_mem(&text, at, 1);
        }
    }
    if (text.length == PATH_BYTES) {
        return false;
    }
    path[text.length] = '\0';
    return true;
}

static bool is_kept(const obs_file_id_t *file) {
    return file->device == kept_file.device && file->inode == kept_file.inode;
}

/* Standard error, if it is open; else the copy, unless its number is another file's by now. What
 * got descriptor 2 after the start holds data, or talks to another process, unless it is a terminal
 * or a pipe. -1: none. */
static int error_fd(void) {
    obs_file_id_t there;
    if (obs_file_find(STDERR_FILENO, &there) && (there.is_stream || is_kept(&there))) {
        return STDERR_FILENO;
    }
    return obs_file_find(kept_fd, &there) && is_kept(&there) ? kept_fd : -1;
}

static void warn_of_file(const char *message) {
    obs_warn("report_file: %m: %s", pattern, strnlen(pattern, SHOWN_BYTES), message);
}

/* --- a profile that survives ------------------------------------------------------------------ */

/* Fewer samples say little. A shell that starts programs has fewer, and ends by _exit: thousands of
 * them would leave thousands of files. */
enum { KEEP_SAMPLES = 32 };

static size_t (*keep_profile)(char *to, void *head);
static uint32_t keep_owner; /* the process whose file it is, also without a %p */
static uint32_t keep_tried; /* [atomic] the process that keeps it, or could not */

static void keep(void) {
    char path[PATH_BYTES];
    obs_keep_t done = path_make(path) ? obs_keep(path, program, keep_profile) : OBS_KEEP_DONE;
    if (done == OBS_KEEP_AGAIN) {
        hak_store_relaxed(&keep_tried, 0);
    } else if (done == OBS_KEEP_NO_ROOM && error_fd() == STDERR_FILENO) {
        warn_of_file("no room for a profile that survives its process");
    }
}

/* A forked child has a file of its own, if its number makes one. */
static void keep_maintain(bool is_kept, uint64_t sites, uint64_t samples) {
    if (is_kept) {
        obs_keep_modules(sites);
    } else if (samples >= KEEP_SAMPLES) {
        uint32_t self = (uint32_t)getpid();
        bool is_named = self == keep_owner || strstr(pattern, "%p") != NULL;
        uint32_t tried = hak_load_relaxed(&keep_tried);
        if (is_named && tried != self && hak_cas_relaxed(&keep_tried, &tried, self)) {
            keep();
        }
    }
}

/* The hardened library never calls the other function. */
static void keep_begin(const hak_observer_order_t *order) {
    bool is_profile = chosen->verb == OBS_PROFILE || chosen->verb == OBS_LEAKS;
    if (!is_profile || pattern[0] == '\0' || order->maintain == NULL) {
        return;
    }
    keep_profile = order->keep_profile;
    keep_owner = (uint32_t)getpid();
    *order->maintain = keep_maintain;
    if (order->is_hardened) {
        hak_store_relaxed(&keep_tried, keep_owner);
        keep();
    }
}

/* --- begin, end ------------------------------------------------------------------------------- */

const char *hak_observer_begin(const hak_observer_order_t *order) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        chosen = strcmp(choices[i].name, order->report) == 0 ? &choices[i] : chosen;
    }
    if (order->door != HAK_DOOR_VERSION || chosen == NULL) {
        chosen = NULL;
        return "it is of another version";
    }
    text_set(pattern, order->file);
    text_set(program, order->program);
    (void)obs_file_find(STDERR_FILENO, &kept_file);
    if (pattern[0] == '\0') {
        kept_fd = obs_file_keep(STDERR_FILENO);
    }
    keep_begin(order);
    return NULL;
}

/* In one piece, so that reports of several processes do not mix. */
static void report_write(const obs_page_t *page) {
    char path[PATH_BYTES];
    if (pattern[0] == '\0') {
        int fd = error_fd();
        if (fd >= 0) {
            (void)obs_file_write_calmly(fd, page->data, page->length);
        }
        return;
    }
    obs_keep_end();
    int fd = path_make(path) ? obs_file_create(path) : -1;
    if (fd < 0) {
        warn_of_file("no file of this user can be written there");
        return;
    }
    if (!obs_file_write_calmly(fd, page->data, page->length)) {
        warn_of_file("its end is missing: no room, or no reader");
    }
    hak_syscall(SYS_close, fd);
}

void hak_observer_end(void) {
    obs_page_t page;
    if (chosen == NULL) {
        return;
    }
    const char *error = obs_report_make(&page, chosen->verb, chosen->form);
    if (error == NULL) {
        report_write(&page);
    } else {
        obs_warn("report: none: %s", error);
    }
    obs_report_drop(&page);
}

bool hak_observer_dump(const char *path) {
    obs_page_t page;
    const char *error = obs_report_make(&page, OBS_HEAP_V2, OBS_TEXT);
    int fd = error == NULL ? obs_file_create(path) : -1;
    if (error == NULL && fd < 0) {
        error = "no file of this user can be written there";
    } else if (error == NULL && !obs_file_write_calmly(fd, page.data, page.length)) {
        error = "its end is missing: no room, or no reader";
    }
    if (fd >= 0) {
        hak_syscall(SYS_close, fd);
    }
    if (error != NULL) {
        obs_warn("heap profile: %m: %s", path, strnlen(path, SHOWN_BYTES), error);
    }
    obs_report_drop(&page);
    return error == NULL;
}
