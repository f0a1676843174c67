/* SPDX-License-Identifier: MIT
 *
 * What several reports say: the learner's decisions, their heads. And what files of the core that
 * are compiled in here ask for. */
#include "base/bits.h"
#include "base/knobs.h"
#include "os/syscall_linux.h"
#include "put.h"
#include "write.h"

#include <sys/syscall.h>

/* --- the learner ------------------------------------------------------------------------------ */

static uint64_t price_sum(const hak_price_t *price) {
    return price->taken + price->held;
}

static bool learner_read(obs_image_t *image, hak_learner_pool_t pool, obs_learner_view_t *view) {
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

void obs_learner_read(hak_learner_pool_t pool, obs_learner_view_t *view) {
    obs_image_t *image = obs_current;
    uint64_t learn = image->knobs.learn;
    hak_learn_t mode = learn <= HAK_LEARN_COUNTERFACTUAL ? (hak_learn_t)learn : HAK_LEARN_OFF;
    *view = (obs_learner_view_t){
        .mode = mode,
        .acts = mode == HAK_LEARN_ON && image->knobs.is_tight == 0,
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

void obs_report_head(const hak_sink_t *sink) {
    const obs_image_t *image = obs_current;
    hak_sink_format(sink, "{\"hakmem\":\"%s\",\"schema\":1,\"pid\":%u", image->library,
                    image->reader->pid);
    if (image->reader->command[0] != '\0') {
        hak_sink_format(sink, ",\"command\":");
        obs_put_quoted(sink, image->reader->command);
    }
}

/* Leaves out characters that control a terminal. */
void obs_write_head(const hak_sink_t *sink) {
    const obs_image_t *image = obs_current;
    char command[OBS_COMMAND_BYTES];
    memcpy(command, image->reader->command, sizeof command);
    for (char *at = command; *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    hak_sink_format(sink, "hakmem: %s, process %u", image->library, image->reader->pid);
    hak_sink_format(sink, command[0] != '\0' ? " (%s)\n" : "\n", command);
}
