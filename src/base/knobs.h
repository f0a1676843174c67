/* SPDX-License-Identifier: MIT
 *
 * The live parameters of the core, all [atomic], relaxed. conf/, mallopt and mallctl write the
 * options; life/ and guard/ turn off what the system forbids, life/ turns on what a report at exit
 * needs; reclaim/ writes the rest. */
#ifndef HAK_BASE_KNOBS_H
#define HAK_BASE_KNOBS_H

#include "base/compiler.h"
#include "base/words.h"

/* The fields of options, except two of kind ALWAYS, which mallopt sets: further down. */
#define HAK_KNOB_BOOL bool
#define HAK_KNOB_COUNT size_t
#define HAK_KNOB_PERCENT size_t
#define HAK_KNOB_BYTES size_t
#define HAK_KNOB_CHOICE(...) size_t
#define HAK_KNOB_OWN(type, knob)
#define HAK_KNOB_ALWAYS(type, knob)
#define HAK_KNOB_START(type, knob) HAK_KNOB_##type knob;
#define HAK_KNOB_LIVE HAK_KNOB_START
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) HAK_KNOB_##kept(type, knob)

/* Values of the option learn. */
typedef enum hak_learn { HAK_LEARN_OFF, HAK_LEARN_ON, HAK_LEARN_COUNTERFACTUAL } hak_learn_t;

typedef struct hak_knobs {
    /* --- read-only in hardened builds once the process has started ---------------------------- */
#include "base/options.def"

    /* --- set by reclaim/limit.c; the first read by large/ */
    HAK_SEALED size_t limit_soft_bytes; /* bound of memory in use and unused; SIZE_MAX: none */
    size_t limit_step_bytes;            /* may go because of it until the next read */
    size_t limit_hard_bytes;            /* memory above it goes regardless of the step */
    /* read by span/, large/, front/ and reclaim/ */
    bool is_tight;      /* near the limit even after full reclaim */
    size_t limit_bytes; /* of the tightest control group; 0: none known */
    /* --- set by reclaim/target.c; read by span/ */
    size_t retain_learned_percent; /* extra share; 0 to 100 */
    /* --- set by mallopt and mallctl, too */
    size_t retain_min_bytes, retain_idle_bytes;
} hak_knobs_t;
#undef HAK_OPTION

/* Hardened builds make these bytes read-only. */
enum { HAK_KNOBS_SEALED_BYTES = offsetof(hak_knobs_t, limit_soft_bytes) };

/* The last choice of huge_pages: true like 1, and obeyed once, at start. */
enum { HAK_HUGE_PAGES_ADVISED = 2 };

extern hak_knobs_t hak_knobs;

#endif
