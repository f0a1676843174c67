/* SPDX-License-Identifier: MIT
 *
 * What the reports of stat/ ask the core and the operating system, answered for the program that is
 * observed. */
#include "image.h"

#include "base/knobs.h"
#include "conf/conf.h"
#include "os/syscall_linux.h"
#include "reclaim/learner.h"
#include "stat/report.h"
#include "stat/rss.h"

#include <sys/syscall.h>

hak_knobs_t hak_knobs;      /* those that reports ask for */
hak_dense_t hak_dense_sure; /* span.h names it */

/* --- the operating system --------------------------------------------------------------------- */

size_t hak_os_page_bytes(void) {
    return obs_current->reader->page_bytes;
}

size_t hak_os_resident(const void *base, size_t bytes) {
    return obs_resident(obs_current->reader, (uintptr_t)base, bytes);
}

uint64_t hak_os_resident_all(void) {
    return obs_current->reader->resident_bytes;
}

uint64_t hak_os_resident_peak(void) {
    return obs_process_peak(obs_current->reader);
}

void hak_os_random(void *buffer, size_t bytes) {
    hak_syscall(SYS_getrandom, buffer, bytes, 0);
}

bool hak_os_mappings(bool wants_resident, char *buffer, size_t capacity,
                     hak_os_mapping_visit_t *visit, void *context) {
    const obs_reader_t *reader = obs_current->reader;
    (void)buffer, (void)capacity;
    for (size_t i = 0; i < reader->mapping_count; i++) {
        const obs_mapping_t *from = &reader->mapping[i];
        const hak_os_mapping_t mapping = {.start = from->start,
                                          .end = from->end,
                                          .kind = from->kind,
                                          .resident_bytes = from->resident_bytes};
        visit(&mapping, context);
    }
    return wants_resident && reader->knows_rss;
}

/* --- the core --------------------------------------------------------------------------------- */

const char *hak_conf_text(const char *name) {
    static const char *const texts[] = {"0", "1", "counterfactual"};
    (void)name; /* reports ask for `learn` only */
    return texts[hak_knobs.learn <= HAK_LEARN_COUNTERFACTUAL ? hak_knobs.learn : 0];
}

static uint64_t price_sum(const hak_price_t *price) {
    return price->taken + price->held;
}

static bool learner_read(obs_image_t *image, hak_learner_pool_t pool, hak_learner_view_t *view) {
    obs_learner_t learner;
    uint64_t at = obs_root(image, learners) + pool * (uint64_t)obs_size(image, learner);
    uint64_t now = image->reader->now_ns;
    if (!obs_fetch(image, learner, at, &learner) || learner.strategy >= HAK_STRATEGIES) {
        return false;
    }
    if (learner.step_ns == 0) { /* it begins anew, whatever its record says */
        return true;
    }
    for (unsigned i = 0; i < HAK_STRATEGIES; i++) {
        obs_price_t price;
        if (!obs_fetch(image, price, learner.prices + i * (uint64_t)obs_size(image, price),
                       &price)) {
            return false;
        }
        view->price[i] = (hak_price_t){price.taken, price.held};
    }
    view->strategy = learner.strategy;
    view->age_ms = hak_excess(now, learner.since_ns) / 1000000;
    view->is_locked = learner.is_locked != 0 && view->age_ms < HAK_LEARNER_LOCK_MS;
    view->real = (hak_price_t){learner.real_taken, learner.real_held};
    return true;
}

void hak_learner_look_at(hak_learner_pool_t pool, hak_learner_view_t *view) {
    obs_image_t *image = obs_current;
    hak_learn_t mode = (hak_learn_t)hak_knobs.learn;
    *view = (hak_learner_view_t){
        .mode = mode,
        .acts = mode == HAK_LEARN_ON && !hak_knobs.is_tight,
        .strategy = HAK_STRATEGY_STANDARD,
        .cheapest = HAK_STRATEGY_STANDARD,
    };
    if (!learner_read(image, pool, view)) {
        image->doubt.lists++;
    }
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        bool is_less = price_sum(&view->price[i]) < price_sum(&view->price[view->cheapest]);
        view->cheapest = is_less ? i : view->cheapest;
    }
}

/* --- heads of reports ------------------------------------------------------------------------- */

void hak_report_head(const hak_sink_t *sink) {
    const obs_image_t *image = obs_current;
    hak_sink_format(sink, "{\"hakmem\":\"%s\",\"schema\":1,\"pid\":%u", image->library,
                    image->reader->pid);
    if (image->reader->command[0] != '\0') {
        hak_sink_format(sink, ",\"command\":");
        hak_sink_quoted(sink, image->reader->command);
    }
}

/* Leaves out characters that control a terminal. */
void hak_write_head(const hak_sink_t *sink) {
    const obs_image_t *image = obs_current;
    char command[HAK_OS_COMMAND_BYTES];
    memcpy(command, image->reader->command, sizeof command);
    for (char *at = command; *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    hak_sink_format(sink, "hakmem: %s, process %u", image->library, image->reader->pid);
    hak_sink_format(sink, command[0] != '\0' ? " (%s)\n" : "\n", command);
}
