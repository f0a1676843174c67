/* SPDX-License-Identifier: MIT
 *
 * hakmem-observe check PID|CORE */
#include "command.h"

static void write_doubt(const hak_sink_t *sink, const obs_image_t *image) {
    const obs_reader_t *reader = image->reader;
    const obs_doubt_t *doubt = &image->doubt;
    bool is_whole = reader->knows_resident && reader->knows_rss;
    if (!reader->knows_resident) {
        hak_sink_format(sink, "not read: which pages are in memory\n");
    }
    if (!reader->knows_rss) {
        hak_sink_format(sink, "not read: RSS of each mapping\n");
    }
    if (doubt->ranges + doubt->slabs + doubt->lists != 0) {
        hak_sink_format(sink,
                        "not read: %u ranges, %u slabs and %u lists, which changed meanwhile, or "
                        "contradict themselves\n",
                        doubt->ranges, doubt->slabs, doubt->lists);
    } else if (is_whole) {
        hak_sink_format(sink, "not read: nothing\n");
    }
}

static void write_check(obs_image_t *image, const hak_sink_t *sink, void *context) {
    static obs_snapshot_t snapshot;
    const obs_reader_t *reader = image->reader;
    char command[OBS_COMMAND_BYTES], path[256];
    (void)context;
    snprintf(command, sizeof command, "%s", reader->command);
    snprintf(path, sizeof path, "%s", image->path);
    obs_tame(command);
    obs_tame(path);
    obs_collect(&snapshot);
    obs_drop_threads();
    hak_sink_format(sink, "process: %u (%s)\n", reader->pid, command);
    hak_sink_format(sink, "library: %s\n", path);
    hak_sink_format(sink, "version: %s, %s, description %u\n", image->library,
                    obs_is_hardened(image) ? "hardened" : "default", (unsigned)HAK_DOOR_VERSION);
    hak_sink_format(sink, "serves: %s\n",
                    image->knobs.force_libc != 0
                        ? "no, force_libc is on: blocks are the C library's"
                    : image->is_used ? "yes"
                                     : "it was asked for nothing so far");
    write_doubt(sink, image);
}

int obs_command_check(int argc, char **argv) {
    const obs_job_t job = {.target = argv[1], .write = write_check};
    return argc == 2 && argv[1][0] != '-' ? obs_run(&job) : obs_usage();
}
