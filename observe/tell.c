/* SPDX-License-Identifier: MIT
 *
 * Several tellers may write at a time. Who finds another's letter waits until that is answered; who
 * is told that a letter was broken, or finds its own replaced, sends it again: whatever is asked
 * may be done twice. */
#include "tell.h"

#include "base/bits.h"

#include <signal.h>
#include <sys/random.h>
#include <time.h>

enum { NAP_NS = 2000000, SENT_MOST = 100, LETTER_MOST = 256 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t number_of(uint64_t answer) {
    return hak_align_down(answer, HAK_MAIL_RESULTS);
}

/* false: it is not within the letter. */
static bool member_set(const obs_image_t *image, char *letter, unsigned member, const void *from) {
    const hak_door_row_t *row = &image->row[member];
    const hak_door_row_t *all = &image->row[HAK_DOOR_AT_mailbox_letter];
    uint64_t at = (uint64_t)row->offset - all->offset;
    bool is_inside = row->offset >= all->offset && at + row->bytes <= all->bytes;
    if (is_inside) {
        memcpy(letter + at, from, row->bytes);
    }
    return is_inside;
}

static bool number_set(obs_image_t *image, uint64_t number) {
    uint32_t offset = image->row[HAK_DOOR_AT_mailbox_number].offset;
    return obs_write(image->reader, obs_root(image, mailbox) + offset, &number, sizeof number);
}

/* Writes the letter, then its number; *number: of the letter. */
static bool letter_send(obs_image_t *image, const obs_wish_t *wish, uint64_t *number) {
    const hak_door_row_t *place = &image->row[HAK_DOOR_AT_mailbox_letter];
    char letter[LETTER_MOST] = "";
    uint64_t chance = 0, at = obs_root(image, mailbox);
    (void)!getrandom(&chance, sizeof chance, 0);
    if (place->bytes > sizeof letter ||
        !member_set(image, letter, HAK_DOOR_AT_mailbox_chance, &chance) ||
        !member_set(image, letter, HAK_DOOR_AT_mailbox_request, &wish->request) ||
        !member_set(image, letter, HAK_DOOR_AT_mailbox_name, wish->name) ||
        !member_set(image, letter, HAK_DOOR_AT_mailbox_value, wish->value)) {
        return obs_fail(image->reader, "its mailbox contradicts itself");
    }
    *number = hak_letter_number(letter, place->bytes);
    return obs_write(image->reader, at + place->offset, letter, place->bytes) &&
           number_set(image, *number);
}

/* The mailbox has the number of the last answer again, unless the letter was answered meanwhile. A
 * process that was about to obey it may still do so. */
static obs_told_t letter_take_back(obs_image_t *image, uint64_t own, uint32_t *result) {
    obs_mailbox_t mailbox;
    obs_forget(image->reader);
    if (!obs_fetch(image, mailbox, obs_root(image, mailbox), &mailbox)) {
        return OBS_TAKEN_BACK; /* it has ended */
    }
    if (number_of(mailbox.answer) != own && mailbox.number == own) {
        (void)number_set(image, number_of(mailbox.answer));
        obs_forget(image->reader);
        (void)obs_fetch(image, mailbox, obs_root(image, mailbox), &mailbox);
    }
    if (number_of(mailbox.answer) != own) {
        return OBS_TAKEN_BACK;
    }
    (void)(mailbox.number != own && number_set(image, own));
    *result = (uint32_t)(mailbox.answer % HAK_MAIL_RESULTS);
    return OBS_TOLD;
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number) {
    is_interrupted = number;
}

obs_told_t obs_tell(obs_image_t *image, const obs_wish_t *wish, uint64_t wait_ns,
                    uint32_t *result) {
    uint64_t own = 0, until_ns = now_ns() + wait_ns;
    if (wish->is_brief) {
        (void)signal(SIGINT, interrupt);
    }
    for (unsigned sent = 0;;) {
        obs_mailbox_t mailbox;
        obs_forget(image->reader);
        if (!obs_fetch(image, mailbox, obs_root(image, mailbox), &mailbox)) {
            obs_fail(image->reader, "process %u ended meanwhile", image->reader->pid);
            return OBS_NOT_TOLD;
        }
        bool is_answered = number_of(mailbox.answer) == mailbox.number;
        bool is_own = own != 0 && mailbox.number == own;
        *result = (uint32_t)(mailbox.answer % HAK_MAIL_RESULTS);
        if (is_own && is_answered && (*result != HAK_MAIL_BROKEN || sent == SENT_MOST)) {
            return OBS_TOLD;
        }
        if (is_answered) {
            if (!letter_send(image, wish, &own)) {
                return OBS_NOT_TOLD;
            }
            sent++;
        }
        if (now_ns() > until_ns || is_interrupted != 0) {
            return !is_answered && !is_own ? OBS_NOT_SENT
                   : wish->is_brief        ? letter_take_back(image, own, result)
                                           : OBS_NOT_YET;
        }
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}
