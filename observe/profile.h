/* SPDX-License-Identifier: MIT
 *
 * The documents of another program's heap profile. */
#ifndef OBS_PROFILE_H
#define OBS_PROFILE_H

#include "copy.h"
#include "image.h"

/* Writes the profile of the image that was opened, as JSON, or by a writer. Returns what to know of
 * it; NULL: nothing. */
typedef void obs_write_profile_t(const hak_sink_t *sink, const obs_copy_t *copy);
const char *obs_write_profile_json(obs_image_t *image, const hak_sink_t *sink);
const char *obs_write_profile(obs_image_t *image, const hak_sink_t *sink,
                              obs_write_profile_t *write);

/* Fills in the mappings with code. */
void obs_list_modules(obs_reader_t *reader, obs_copy_t *copy);
/* Documents of a copy: protobuf, in gzip if zlib was there when this was built; gperftools' text
 * for pprof, and jemalloc's for jeprof; what is still allocated, as text for people; JSON. */
obs_write_profile_t obs_write_pprof, obs_write_heap, obs_write_heap_v2, obs_write_leaks,
    obs_write_json_copy;

/* Compresses all of it. false: nothing was put, as there is no memory, or no zlib. */
bool obs_gzip(const hak_sink_t *sink, const void *data, size_t length);

#endif
