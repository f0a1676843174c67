/* SPDX-License-Identifier: MIT */
#include "observe.h"
#include "profile.h"

#include "base/knobs.h"
#include "stat/report.h"

/* The options that the writers of stat/ look at. */
static void knobs_set(const obs_knobs_t *from) {
    hak_knobs.force_libc = from->force_libc != 0;
    hak_knobs.learn = from->learn <= HAK_LEARN_COUNTERFACTUAL ? (size_t)from->learn : HAK_LEARN_OFF;
    hak_knobs.is_tight = from->is_tight != 0;
}

void obs_report(obs_image_t *image, obs_verb_t verb, obs_form_t form, const hak_sink_t *sink) {
    static hak_write_t *const writers[][3] = {
        [OBS_EXPLAIN] = {hak_write_explain, hak_write_explain_json},
        [OBS_STATS] = {hak_write_text, hak_write_json, hak_write_metrics},
        [OBS_MAP] = {hak_write_map, hak_write_map},
        [OBS_SUMMARY] = {hak_write_summary, hak_write_summary},
    };
    static hak_snapshot_t snapshot;
    obs_current = image;
    knobs_set(&image->knobs);
    if (verb == OBS_PROFILE) {
        (void)obs_write_profile_json(image, sink);
        return;
    }
    if (verb == OBS_LEAKS || verb == OBS_HEAP) {
        (void)obs_write_profile(image, sink, verb == OBS_LEAKS ? obs_write_leaks : obs_write_heap);
        return;
    }
    if (verb != OBS_MAP) {
        obs_collect(&snapshot);
        image->doubt.ranges = image->doubt.slabs = 0; /* what follows reads the same again */
    }
    writers[verb][form](sink, &snapshot);
    obs_drop_threads(&snapshot);
}
