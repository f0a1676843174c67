/* SPDX-License-Identifier: MIT
 *
 * The mailbox of the process (base/mailbox.h): an event reads it. */
#include "base/mailbox.h"

#include "base/atomics.h"
#include "base/fmt.h"
#include "base/knobs.h"
#include "conf/conf.h"
#include "front/event.h"
#include "life/life.h"
#include "os/os.h"
#include "profile/profile.h"
#include "reclaim/reclaim.h"

static const uint64_t MAIL_RATE_MOST = 1ull << 40; /* as of the option profile_rate */

static uint32_t mail_is_busy; /* [atomic] a thread does what the letter says */

static hak_mail_result_t mail_rate(const char *value) {
    uint64_t rate;
    if (!hak_parse_size(value, strlen(value), &rate) || rate > MAIL_RATE_MOST) {
        return HAK_MAIL_INVALID;
    }
    return hak_profile_set_rate(rate) ? HAK_MAIL_DONE : HAK_MAIL_REFUSED;
}

static hak_mail_result_t mail_option(const char *name, const char *value) {
    static const hak_mail_result_t results[] = {
        [HAK_CONF_DONE] = HAK_MAIL_DONE,
        [HAK_CONF_UNKNOWN] = HAK_MAIL_UNKNOWN,
        [HAK_CONF_FIXED] = HAK_MAIL_FIXED,
        [HAK_CONF_INVALID] = HAK_MAIL_INVALID,
    };
    return results[hak_conf_set(name, value)];
}

static hak_mail_result_t mail_obey(uint64_t number) {
    hak_letter_t letter = hak_mailbox.letter;
    HAK_SIGNAL_FENCE(); /* from now on the copy counts */
    if (hak_letter_number(&letter, sizeof letter) != number) {
        return HAK_MAIL_BROKEN;
    }
    if (hak_os_is_secure() || hak_load_relaxed(&hak_knobs.force_libc)) {
        return HAK_MAIL_REFUSED;
    }
    letter.name[sizeof letter.name - 1] = letter.value[sizeof letter.value - 1] = '\0';
    switch (letter.request) {
    case HAK_MAIL_TRIM:
        (void)hak_reclaim_trim(0);
        return HAK_MAIL_DONE;
    case HAK_MAIL_FLUSH:
        (void)hak_add_relaxed(&hak_event_flush_round, 1);
        return HAK_MAIL_DONE;
    case HAK_MAIL_RESET:
        hak_profile_reset();
        return HAK_MAIL_DONE;
    case HAK_MAIL_RATE:
        return mail_rate(letter.value);
    case HAK_MAIL_OPTION:
        return mail_option(letter.name, letter.value);
    default:
        return HAK_MAIL_UNKNOWN;
    }
}

static bool mail_is_answered(uint64_t number) {
    return (hak_load_relaxed(&hak_mailbox.answer) & ~(uint64_t)(HAK_MAIL_RESULTS - 1)) == number;
}

static HAK_COLD void mail_answer(uint64_t number) {
    if (hak_swap_acquire(&mail_is_busy, 1) != 0) { /* pairs MAIL */
        return;
    }
    if (!mail_is_answered(number)) {
        hak_store_release(&hak_mailbox.answer, number | mail_obey(number)); /* pairs MAIL */
    }
    hak_store_release(&mail_is_busy, 0); /* pairs MAIL */
}

void hak_life_mail(hak_tcache_t *tcache) {
    uint64_t number = hak_load_acquire(&hak_mailbox.number); /* pairs MAIL */
    (void)tcache;
    if (HAK_UNLIKELY(!mail_is_answered(number))) {
        mail_answer(number);
    }
}

void hak_life_mail_after_fork(void) {
    hak_store_relaxed(&mail_is_busy, 0);
    hak_store_relaxed(&hak_mailbox.answer, hak_load_relaxed(&hak_mailbox.number));
}
