/* SPDX-License-Identifier: MIT
 *
 * What another process, which may write to the memory of this one, asks of it (observe/tell.c). It
 * writes a letter, and then the letter's number. An event does what the letter says, and answers.
 *
 *   MAIL-1  The number is made of all bytes of the letter, eight of them drawn by chance. A letter
 *           of which another teller's replaced a part does not fit its number, and is refused.
 *   MAIL-2  The answer is the number with a result in its lowest byte. A letter whose number was
 *           answered is none. */
#ifndef HAK_BASE_MAILBOX_H
#define HAK_BASE_MAILBOX_H

#include "base/compiler.h"
#include "base/words.h"

typedef enum hak_mail {
    HAK_MAIL_TRIM = 1, /* return unused memory */
    HAK_MAIL_FLUSH,    /* each thread's bins, when it next looks */
    HAK_MAIL_RATE,     /* of the heap profile: `value` in bytes; 0 ends it */
    HAK_MAIL_RESET,    /* forget what was sampled */
    HAK_MAIL_OPTION,   /* `name` becomes `value` */
} hak_mail_t;

typedef enum hak_mail_result {
    HAK_MAIL_DONE = 1,
    HAK_MAIL_BROKEN,  /* MAIL-1 */
    HAK_MAIL_UNKNOWN, /* no such request or option */
    HAK_MAIL_FIXED,   /* an option that is only read at start */
    HAK_MAIL_INVALID, /* no value of it */
    HAK_MAIL_REFUSED, /* set-uid, on the C library's malloc, or without memory for it */
} hak_mail_result_t;

typedef struct hak_letter {
    uint64_t chance;
    uint32_t request; /* hak_mail_t */
    char name[20], value[32];
} hak_letter_t;

typedef struct hak_mailbox {
    uint64_t number; /* [atomic] 0: no letter came so far */
    uint64_t answer; /* [atomic] */
    hak_letter_t letter;
} hak_mailbox_t;
extern hak_mailbox_t hak_mailbox;

enum { HAK_MAIL_RESULTS = 1 << 8 };

/* FNV-1a; not 0, and without a result. */
HAK_INLINE uint64_t hak_letter_number(const void *letter, size_t bytes) {
    const unsigned char *at = letter;
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    }
    return (hash | HAK_MAIL_RESULTS) & ~(uint64_t)(HAK_MAIL_RESULTS - 1);
}

#endif
