/* SPDX-License-Identifier: MIT
 *
 * A copy of the store of another program's profile (src/profile/store.h), made of what the door
 * describes, for the writers of documents. */
#ifndef OBS_COPY_H
#define OBS_COPY_H

#include "base/fmt.h"
#include "profile/store.h"

enum { OBS_BUILD_ID_BYTES = 20 };

/* A mapping with code. */
typedef struct obs_module {
    uintptr_t start, end, offset;
    uint32_t path;           /* offset in `text` */
    uint32_t build_id_bytes; /* 0: none is known */
    unsigned char build_id[OBS_BUILD_ID_BYTES];
} obs_module_t;

#define OBS_COPY_UNKNOWN UINT64_MAX

typedef struct obs_copy {
    hak_profile_store_t store;     /* with the base of the copy; NULL: there is nothing */
    size_t site_bytes;             /* of all sites, from there on */
    hak_profile_sample_t **sample; /* in use, by site, then thread */
    size_t sample_count;
    obs_module_t *module;
    size_t module_count;
    char *text;
    uint64_t now_ns, wall_ns; /* when it was made */
    uint64_t live_bytes;      /* exactly, for JSON; or OBS_COPY_UNKNOWN */
    uint64_t rate;            /* 0: it does not sample now */
    uint32_t pid;             /* of the process; 0: not known */
    const char *program;      /* that was executed, without its folder */
    const char *version;      /* of the library */
    const char *doubt;        /* what is uncertain in it, for JSON; NULL: nothing */
} obs_copy_t;

/* Of the image that was opened last. There is one copy at a time. */
void obs_copy_make(obs_copy_t *copy);
void obs_copy_drop(obs_copy_t *copy);
/* Orders its samples. */
void obs_copy_sort(obs_copy_t *copy);

/* The next site; NULL: that was the last. Begins with NULL. */
hak_profile_site_t *obs_copy_next(const obs_copy_t *copy, const hak_profile_site_t *site);
/* The samples of a site: the first's place, and how many. */
size_t obs_copy_samples(const obs_copy_t *copy, const hak_profile_site_t *site, size_t *count);
/* The sums of a site at the peak. */
const hak_profile_sum_t *obs_copy_peak(const obs_copy_t *copy, const hak_profile_site_t *site);
/* Free bytes around a sample's block, or its like, that are resident as long as it is in use,
 * weighted. */
double obs_copy_pinned(const hak_profile_sample_t *sample);

/* The program that was executed, without its folder. */
const char *obs_program(void);

#endif
