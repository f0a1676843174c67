/* SPDX-License-Identifier: MIT
 *
 * Puts a letter into the mailbox of another process (src/base/mailbox.h), and waits for its answer.
 */
#ifndef OBS_TELL_H
#define OBS_TELL_H

#include "image.h"

#include "base/mailbox.h"

/* What to ask: a letter without its number by chance. */
typedef struct obs_wish {
    uint32_t request; /* hak_mail_t */
    char name[20], value[32];
    bool is_brief; /* taken back if it is not done in time, or at an interrupt from the keyboard */
} obs_wish_t;

typedef enum obs_told {
    OBS_TOLD,    /* it answered: *result, hak_mail_result_t */
    OBS_NOT_YET, /* the letter waits there: it looks when it next allocates */
    OBS_TAKEN_BACK,
    OBS_NOT_SENT, /* another's letter waits there */
    OBS_NOT_TOLD, /* reader->error says why */
} obs_told_t;
/* The reader was opened by obs_open_to_write before the image was. */
obs_told_t obs_tell(obs_image_t *image, const obs_wish_t *wish, uint64_t wait_ns, uint32_t *result);

#endif
