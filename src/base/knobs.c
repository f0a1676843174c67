/* SPDX-License-Identifier: MIT
 *
 * The definitions of knobs and counters, and of what crosses ranks. */
#include "base/knobs.h"

#include "base/counters.h"
#include "base/mailbox.h"
#include "base/wanted.h"

HAK_LINE_ALIGNED hak_process_counters_t hak_counters;
HAK_LOCKED_STATE HAK_LINE_ALIGNED uint32_t hak_wanted; /* every refill reads it */
hak_services_t hak_services;
HAK_LINE_ALIGNED hak_mailbox_t hak_mailbox; /* every event reads its first words */

#define KNOB_OWN(knob, initial)
#define KNOB_START(knob, initial) .knob = (initial),
#define KNOB_LIVE KNOB_START
#define KNOB_ALWAYS KNOB_START
#define HAK_OPTION(name, type, initial, least, most, kept, knob, text) KNOB_##kept(knob, initial)
/* The defaults, in force until conf/ has read the options. */
hak_knobs_t hak_knobs = {
#include "base/options.def"
    .limit_soft_bytes = SIZE_MAX,
    .limit_hard_bytes = SIZE_MAX,
};
#undef HAK_OPTION
