/* SPDX-License-Identifier: MIT
 *
 * State shared by superslab.c and purge.c; private to this folder. All of it [lock SPAN]. */
#ifndef HAK_SPAN_SPAN_STATE_H
#define HAK_SPAN_SPAN_STATE_H

#include "span/span.h"

typedef struct hak_span_state {
    hak_superslab_t **table; /* by index; NULL where a superslab was unmapped */
    hak_superslab_t *spare;  /* records without a mapping */
    uint32_t end;            /* places in use, holes included */
    uint32_t capacity;
    uint32_t whole_count;                        /* superslabs of which every unit is free */
    uint32_t count;                              /* superslabs mapped */
    uint32_t first_fit[HAK_SUPERSLAB_UNITS + 1]; /* SPAN-4 */
    size_t in_use_units;
    size_t unused_dirty_units; /* SPAN-3 */
    uint64_t retry_at_ns;      /* a purge gave nothing back: none before this time */
    uint64_t over_since_ns;    /* unused memory has been above the bound since; 0: it is not */
} hak_span_state_t;

extern hak_span_state_t hak_span_state;

/* Units became free: lowers first_fit. */
void hak_span_note_free(const hak_superslab_t *superslab);
/* Clean units are about to be used; tells the learner when they had been purged. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units);
/* Clears over_since_ns when the bound is met again. */
void hak_span_note_taken(void);
/* More is unused than the knobs allow, for too long or by too much. */
bool hak_span_is_over(void);

#endif
