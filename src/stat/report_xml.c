/* SPDX-License-Identifier: MIT
 *
 * malloc_info: the C library's elements that programs look for, and ours. */
#include "stat/report.h"

static void xml_class(const hak_sink_t *sink, const hak_class_stats_t *stats, unsigned sc) {
    const hak_figure_t *figure = hak_class_figures;
    hak_sink_format(sink, "<class bytes=\"%u\"", hak_sc_info[sc].bytes);
    for (; figure->group == HAK_FIGURE_BLOCKS; figure++) {
        hak_sink_format(sink, " %s=\"%l\"", figure->name, hak_figure_value(figure, stats));
    }
    hak_sink_format(sink, "/>\n");
}

void hak_write_xml(const hak_sink_t *sink, const hak_snapshot_t *snapshot) {
    hak_sink_format(sink,
                    "<malloc version=\"1\" allocator=\"hakmem\">\n<heap nr=\"0\">\n<sizes>\n");
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        if (snapshot->sc[sc].slabs != 0) {
            xml_class(sink, &snapshot->sc[sc], sc);
        }
    }
    hak_sink_format(sink, "</sizes>\n</heap>\n");
    for (const hak_figure_t *figure = hak_figures; figure->name[0] != '\0'; figure++) {
        hak_sink_format(sink, "<figure name=\"%s\" value=\"%l\"/>\n", figure->name,
                        hak_figure_value(figure, snapshot));
    }
    hak_sink_format(sink,
                    "<system type=\"current\" size=\"%l\"/>\n"
                    "<aspace type=\"total\" size=\"%l\"/>\n</malloc>\n",
                    snapshot->mapped_bytes, snapshot->mapped_bytes);
}
