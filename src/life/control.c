/* SPDX-License-Identifier: MIT
 *
 * The life of the control channel (option `control`).
 *
 * The channel's thread starts when the library is loaded, so that it answers for a program that
 * allocates nothing. In the child of a fork, which may be about to call exec, an event starts it,
 * if the path differs per process; the next event reports an error there.
 *
 * It must not be the last thread, which runs the exit handlers: it lacks the program's descriptors.
 * So the main thread stops and joins it on pthread_exit, and it is not started again. The main
 * thread starts it; at a tool's command any thread does, as the main one may sleep. */
#include "control/control.h"
#include "base/knobs.h"
#include "conf/conf.h"
#include "front/event.h"
#include "life/life.h"
#include "life/thread.h"
#include "os/libc.h"
#include "os/optional.h"
#include "profile/profile.h"
#include "reclaim/reclaim.h"
#include "stat/stat.h"

#include <string.h>

enum { CONTROL_NONE, CONTROL_STARTS, CONTROL_SERVES, CONTROL_FAILED, CONTROL_OVER };
enum { CONTROL_STACK_BYTES = 256 << 10 }; /* a request and a snapshot take some KiB each */

static const uint64_t PROFILE_RATE_MOST = 1ull << 40; /* as of the option */
static const uint64_t CONTROL_START_NS = 1000000000;  /* program start waits at most so long */

static uint32_t control_state = CONTROL_OVER; /* [atomic] */
static uint32_t control_should_stop;          /* [atomic] */
static const char *control_failure;           /* [thread] the channel's, until CONTROL_FAILED */
static pthread_t control_thread;              /* [thread] main */
static pthread_key_t control_key;   /* [init] its destructor runs as the main thread leaves */
static bool control_is_wanted;      /* [init] or by an attaching tool */
static const char *control_pattern; /* the same: the option's value, or the tool's name */
static uint32_t attach_is_busy;     /* [atomic] a thread carries out a tool's command */

/* --- topics and actions ----------------------------------------------------------------------- */

static void topic_report(unsigned which, const hak_sink_t *sink) {
    hak_stat_report((hak_report_t)which, sink);
}

static void topic_options(unsigned which, const hak_sink_t *sink) {
    (void)which;
    hak_conf_report(sink);
}

static void add_resident(const hak_os_mapping_t *mapping, void *sum) {
    *(uint64_t *)sum += mapping->resident_bytes;
}

static uint64_t resident_now(void) {
    char text[2048];
    uint64_t sum = 0;
    bool is_told = hak_os_mappings(true, text, sizeof text, add_resident, &sum) && sum != 0;
    return is_told ? sum : hak_os_resident_all();
}

/* Keeps the caches of other threads. Reports RSS, as returned memory may not have been resident. */
static void action_trim(unsigned keep, const hak_sink_t *sink) {
    uint64_t before = resident_now();
    (void)hak_reclaim_trim(keep);
    uint64_t after = resident_now();
    hak_report_head(sink);
    hak_sink_format(sink, ",\n\"returned_bytes\":%l,\"rss_before_bytes\":%l,\"rss_bytes\":%l}\n",
                    before > after ? before - after : 0, before, after);
}

/* --- the heap profile ------------------------------------------------------------------------- */

static void (*const profile_texts[])(const hak_sink_t *sink) = {hak_profile_write_pprof,
                                                                hak_profile_write_leaks};

static void topic_profile_text(unsigned which, const hak_sink_t *sink) {
    profile_texts[which](sink);
}

/* "rate=BYTES" and "reset=1", in any order, between ampersands. */
static bool act_profile_item(const char *item, size_t length) {
    static const char rate[] = "rate=";
    uint64_t value;
    if (hak_is_word("reset=1", item, length)) {
        hak_profile_reset();
        return true;
    }
    return length >= sizeof rate && memcmp(item, rate, sizeof rate - 1) == 0 &&
           hak_parse_size(item + sizeof rate - 1, length - (sizeof rate - 1), &value) &&
           value <= PROFILE_RATE_MOST && hak_profile_set_rate(value);
}

static bool act_profile(const char *query, size_t length) {
    bool is_right = length != 0;
    while (is_right && length != 0) {
        const char *end = memchr(query, '&', length);
        size_t item = end != NULL ? (size_t)(end - query) : length;
        is_right = act_profile_item(query, item);
        item += end != NULL;
        query += item;
        length -= item;
    }
    return is_right;
}

static void action_profile(unsigned which, const hak_sink_t *sink) {
    (void)which;
    hak_profile_state_t state;
    hak_profile_look(&state);
    hak_report_head(sink);
    hak_sink_format(sink, ",\n\"rate\":%z,\"samples\":%l,\"sites\":%l}\n", state.rate, state.taken,
                    state.sites);
}

static bool act_always(const char *query, size_t length) {
    (void)query, (void)length;
    return true;
}

#define CONTROL_TEXT "text/plain; charset=utf-8"
#define CONTROL_JSON "application/json"

static const hak_control_topic_t topics[] = {
    {"/", CONTROL_TEXT, hak_control_list, 0, NULL},
    {"/summary.txt", CONTROL_TEXT, topic_report, HAK_REPORT_SUMMARY, NULL},
    {"/stats.txt", CONTROL_TEXT, topic_report, HAK_REPORT_TEXT, NULL},
    {"/stats.json", CONTROL_JSON, topic_report, HAK_REPORT_JSON, NULL},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", topic_report, HAK_REPORT_METRICS,
     NULL},
    {"/explain.txt", CONTROL_TEXT, topic_report, HAK_REPORT_EXPLAIN, NULL},
    {"/explain.json", CONTROL_JSON, topic_report, HAK_REPORT_EXPLAIN_JSON, NULL},
    {"/map.json", CONTROL_JSON, topic_report, HAK_REPORT_MAP, NULL},
    {"/profile", CONTROL_JSON, topic_report, HAK_REPORT_PROFILE, NULL},
    {"/heap.pb.gz", "application/octet-stream", topic_profile_text, 0, NULL},
    {"/leaks.txt", CONTROL_TEXT, topic_profile_text, 1, NULL},
    {"/options.json", CONTROL_JSON, topic_options, 0, NULL},
    {"/trim", CONTROL_JSON, action_trim, 0, act_always},
    {"/profile", CONTROL_JSON, action_profile, 0, act_profile},
    {0},
};

/* --- the thread ------------------------------------------------------------------------------- */

static HAK_COLD void *control_main(void *unused) {
    hak_life_thread_begin();
    control_failure = hak_control_open(control_pattern);
    uint32_t starts = CONTROL_STARTS,
             next = control_failure == NULL ? CONTROL_SERVES : CONTROL_FAILED;
    if (control_failure == NULL) {
        hak_os_drop_rights();
    }
    while (!hak_cas_release(&control_state, &starts, next) && /* pairs CONTROL */
           starts == CONTROL_STARTS) {
    }
    hak_os_wake_one(&control_state);
    if (control_failure == NULL) {
        hak_control_run(&control_should_stop);
    } else if (starts == CONTROL_STARTS) {
        pthread_detach(pthread_self()); /* no join: the reporter is inside an allocation */
    }
    return unused;
}

/* The destructor of control_key. */
static void control_main_leaves(void *unused) {
    (void)unused;
    uint32_t state = hak_swap_acquire(&control_state, CONTROL_OVER); /* pairs CONTROL */
    if (state == CONTROL_STARTS || state == CONTROL_SERVES) {
        hak_store_relaxed(&control_should_stop, 1);
        pthread_join(control_thread, NULL);
        hak_control_remove();
    }
}

static bool control_make_key(void) {
    int (*create)(pthread_key_t *, void (*)(void *)) = pthread_key_create;
    HAK_OPAQUE(create); /* NULL in a program that can have no threads: os/libc.h */
    return create != NULL && create(&control_key, control_main_leaves) == 0;
}

static bool control_is_main(void) {
    return hak_os_thread_id() == hak_os_process_id();
}

static HAK_COLD void control_start(void) {
    uintptr_t tcache = hak_life_detour_begin(); /* pthread_setspecific may allocate */
    bool is_told = !control_is_main() || pthread_setspecific(control_key, &control_key) == 0;
    hak_life_detour_end(tcache);
    hak_store_relaxed(&control_state, CONTROL_STARTS);
    if (!is_told ||
        !hak_life_thread_create(control_main, &control_thread, CONTROL_STACK_BYTES, NULL)) {
        hak_store_relaxed(&control_state, CONTROL_OVER);
        hak_control_warn("control", control_pattern, "no thread could be started");
    }
}

static void control_say(void) {
    uint32_t failed = CONTROL_FAILED;
    if (hak_cas_acquire(&control_state, &failed, CONTROL_OVER)) { /* pairs CONTROL */
        hak_control_warn("control", control_pattern, control_failure);
    }
}

/* `is_apart`: another thread will do, if the main one tells its end. */
static void control_go_on(const hak_tcache_t *tcache, bool is_apart) {
    uint32_t state = hak_load_relaxed(&control_state);
    if (HAK_UNLIKELY(state == CONTROL_NONE || state == CONTROL_FAILED) &&
        hak_life_may_start(tcache) &&
        (control_is_main() || (is_apart && hak_life_main_tells_end()))) {
        if (state == CONTROL_NONE) {
            control_start();
        } else {
            control_say();
        }
    }
}

static void control_look(hak_tcache_t *tcache) {
    control_go_on(tcache, false);
}

/* --- attaching to a running process ----------------------------------------------------------- */

/* A tool that may write to the process's memory, as a debugger does, finds the request by its
 * symbol, and numbers it anew. Any slow path's event carries it out. In hardened builds the program
 * cannot write the request (HAK_SEALED), but a debugger can. An overwritten answer repeats the last
 * request at most. */
enum {
    ATTACH_CONTROL = 1, /* serve at @hakmem-PID */
    ATTACH_PROFILE = 2, /* the same, and sample */
    ATTACH_PERMISSION = 1,
    ATTACH_BUSY = 16 /* errno */
};
static const uint64_t ATTACH_FAILED = 1ull << 63;     /* and an error number */
enum { ATTACH_NAP_NS = 1000000, ATTACH_NAPS = 1000 }; /* a handler may have ended that thread */

static struct attach_answer {
    uint64_t result; /* [atomic] the command that was carried out, or why not */
    uint64_t number; /* [atomic] of the request */
} attach_answer;

typedef struct attach {
    char magic[8];
    uint32_t version, bytes;
    uint64_t command;  /* [atomic] */
    uint64_t argument; /* [atomic] of ATTACH_PROFILE: the rate; 0: the usual one */
    uint64_t number;   /* [atomic] the tool stores it last */
    const struct attach_answer *answer;
} HAK_SEALED attach_t;

HAK_EXPORT attach_t hak_attach = {.magic = {'H', 'A', 'K', 'A', 'T', 'T', 'C', 'H'},
                                  .version = 2,
                                  .bytes = offsetof(attach_t, answer) + sizeof(void *),
                                  .answer = &attach_answer};

void hak_life_control_seal(void) {
    hak_os_seal(&hak_control_table, sizeof hak_control_table);
    hak_os_seal(&hak_attach, sizeof hak_attach);
}

/* The state once the channel has begun to serve, or cannot; 0: not yet. */
static uint64_t attach_serve(hak_tcache_t *tcache, uint64_t command) {
    static const char name[] = "@hakmem-%p";
    uint32_t state = hak_load_relaxed(&control_state);
    if (!control_is_wanted && state == CONTROL_OVER) {
        if (!control_make_key()) {
            return ATTACH_FAILED | ATTACH_BUSY;
        }
        control_pattern = name;
        control_is_wanted = true;
        hak_store_relaxed(&control_state, CONTROL_NONE);
    }
    if (control_pattern != name) { /* it serves where the option says */
        return ATTACH_FAILED | ATTACH_BUSY;
    }
    control_go_on(tcache, true);
    state = hak_load_relaxed(&control_state);
    return state == CONTROL_SERVES ? command
           : state == CONTROL_OVER ? ATTACH_FAILED | ATTACH_BUSY
                                   : 0;
}

static HAK_COLD uint64_t attach_obey(hak_tcache_t *tcache) {
    uint64_t command = hak_load_relaxed(&hak_attach.command);
    if (hak_os_is_secure() || hak_load_relaxed(&hak_knobs.force_libc)) {
        return ATTACH_FAILED | ATTACH_PERMISSION;
    }
    uint64_t rate = hak_load_relaxed(&hak_attach.argument);
    hak_profile_state_t profile;
    hak_profile_look(&profile);
    if (command == ATTACH_PROFILE && profile.rate == 0 &&
        (rate > PROFILE_RATE_MOST ||
         !hak_profile_set_rate(rate != 0 ? rate : (uint64_t)HAK_PROFILE_RATE))) {
        return ATTACH_FAILED | ATTACH_PERMISSION;
    }
    return command == ATTACH_CONTROL || command == ATTACH_PROFILE
               ? attach_serve(tcache, command)
               : ATTACH_FAILED | ATTACH_PERMISSION;
}

static void attach_look(hak_tcache_t *tcache) {
    uint64_t number = hak_load_acquire(&hak_attach.number); /* pairs ATTACH */
    if (HAK_LIKELY(number == hak_load_relaxed(&attach_answer.number)) ||
        hak_swap_acquire(&attach_is_busy, 1) != 0) { /* pairs ATTACH */
        return;
    }
    uint64_t result = attach_obey(tcache);
    if (result != 0) {
        hak_store_relaxed(&attach_answer.result, result);
        hak_store_release(&attach_answer.number, number); /* pairs ATTACH */
    }
    hak_store_release(&attach_is_busy, 0); /* pairs ATTACH */
}

/* Waits for a thread that is about to start the channel; none will any more. */
void hak_life_control_main_ends(void) {
    if (!control_is_main()) { /* it was the first to allocate */
        return;
    }
    unsigned naps = 0;
    while (hak_swap_acquire(&attach_is_busy, 1) != 0 && naps++ < ATTACH_NAPS) { /* pairs ATTACH */
        hak_os_sleep(ATTACH_NAP_NS);
    }
    control_main_leaves(NULL);
}

void hak_life_control_after_fork(void) {
    bool is_own = control_is_wanted && strstr(control_pattern, "%p") != NULL;
    hak_control_after_fork();
    hak_store_relaxed(&control_should_stop, 0);
    hak_store_relaxed(&attach_is_busy, 0);
    hak_store_relaxed(&attach_answer.number,
                      hak_load_relaxed(&hak_attach.number)); /* it was for the parent */
    hak_store_relaxed(&control_state, is_own ? CONTROL_NONE : CONTROL_OVER);
}

/* --- start and exit --------------------------------------------------------------------------- */

static void control_exit(void *unused) {
    (void)unused;
    hak_control_remove();
}

HAK_COLD void hak_life_control_init(void) {
    hak_control_table.topics = topics;
    hak_event_register(attach_look, HAK_EVENT_PROCESS);
    if (!hak_life_is_meant()) {
        return;
    }
    if (hak_conf_text("control")[0] == '\0' || hak_os_is_secure()) {
        return;
    }
    if (control_make_key()) {
        control_pattern = hak_conf_text("control");
        control_is_wanted = true;
        hak_event_register(control_look, HAK_EVENT_PROCESS);
    } else {
        hak_control_warn("control", hak_conf_text("control"),
                         "this program can have no threads, or no key of theirs is left");
    }
}

HAK_COLD void hak_life_control_begin(void) {
    if (!control_is_wanted) {
        return;
    }
    (void)hak_libc_at_exit(control_exit, NULL, NULL);
    hak_store_relaxed(&control_state, CONTROL_NONE);
    if (control_is_main()) {
        uint64_t due_ns = hak_os_now_ns() + CONTROL_START_NS;
        control_start();
        while (hak_load_relaxed(&control_state) == CONTROL_STARTS && hak_os_now_ns() < due_ns) {
            hak_os_wait_at_most(&control_state, CONTROL_STARTS, CONTROL_START_NS);
        }
        control_say();
    }
}
