/* SPDX-License-Identifier: MIT
 *
 * The allocator in a program's memory, by the door of its library (src/door/door.h). A structure is
 * read as a whole into its counterpart here, whatever its layout there: offsets are the door's. */
#ifndef OBS_IMAGE_H
#define OBS_IMAGE_H

#include "door/door.h"
#include "front/quarantine.h"
#include "memory.h"
#include "profile/store.h"
#include "reader.h"
#include "reclaim/learner.h"
#include "slab/sizeclass.h"
#include "snapshot.h"
#include "stat/inventory.h"

/* obs_slab_t and so on: the members of door.def; of a part, its address in the program. */
#define HAK_DOOR_STRUCT(name, type) typedef struct obs_##name {
#define HAK_DOOR_ONE(name, type, key, member, bits) uint##bits##_t key;
#define HAK_DOOR_MANY(name, type, key, member, bits, count) uint##bits##_t key[count];
#define HAK_DOOR_PLACE(name, type, key, member) uint64_t key;
#define HAK_DOOR_END(name)                                                                         \
    char unused;                                                                                   \
    }                                                                                              \
    obs_##name##_t;
#include "door/door.def"

/* What was wrong so far. */
typedef struct obs_doubt {
    uint32_t ranges, slabs, lists; /* that contradict themselves, or could not be read */
} obs_doubt_t;

typedef struct obs_image {
    obs_reader_t *reader;
    uint64_t root[HAK_DOOR_ROOTS];
    hak_door_row_t row[HAK_DOOR_ROWS];
    uint32_t from[HAK_DOOR_ROWS], end[HAK_DOOR_ROWS]; /* of a structure: what is read of it */
    char library[20];                                 /* its version */
    const char *path;                                 /* of the file that has the allocator */
    bool is_used;                                     /* it has served so far */
    obs_knobs_t knobs;
    const struct obs_ranges *ranges; /* the list taken last */
    obs_doubt_t doubt;
} obs_image_t;

/* Finds the allocator. false: reader->error says why. */
bool obs_image_open(obs_image_t *image, obs_reader_t *reader);

/* Reads a structure, at the number of its row. false: it is not mapped, or cannot be read. */
bool obs_fetch_at(obs_image_t *image, unsigned row, uint64_t at, void *to);
/* The same from bytes that were read already, as many as it has. */
void obs_decode_at(const obs_image_t *image, unsigned row, uint64_t at, const void *from, void *to);
#define obs_fetch(image, name, at, to)                                                             \
    obs_fetch_at(image, HAK_DOOR_AT_##name, at, 1 ? (to) : (obs_##name##_t *)0)
#define obs_decode(image, name, at, from, to)                                                      \
    obs_decode_at(image, HAK_DOOR_AT_##name, at, from, 1 ? (to) : (obs_##name##_t *)0)
#define obs_size(image, name) ((image)->row[HAK_DOOR_AT_##name].bytes)
#define obs_root(image, name) ((image)->root[HAK_DOOR_ROOT_##name])
/* A number at a root; 0 where it cannot be read. */
uint64_t obs_root_number(obs_image_t *image, unsigned root, size_t bytes);

/* A walk along a list, which ends where it comes back to itself: after three rounds at most. */
typedef struct obs_walk {
    uint64_t mark; /* an element that was passed */
    uint32_t count;
} obs_walk_t;

/* Whether to visit the next element: there is one, and it is not known to be passed. *is_whole: the
 * list ended. */
static inline bool obs_walk_on(obs_walk_t *walk, uint64_t at, bool *is_whole) {
    *is_whole = at == 0;
    if (at == 0 || at == walk->mark) {
        return false;
    }
    walk->mark = (walk->count & (walk->count - 1)) == 0 ? at : walk->mark;
    walk->count++;
    return true;
}

/* The leaf of the page map that has an address; false: it cannot be read. */
bool obs_leaf_of(obs_image_t *image, uint64_t address, obs_leaf_t *leaf);

/* Whether the library is the hardened one. */
bool obs_is_hardened(const obs_image_t *image);

/* Of the superslab whose pieces are being visited (heap.c): units, and free blocks that wait for
 * the owner of the slab that begins at a unit. */
uint64_t obs_free_units(void);
uint64_t obs_clean_units(void);
uint64_t obs_remote_waiting(unsigned unit);

/* Fills all figures, and obs_threads; drop those by obs_drop_threads. */
void obs_collect(obs_snapshot_t *snapshot);
void obs_drop_threads(void);

/* --- the allocator's ranges ------------------------------------------------------------------- */

typedef struct obs_ranges {
    hak_range_t *range; /* by address, disjoint; NULL: there are none, or no memory for the list */
    size_t count;
} obs_ranges_t;
void obs_ranges_take(obs_ranges_t *ranges);
void obs_ranges_drop(obs_ranges_t *ranges);
/* What was found wrong in the list and its pieces so far, and in figures that were made of them:
 * the sum of the causes, and RSS; NULL: nothing. */
const char *obs_ranges_doubt(uint64_t sum_bytes, uint64_t rss_bytes);
/* Visits the pieces of a superslab, in order, without a gap. */
void obs_pieces(const hak_range_t *range, hak_piece_visit_t *visit, void *context);
/* Idle pages that malloc_trim would return, resident or not: those of free blocks, and behind them
 * those never carved. Of the list taken last. */
typedef void obs_idle_visit_t(const char *base, size_t free_bytes, size_t uncarved_bytes,
                              void *context);
void obs_visit_idle(obs_idle_visit_t *visit, void *context);

/* What the learner of a pool decides, and why. */
typedef struct obs_learner_view {
    hak_learn_t mode;        /* off: no more is known */
    bool acts;               /* else the standard decides: counterfactual, or near a limit */
    hak_strategy_t strategy; /* in force; if it does not act it would be */
    hak_strategy_t cheapest;
    uint64_t age_ms; /* of that strategy */
    bool is_locked;  /* the forecast failed: the standard decides for a while */
    hak_price_t price[HAK_STRATEGIES], real;
} obs_learner_view_t;
void obs_learner_read(hak_learner_pool_t pool, obs_learner_view_t *view);
/* In bytes a second, from a sum that had time to settle. */
HAK_INLINE uint64_t obs_learner_rate(uint64_t sum_kib) {
    return sum_kib * 1024 / HAK_LEARNER_FADE * 10;
}

/* The image that was opened last, which all writers are about: one at a time. */
extern obs_image_t *obs_current;

#endif
