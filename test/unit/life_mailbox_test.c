/* SPDX-License-Identifier: MIT
 *
 * Letters in the mailbox, as another process writes them: each is answered once (MAIL-2), and none
 * is done that does not fit its number (MAIL-1). */
#include "base/mailbox.h"
#include "conf/conf.h"
#include "double/profile_state.h"
#include "front/event.h"
#include "life/life.h"
#include "unit/front.h"

static uint64_t letter_put(uint32_t request, const char *name, const char *value) {
    static uint64_t chance;
    hak_letter_t letter = {.chance = ++chance, .request = request};
    strncpy(letter.name, name, sizeof letter.name - 1);
    strncpy(letter.value, value, sizeof letter.value - 1);
    hak_mailbox.letter = letter;
    hak_mailbox.number = hak_letter_number(&letter, sizeof letter);
    return hak_mailbox.number;
}

/* The result of the letter that is there. */
static unsigned answer(void) {
    uint64_t before = hak_mailbox.answer;
    assert_true(before / HAK_MAIL_RESULTS != hak_mailbox.number / HAK_MAIL_RESULTS);
    hak_life_mail(self());
    assert_true(hak_mailbox.answer / HAK_MAIL_RESULTS == hak_mailbox.number / HAK_MAIL_RESULTS);
    return hak_mailbox.answer % HAK_MAIL_RESULTS;
}

static unsigned tell(uint32_t request, const char *name, const char *value) {
    (void)letter_put(request, name, value);
    return answer();
}

static hak_profile_state_t profile_now(void) {
    hak_profile_state_t now;
    hak_profile_look(&now);
    return now;
}

UNIT_TEST(an_empty_mailbox_is_left_alone) {
    hak_life_mail(self());
    assert_true(hak_mailbox.answer == 0);
}

UNIT_TEST(a_letter_is_done_once) {
    uint8_t round = hak_event_flush_round;
    assert_int_equal(tell(HAK_MAIL_FLUSH, "", ""), HAK_MAIL_DONE);
    assert_int_equal((uint8_t)(hak_event_flush_round - round), 1);
    hak_life_mail(NULL);
    assert_int_equal((uint8_t)(hak_event_flush_round - round), 1);
    assert_int_equal(tell(HAK_MAIL_FLUSH, "", ""), HAK_MAIL_DONE); /* another, of the same words */
    assert_int_equal((uint8_t)(hak_event_flush_round - round), 2);
}

UNIT_TEST(events_read_the_mailbox) {
    uint64_t number = letter_put(HAK_MAIL_TRIM, "", "");
    for (unsigned i = 0; hak_mailbox.answer < number && i < 2 * HAK_EVENT_TICKS; i++) {
        hak_event_tick(self(), false);
    }
    assert_true(hak_mailbox.answer == number + HAK_MAIL_DONE);
}

UNIT_TEST(rates_begin_and_end_the_profile) {
    assert_int_equal(tell(HAK_MAIL_RATE, "", "64k"), HAK_MAIL_DONE);
    assert_int_equal(profile_now().rate, 64 << 10);
    assert_int_equal(tell(HAK_MAIL_RATE, "", "2t"), HAK_MAIL_INVALID);
    assert_int_equal(tell(HAK_MAIL_RATE, "", "fast"), HAK_MAIL_INVALID);
    assert_int_equal(tell(HAK_MAIL_RATE, "", ""), HAK_MAIL_INVALID);
    assert_int_equal(profile_now().rate, 64 << 10);
    hak_free(unit_malloc(4 << 20));
    assert_int_equal(profile_now().taken, 1);
    assert_int_equal(tell(HAK_MAIL_RESET, "", ""), HAK_MAIL_DONE);
    assert_int_equal(profile_now().taken, 0);
    assert_int_equal(tell(HAK_MAIL_RATE, "", "0"), HAK_MAIL_DONE);
    assert_int_equal(profile_now().rate, 0);
}

UNIT_TEST(options_change_as_by_the_program) {
    uint64_t before, after;
    assert_int_equal(tell(HAK_MAIL_OPTION, "retain_idle", "3m"), HAK_MAIL_DONE);
    assert_true(hak_conf_get("retain_idle", &before) && before == 3 << 20);
    assert_int_equal(tell(HAK_MAIL_OPTION, "retain_idle", "2t"), HAK_MAIL_INVALID);
    assert_int_equal(tell(HAK_MAIL_OPTION, "retain_idle", ""), HAK_MAIL_INVALID);
    assert_true(hak_conf_get("retain_idle", &after) && after == before);
    assert_int_equal(tell(HAK_MAIL_OPTION, "force_libc", "1"), HAK_MAIL_FIXED);
    assert_int_equal(tell(HAK_MAIL_OPTION, "report_file", "/tmp/no"), HAK_MAIL_FIXED);
    assert_int_equal(tell(HAK_MAIL_OPTION, "retain", "1"), HAK_MAIL_UNKNOWN);
    assert_int_equal(tell(HAK_MAIL_OPTION, "", ""), HAK_MAIL_UNKNOWN);
    assert_int_equal(tell(0, "", ""), HAK_MAIL_UNKNOWN);
    assert_int_equal(tell(UINT32_MAX, "", ""), HAK_MAIL_UNKNOWN);
}

/* Two tellers: the number of the one, and the letter of the other, in part. */
UNIT_TEST(a_letter_that_does_not_fit_its_number_is_refused) {
    uint64_t value;
    (void)letter_put(HAK_MAIL_OPTION, "retain_idle", "5m");
    hak_mailbox.letter.value[0] = '6';
    assert_int_equal(answer(), HAK_MAIL_BROKEN);
    assert_true(hak_conf_get("retain_idle", &value) && value != 5 << 20 && value != 6 << 20);
    memset(&hak_mailbox.letter, 0xff, sizeof hak_mailbox.letter); /* texts without an end */
    hak_mailbox.letter.request = HAK_MAIL_OPTION;
    hak_mailbox.number = hak_letter_number(&hak_mailbox.letter, sizeof hak_mailbox.letter);
    assert_int_equal(answer(), HAK_MAIL_UNKNOWN);
}

UNIT_TEST(on_the_c_library_nothing_is_done) {
    hak_store_relaxed(&hak_knobs.force_libc, true);
    assert_int_equal(tell(HAK_MAIL_RATE, "", "64k"), HAK_MAIL_REFUSED);
    hak_store_relaxed(&hak_knobs.force_libc, false);
    assert_int_equal(profile_now().rate, 0);
}

/* The letter is the parent's: the child does not do it, and may get another. */
UNIT_TEST(a_child_does_not_do_what_its_parent_was_asked) {
    int status;
    uint8_t round = hak_event_flush_round;
    uint64_t number = letter_put(HAK_MAIL_FLUSH, "", "");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hak_life_mail(self());
        bool is_done = hak_event_flush_round != round || hak_mailbox.answer != number;
        _exit(is_done ? 1 : tell(HAK_MAIL_FLUSH, "", "") != HAK_MAIL_DONE ? 2 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    assert_int_equal(answer(), HAK_MAIL_DONE);
}
