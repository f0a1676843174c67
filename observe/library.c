/* SPDX-License-Identifier: MIT
 *
 * hakmem/observe.h: reports of the process itself. It is read as another one is, so no lock of the
 * heap is taken, and no memory of it. */
#include "library.h"

#include "base/atomics.h"
#include "hakmem/observe.h"
#include "memory.h"
#include "os/syscall_linux.h"
#include "reader.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static uint32_t busy; /* [atomic] the thread that makes a report; 0: none */

static int busy_errno, busy_cancel; /* [holder] of the thread, before */

/* A thread that is gone, as in the child of a fork, is in it no more. Inside no thread is
 * cancelled: it may have come from malloc, which leaves errno alone, too. */
bool obs_enter(bool may_wait) {
    uint32_t self = (uint32_t)hak_syscall(SYS_gettid, 0), seen = 0;
    int saved = errno, before, unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (!hak_cas_acquire(&busy, &seen, self)) { /* pairs OBSERVE */
        bool is_there = seen != 0 && hak_syscall(SYS_tgkill, getpid(), seen, 0) != -ESRCH;
        if (seen == self || (is_there && !may_wait)) {
            pthread_setcancelstate(before, &unused);
            errno = saved;
            return false;
        }
        if (is_there) {
            sched_yield();
            seen = 0;
        }
    }
    busy_errno = saved;
    busy_cancel = before;
    return true;
}

void obs_leave(void) {
    int saved = busy_errno, before = busy_cancel, unused;
    hak_store_release(&busy, 0); /* pairs OBSERVE */
    pthread_setcancelstate(before, &unused);
    errno = saved;
}

static const char *report_make(obs_page_t *page, obs_verb_t verb, obs_form_t form) {
    static obs_reader_t reader;
    static obs_image_t image;
    const hak_sink_t sink = {.put = obs_page_put, .context = page};
    bool wants_rss = verb == OBS_EXPLAIN || verb == OBS_SUMMARY;
    bool is_open = obs_open_self(&reader, wants_rss) && obs_image_open(&image, &reader);
    if (is_open) {
        obs_report(&image, verb, form, &sink);
    }
    obs_close(&reader);
    return !is_open ? reader.error : page->is_cut ? "no memory" : NULL;
}

const char *obs_report_make(obs_page_t *page, obs_verb_t verb, obs_form_t form) {
    const char *error = "a report was interrupted";
    *page = (obs_page_t){0};
    if (obs_enter(true)) {
        error = report_make(page, verb, form);
        obs_leave();
    }
    return error;
}

void obs_report_drop(obs_page_t *page) {
    if (page->data != NULL && obs_enter(true)) {
        obs_drop(page->data);
        obs_leave();
    }
    *page = (obs_page_t){0};
}

void obs_warn(const char *format, ...) {
    HAK_TEXT(line, HAK_LINE_TEXT);
    va_list args;
    hak_text_str(&line, "hakmem: ");
    va_start(args, format);
    hak_text_format_list(&line, format, args);
    va_end(args);
    line.data[line.length] = '\n'; /* HAK_TEXT has one byte more */
    (void)obs_file_write_calmly(STDERR_FILENO, line.data, line.length + 1);
}

/* --- hakmem/observe.h ------------------------------------------------------------------------- */

static void report(int fd, obs_verb_t verb, obs_form_t form) {
    obs_page_t page;
    const char *error = obs_report_make(&page, verb, form);
    if (error != NULL) {
        obs_warn("%s", error);
    } else {
        (void)obs_file_write(fd, page.data, page.length);
    }
    obs_report_drop(&page);
}

EXPORT void hak_explain(int fd) {
    report(fd, OBS_EXPLAIN, OBS_TEXT);
}

EXPORT void hak_explain_json(int fd) {
    report(fd, OBS_EXPLAIN, OBS_JSON);
}

EXPORT void hak_stats_print(int fd) {
    report(fd, OBS_STATS, OBS_TEXT);
}

EXPORT void hak_stats_json(int fd) {
    report(fd, OBS_STATS, OBS_JSON);
}

EXPORT void hak_heap_map(int fd) {
    report(fd, OBS_MAP, OBS_JSON);
}

EXPORT void hak_profile_json(int fd) {
    report(fd, OBS_PROFILE, OBS_JSON);
}

EXPORT void hak_profile_heap(int fd) {
    report(fd, OBS_HEAP, OBS_TEXT);
}
