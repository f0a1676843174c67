/* SPDX-License-Identifier: MIT
 *
 * The writers of reports, one per format, and their heads. Those of figures loop over the tables of
 * figures.h. */
#ifndef OBS_WRITE_H
#define OBS_WRITE_H

#include "figures.h"
#include "image.h"

/* A writer of one format, of the image that was opened last. */
typedef void obs_write_t(const hak_sink_t *sink, const obs_snapshot_t *snapshot);
obs_write_t obs_write_text, obs_write_summary, obs_write_stats_json, obs_write_metrics,
    obs_write_cause, obs_write_explain, obs_write_explain_json, obs_write_map;
#define OBS_FORCED_NOTE "force_libc is on: blocks are the C library's own, and not in these figures"
/* The first line of every report in text. */
void obs_write_head(const hak_sink_t *sink);
/* The head of every report in JSON; the rest follows after a comma. */
void obs_report_head(const hak_sink_t *sink);

#endif
