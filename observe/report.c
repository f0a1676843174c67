/* SPDX-License-Identifier: MIT */
#include "observe.h"
#include "profile.h"

#include "write.h"

void obs_report(obs_image_t *image, obs_verb_t verb, obs_form_t form, const hak_sink_t *sink) {
    static obs_write_t *const writers[][3] = {
        [OBS_EXPLAIN] = {obs_write_explain, obs_write_explain_json},
        [OBS_STATS] = {obs_write_text, obs_write_stats_json, obs_write_metrics},
        [OBS_MAP] = {obs_write_map, obs_write_map},
        [OBS_SUMMARY] = {obs_write_summary, obs_write_summary},
    };
    static obs_snapshot_t snapshot;
    obs_current = image;
    if (verb == OBS_PROFILE) {
        (void)obs_write_profile_json(image, sink);
        return;
    }
    if (verb >= OBS_LEAKS) {
        static obs_write_profile_t *const profiles[] = {obs_write_leaks, obs_write_heap,
                                                        obs_write_heap_v2};
        (void)obs_write_profile(image, sink, profiles[verb - OBS_LEAKS]);
        return;
    }
    if (verb != OBS_MAP) {
        obs_collect(&snapshot);
        image->doubt.ranges = image->doubt.slabs = 0; /* what follows reads the same again */
    }
    writers[verb][form](sink, &snapshot);
    obs_drop_threads();
}
