/* SPDX-License-Identifier: MIT
 *
 * gzip by zlib, which is linked into the program. */
#include "profile.h"

#if defined(OBS_ZLIB)
#include <limits.h>
#include <zlib.h>

enum { WINDOW_BITS = 15 + 16 /* the most, in the form of gzip */, PIECE_BYTES = 64 << 10 };

bool obs_gzip(const hak_sink_t *sink, const void *data, size_t length) {
    static unsigned char piece[PIECE_BYTES];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data};
    int state = Z_OK;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    while (state == Z_OK) {
        if (stream.avail_in == 0) {
            stream.avail_in = length < UINT_MAX ? (uInt)length : UINT_MAX;
            length -= stream.avail_in;
        }
        stream.next_out = piece;
        stream.avail_out = sizeof piece;
        state = deflate(&stream, length == 0 ? Z_FINISH : Z_NO_FLUSH);
        sink->put(sink->context, (const char *)piece, sizeof piece - stream.avail_out);
    }
    deflateEnd(&stream);
    return true;
}
#else
bool obs_gzip(const hak_sink_t *sink, const void *data, size_t length) {
    (void)sink, (void)data, (void)length;
    return false;
}
#endif
