/* SPDX-License-Identifier: MIT
 *
 * Call sites and samples, in one mapping of bounded size: private to this folder.
 *
 *   | buckets | site, stack | site, stack | ... ->        <- ... | sample | sample |
 *
 * Links are offsets from the base in bytes; 0 ends a list. A copy of the mapping can be read at
 * another address. */
#ifndef HAK_PROFILE_STORE_H
#define HAK_PROFILE_STORE_H

#include "base/words.h"

enum {
    HAK_PROFILE_FRAMES = 64, /* of a stack; outer ones are left out */
    /* Lifetimes, two buckets an octave from 1 us on: 2^(n / 2) us; the last takes all from 13 days
     * on. */
    HAK_PROFILE_LIFETIMES = 80,
    HAK_PROFILE_LIFETIME_LOG2 = 10, /* ns */
    HAK_PROFILE_LARGE = 1,          /* in place of a companion: a large block */
    /* Freed by the thread that took it, which asked for fewer bytes in between: temporary. */
    HAK_PROFILE_TEMPORARY = 4096,
};

/* Sums over samples. */
typedef struct hak_profile_sum {
    uint64_t samples, raw_bytes; /* without weights */
    double objects, bytes;       /* with */
} hak_profile_sum_t;

typedef struct hak_profile_site {
    uint64_t hash;
    const void *label;                        /* of hak_alloc_at; NULL: none */
    uint32_t next;                            /* in its bucket */
    uint32_t depth;                           /* addresses in `stack` */
    uint64_t peak_number;                     /* `peak` is of the peak with this number */
    hak_profile_sum_t in_use, all, peak;      /* peak: unless in_use has not changed since */
    double requested_bytes, variance;         /* of in_use: asked for; of its bytes */
    uint32_t lifetime[HAK_PROFILE_LIFETIMES]; /* freed samples */
    uint64_t temporary;                       /* of these */
    uintptr_t stack[];
} hak_profile_site_t;

typedef struct hak_profile_sample {
    uintptr_t address;   /* of the block */
    uintptr_t companion; /* a small block's neighbour had it not been sampled; 0: none known */
    uint64_t bytes, requested_bytes;
    uint64_t time_ns;
    double weight;
    uint32_t site, next; /* next: in its bucket, or of the unused */
    uint32_t thread_id;  /* 0: unused */
    uint32_t clock;      /* sample_clock of the thread then */
} hak_profile_sample_t;

typedef struct hak_profile_store {
    char *base;                      /* [lock PROFILE] NULL: none yet */
    size_t bytes;                    /* [lock PROFILE] as the rest */
    uint32_t low, high;              /* between them nothing was used so far */
    uint32_t spare;                  /* list of unused samples */
    uint32_t site_mask, sample_mask; /* buckets less one */
    uint32_t generation;             /* begins with 1, and with each reset another */
    uint64_t taken, dropped, sites, sites_dropped, live;
    double live_bytes, variance, peak_bytes;
    uint64_t peak_number, peak_time_ns; /* hak_os_exact_ns; 0: none yet */
    uint64_t started_ns;                /* wall clock */
    size_t rate;                        /* the latest that is not 0 */
    bool is_whole;                      /* sampled since the process started */
    void *head;                         /* a copy of this, in a file, as the rest; NULL: none */
    uint32_t process_id;                /* whose file it is */
} hak_profile_store_t;

extern hak_profile_store_t hak_profile_store; /* [lock PROFILE] */

/* A new sample. */
typedef struct hak_profile_event {
    const void *block, *companion, *label;
    size_t bytes, requested_bytes, rate;
    uint32_t thread_id, clock;
    unsigned depth;
    uintptr_t stack[HAK_PROFILE_FRAMES];
} hak_profile_event_t;

/* All but hak_profile_site_at and the like take the lock. */

/* Maps the store, if there is none. false: no memory. */
bool hak_profile_store_open(size_t bytes, size_t rate, bool is_whole);
/* Sampling stops: from now on blocks go unseen. */
void hak_profile_store_pause(void);
/* Empties it. */
void hak_profile_store_reset(void);
/* The memory that a file took the place of: addresses, which read as zero. NULL: none. */
extern char *hak_profile_reserve;
/* hak_profile_keep */
size_t hak_profile_store_move(char *to, void *head);
/* The lock is gone with its holder: a new store, later. In a child alone. */
void hak_profile_store_abandon(void);
/* false: dropped. */
bool hak_profile_store_add(const hak_profile_event_t *event);
void hak_profile_store_drop(void);
/* Takes the record of a block out of the table; 0: it has none. Then the block ends, or keeps it.
 */
uint64_t hak_profile_store_take(const void *block);
void hak_profile_store_end(uint64_t token);
void hak_profile_store_keep(uint64_t token);

static inline hak_profile_site_t *hak_profile_site_at(char *base, uint32_t offset) {
    return (hak_profile_site_t *)(base + offset);
}

static inline hak_profile_sample_t *hak_profile_sample_at(char *base, uint32_t offset) {
    return (hak_profile_sample_t *)(base + offset);
}

/* The site behind a site; sites follow one another up to `low`. */
static inline uint32_t hak_profile_site_bytes(uint32_t depth) {
    return (uint32_t)(sizeof(hak_profile_site_t) + depth * sizeof(uintptr_t));
}

/* Where the first site lies. */
uint32_t hak_profile_store_first(const hak_profile_store_t *store);

#endif
