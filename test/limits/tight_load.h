/* SPDX-License-Identifier: MIT
 *
 * A load that always holds the same number of bytes, in blocks whose sizes change by phases, and
 * counts how often more is resident than a limit. */
#ifndef HAK_TEST_LIMITS_TIGHT_LOAD_H
#define HAK_TEST_LIMITS_TIGHT_LOAD_H

#include "api/family.h"

enum { TIGHT_PHASES = 6, TIGHT_SAMPLE_BYTES = 1 << 20 };

typedef struct tight_load {
    /* in */
    size_t live_bytes;               /* by what was asked for */
    unsigned threads, phases, turns; /* in each phase all is replaced so often */
    size_t rate_bytes;               /* allocated in a second at most, by all threads; 0: any */
    size_t limit_bytes;
    void (*told)(size_t resident_bytes); /* at each sample; may be NULL */
    /* out */
    size_t samples, above; /* one for each MiB that was allocated; of these, above the limit */
    size_t faults_above;   /* page faults between two samples of which the second was above */
    size_t peak_bytes;
    size_t phase_above[TIGHT_PHASES];
    double seconds;
} tight_load_t;

/* Sizes of the tables, which it touches first: they count as live. */
size_t tight_load_begin(const tight_load_t *load);
void tight_load_run(tight_load_t *load);

#endif
