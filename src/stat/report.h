/* SPDX-License-Identifier: MIT
 *
 * The writers of reports, one per format; private to this folder. Every format loops over the
 * tables of figures.h. */
#ifndef HAK_STAT_REPORT_H
#define HAK_STAT_REPORT_H

#include "stat/figures.h"

/* A writer of one format. */
typedef void hak_write_t(const hak_sink_t *sink, const hak_snapshot_t *snapshot);
hak_write_t hak_write_text, hak_write_summary, hak_write_xml, hak_write_json, hak_write_metrics,
    hak_write_cause, hak_write_explain, hak_write_explain_json, hak_write_map;
#define HAK_FORCED_NOTE "force_libc is on: blocks are the C library's own, and not in these figures"
/* The first line of every report in text. */
void hak_write_head(const hak_sink_t *sink);

#endif
