/* SPDX-License-Identifier: MIT
 *
 * The report at exit (option report). The observer makes it, a library (observe/): this process
 * loads it as it starts, if it reports, as it may close its files, change its root or forbid calls
 * later. A program may have it linked in, and a static one must. */
#include "base/check.h"
#include "base/fmt.h"
#include "base/knobs.h"
#include "base/observer.h"
#include "base/version.h"
#include "conf/conf.h"
#include "door/door.h"
#include "life/life.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/optional.h"
#include "profile/profile.h"

#include <string.h>

enum { REPORT_PROFILE = 6 };       /* from this choice on reports are of the heap profile */
enum { REPORT_SHOWN_BYTES = 256 }; /* in a warning */

static uint64_t report_choice;         /* [init] 0: none */
static uint64_t report_least_bytes;    /* [init] of the peak */
static hak_observer_end_t *report_end; /* [init] */

static void warn_of(const char *option, const char *message) {
    const char *value = hak_conf_text(option);
    hak_warn("%s: %m: %s", option, value, hak_least(strlen(value), REPORT_SHOWN_BYTES), message);
}

/* Whether option `only`, "NAME", "NAME/SIZE" or empty, includes this program. */
static bool is_meant(const char *only) {
    size_t length = (size_t)(strchrnul(only, '/') - only);
    return length == 0 || hak_is_word(hak_os_program(), only, length);
}

/* The size behind the slash; 0 if there is none. false: the text is no size. */
static bool least_parse(const char *only, uint64_t *bytes) {
    const char *slash = strchr(only, '/');
    *bytes = 0;
    return slash == NULL || hak_parse_size(slash + 1, strlen(slash + 1), bytes);
}

HAK_COLD void hak_life_report_init(void) {
    const char *only = hak_conf_text("only");
    if (!is_meant(only) || hak_os_is_secure()) {
        return;
    }
    if (!least_parse(only, &report_least_bytes)) {
        warn_of("only", "the text after the / has to be a size");
    }
    (void)hak_conf_get("report", &report_choice);
    if (report_choice >= REPORT_PROFILE && hak_load_relaxed(&hak_knobs.profile_rate) == 0) {
        hak_store_relaxed(&hak_knobs.profile_rate, (size_t)HAK_PROFILE_RATE);
    }
    if (report_choice == 0 && hak_conf_text("report_file")[0] != '\0') {
        warn_of("report_file", "nothing is written there without the option report");
    }
}

/* Returns NULL, or why there will be no report. */
static HAK_COLD const char *observer_begin(void) {
    hak_observer_begin_t *begin =
        (hak_observer_begin_t *)hak_life_observer((void *)hak_observer_begin, "hak_observer_begin");
    hak_observer_end_t *end =
        (hak_observer_end_t *)hak_life_observer((void *)hak_observer_end, "hak_observer_end");
    if (begin == NULL || end == NULL) {
        return "it is not linked in, and cannot be loaded";
    }
    const hak_observer_order_t order = {.door = HAK_DOOR_VERSION,
                                        .report = hak_conf_text("report"),
                                        .file = hak_conf_text("report_file"),
                                        .program = hak_os_program(),
                                        .keep_profile = hak_profile_keep,
                                        .maintain =
                                            report_least_bytes == 0 ? &hak_profile_maintain : NULL,
                                        .is_hardened = HAK_HARDEN};
    const char *failure = begin(&order);
    report_end = end;
    return failure;
}

/* --- start and exit --------------------------------------------------------------------------- */

/* An unknown peak counts as large. */
static bool is_due(void) {
    uint64_t peak = report_least_bytes != 0 ? hak_os_resident_peak() : 0;
    return peak == 0 || peak >= report_least_bytes;
}

/* Registered before all other exit handlers, so it runs after them. A signal handler may call exit
 * inside an operation, whose locks stay taken: then no report. */
static void report_at_exit(void *unused) {
    (void)unused;
    if (!is_due()) {
        return;
    }
    if (hak_lock_holds_none()) {
        report_end();
    } else {
        hak_warn("report: none, as exit was called inside of an allocation");
    }
}

HAK_COLD void hak_life_report_begin(void) {
    if (report_choice == 0) {
        return;
    }
    const char *failure = observer_begin();
    if (failure != NULL) {
        hak_warn("report: none, as it needs " HAK_OBSERVER_LIBRARY ": %s", failure);
        return;
    }
    (void)hak_libc_at_exit(report_at_exit, NULL, NULL);
}
