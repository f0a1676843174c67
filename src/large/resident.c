/* SPDX-License-Identifier: MIT
 *
 * What the kernel holds of a range, by a few samples. */
#include "large/large.h"
#include "os/os.h"

enum { SAMPLES = 3 }; /* of one unit each */

static size_t sample_resident(const char *base, size_t bytes, unsigned sample) {
    size_t at = hak_align_down(bytes / (2 * SAMPLES) * (2 * sample + 1), HAK_UNIT_BYTES);
    return hak_os_resident(base + at, HAK_UNIT_BYTES);
}

size_t hak_large_resident(const char *base, size_t bytes) {
    size_t resident = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        resident += sample_resident(base, bytes, i);
    }
    return bytes / HAK_UNIT_BYTES * resident / SAMPLES;
}
