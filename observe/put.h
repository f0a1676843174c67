/* SPDX-License-Identifier: MIT
 *
 * Sizes, quoted strings and roots in reports. */
#ifndef OBS_PUT_H
#define OBS_PUT_H

#include "base/fmt.h"

/* value / unit to the nearest, halves to the even one. */
uint64_t obs_rounded(uint64_t value, uint64_t unit);
/* A size with three significant digits and its unit, in the buffer of the caller's block. */
#define OBS_SIZE(bytes) obs_size_text((char[OBS_SIZE_BYTES]){0}, (bytes))
enum { OBS_SIZE_BYTES = 32 };
const char *obs_size_text(char buffer[OBS_SIZE_BYTES], uint64_t bytes);
/* A JSON string with its quotes, of any length. Bytes above 0x7e count as Latin-1. */
void obs_put_quoted(const hak_sink_t *sink, const char *s);
/* The square root of x >= 0. */
double obs_square_root(double x);

#endif
