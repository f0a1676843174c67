/* SPDX-License-Identifier: MIT */
#include "door/door.h"

#include "base/knobs.h"
#include "base/mailbox.h"
#include "base/version.h"
#include "front/abandoned.h"
#include "front/event.h"
#include "front/quarantine.h"
#include "guard/slot.h"
#include "large/huge_cache.h"
#include "large/huge_record.h"
#include "profile/store.h"
#include "reclaim/learner.h"
#include "slab/owner.h"
#include "slab/remote.h"
#include "span/pagemap.h"
#include "span/span_state.h"

enum {
    DOOR_TEXT_BYTES = sizeof(
#include "door/text.def"
        ),
};

/* Where a member lies; of a number also whether it is as wide as door.def says: else a division by
 * 0 is no constant. */
#define DOOR_SIZE(type, member) sizeof(((type *)0)->member)
#define DOOR_MEMBER(type, member) {offsetof(type, member), DOOR_SIZE(type, member)},
#define DOOR_NUMBER(type, member, size)                                                            \
    {offsetof(type, member), (size) / (DOOR_SIZE(type, member) == (size))},

/* clang-format off */
__attribute__((used)) const hak_door_t hak_door = {
    .bytes = sizeof(hak_door_t) + DOOR_TEXT_BYTES,
    .row_count = HAK_DOOR_ROWS,
    .text_bytes = DOOR_TEXT_BYTES,
    .library = HAK_VERSION_TEXT,
    .row = {
#define HAK_DOOR_CONSTANT(name) {(uint32_t)(name), 0},
#define HAK_DOOR_STRUCT(name, type) {0, sizeof(type)},
#define HAK_DOOR_ONE(name, type, key, member, bits) DOOR_NUMBER(type, member, (bits) / 8)
#define HAK_DOOR_MANY(name, type, key, member, bits, count) DOOR_NUMBER(type, member, (bits) / 8 * (count))
#define HAK_DOOR_PLACE(name, type, key, member) DOOR_MEMBER(type, member)
#define HAK_DOOR_END(name)
#include "door/door.def"
    },
    .text =
#include "door/text.def"
};

#define DOOR_QUOTED(text) #text
#define DOOR_VERSION(number) DOOR_QUOTED(number)
/* The linker knows the distances, also to variables that no other object sees. The note is short: it
 * lies before the code of the hit path. */
#define HAK_DOOR_ROOT(name, variable) ".hidden " #variable "\n.4byte " #variable " - .\n"
__asm__(".pushsection .rodata.hak_door_roots,\"a\",%progbits\n"
        ".balign 4\n"
        "990:\n"
#include "door/door.def"
        ".popsection\n"
        ".pushsection .note.hakmem,\"a\",%note\n"
        ".balign 4\n"
        ".4byte 992f-991f, 994f-993f, 1\n"
        "991: .asciz \"hakmem\"\n"
        "992: .balign 4\n"
        "993: .4byte " DOOR_VERSION(HAK_DOOR_VERSION) "\n"
        ".hidden hak_door\n.4byte hak_door - .\n"
        ".4byte 990b - .\n"
        "994: .popsection\n");
