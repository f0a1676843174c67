/* SPDX-License-Identifier: MIT
 *
 * A copy of the store, for documents: private to this folder. It lies in a mapping of its own, so
 * that writers may sort it, and take their time. */
#ifndef HAK_PROFILE_COPY_H
#define HAK_PROFILE_COPY_H

#include "base/fmt.h"
#include "os/optional.h"
#include "profile/store.h"

/* A mapping with code. */
typedef struct hak_profile_module {
    uintptr_t start, end, offset;
    uint32_t path;           /* offset in `text` */
    uint32_t build_id_bytes; /* 0: none is known */
    unsigned char build_id[HAK_OS_BUILD_ID_BYTES];
} hak_profile_module_t;

typedef struct hak_profile_copy {
    hak_profile_store_t store; /* with the base of the copy; NULL: there is nothing */
    void *mapping;             /* NULL: memory is out */
    size_t mapped_bytes;
    hak_profile_sample_t **sample; /* in use, by site, then thread */
    size_t sample_count;
    hak_profile_module_t *module;
    size_t module_count;
    char *text;
    uint64_t now_ns, wall_ns; /* when it was made */
    const char *version;      /* of the library */
    const char *doubt;        /* what is uncertain in it, for JSON; NULL: nothing */
} hak_profile_copy_t;

void hak_profile_copy_make(hak_profile_copy_t *copy);
/* Parts of the store copied in one hold of the lock: the most. Counted in the core for tests only.
 */
extern uint64_t hak_profile_held_most;
void hak_profile_copy_drop(hak_profile_copy_t *copy);

/* The next site; NULL: that was the last. Begins with NULL. */
hak_profile_site_t *hak_profile_copy_next(const hak_profile_copy_t *copy,
                                          const hak_profile_site_t *site);
/* The samples of a site: the first's place, and how many. */
size_t hak_profile_copy_samples(const hak_profile_copy_t *copy, const hak_profile_site_t *site,
                                size_t *count);
/* The sums of a site at the peak. */
const hak_profile_sum_t *hak_profile_copy_peak(const hak_profile_copy_t *copy,
                                               const hak_profile_site_t *site);
/* Free bytes around a sample's block, or its like, that are resident as long as it is in use,
 * weighted. */
double hak_profile_pinned(const hak_profile_sample_t *sample);

#endif
