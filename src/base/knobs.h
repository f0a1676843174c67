/* SPDX-License-Identifier: MIT
 *
 * The live parameters of the core. conf/ writes the options at start and for hak_option_set,
 * mallopt writes two of them, life/init.c one; reclaim/ writes the others. All are [atomic],
 * relaxed, and read in slow paths. */
#ifndef HAK_BASE_KNOBS_H
#define HAK_BASE_KNOBS_H

#include "base/compiler.h"
#include "base/words.h"

/* The field of an option, in the part that hardened builds seal or in the other one. */
#define HAK_KNOB_BOOL bool
#define HAK_KNOB_COUNT size_t
#define HAK_KNOB_PERCENT size_t
#define HAK_KNOB_BYTES size_t
#define HAK_KNOB_NONE(type, knob)
#define HAK_KNOB_FIELD(type, knob) HAK_KNOB_##type knob;
#define HAK_KNOB_SEALED_OWN HAK_KNOB_NONE
#define HAK_KNOB_SEALED_START HAK_KNOB_FIELD
#define HAK_KNOB_SEALED_LIVE HAK_KNOB_FIELD
#define HAK_KNOB_SEALED_ALWAYS HAK_KNOB_NONE
#define HAK_KNOB_WRITABLE_OWN HAK_KNOB_NONE
#define HAK_KNOB_WRITABLE_START HAK_KNOB_NONE
#define HAK_KNOB_WRITABLE_LIVE HAK_KNOB_NONE
#define HAK_KNOB_WRITABLE_ALWAYS HAK_KNOB_FIELD

typedef struct hak_knobs {
    /* --- options; hardened builds make them read-only once the process has started */
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text)                             \
    HAK_KNOB_SEALED_##kept(type, knob)
#include "base/options.def"
#undef HAK_OPTION

    /* --- set by reclaim/limit.c; the first read by large/ */
    HAK_SEALED size_t limit_soft_bytes; /* in use and unused together at most; SIZE_MAX: no bound */
    size_t limit_step_bytes;            /* what may go because of that until the next look */
    size_t limit_hard_bytes;            /* above it goes whatever the step says */
    /* read by span/, slab/ and front/ */
    bool is_tight; /* little would be left even if nothing were unused here */
    /* read by stat/ */
    size_t limit_bytes; /* of the control group with least room; 0: none known */
    /* --- set by the learner; read by base/wanted.h and reclaim/target.c */
    size_t retain_learned_percent; /* extra share; 0 to 100 */
    size_t retain_wanted_bytes;    /* unused memory exempt from decay */
    /* --- options that mallopt sets */
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text)                             \
    HAK_KNOB_WRITABLE_##kept(type, knob)
#include "base/options.def"
#undef HAK_OPTION
} hak_knobs_t;

/* What hardened builds make read-only. */
enum { HAK_KNOBS_SEALED_BYTES = offsetof(hak_knobs_t, limit_soft_bytes) };

extern hak_knobs_t hak_knobs;

#endif
