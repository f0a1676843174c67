/* SPDX-License-Identifier: MIT
 *
 * The heap profile of another program: a copy of its store, as src/profile/copy.h has it, made of
 * what the door describes. So the writer of JSON is that of src/profile/. */
#ifndef OBS_PROFILE_H
#define OBS_PROFILE_H

#include "image.h"

#include "profile/copy.h"

/* Writes the profile of the image that was opened, as JSON, or by a writer. Returns what to know of
 * it; NULL: nothing. */
typedef void obs_write_profile_t(const hak_sink_t *sink, const hak_profile_copy_t *copy);
const char *obs_write_profile_json(obs_image_t *image, const hak_sink_t *sink);
const char *obs_write_profile(obs_image_t *image, const hak_sink_t *sink,
                              obs_write_profile_t *write);

/* Fills in the mappings with code. */
void obs_list_modules(obs_reader_t *reader, hak_profile_copy_t *copy);
/* Documents of a copy: protobuf, in gzip if zlib was there when this was built; jemalloc's text. */
obs_write_profile_t obs_write_pprof, obs_write_heap_v2;

/* Compresses all of it. false: nothing was put, as there is no memory, or no zlib. */
bool obs_gzip(const hak_sink_t *sink, const void *data, size_t length);

#endif
