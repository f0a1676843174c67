/* SPDX-License-Identifier: MIT
 *
 * The description of an address in fatal reports. */
#include "guard/guard.h"
#include "os/os.h"
#include "slab/slab_inl.h"

static void describe_slab(hak_text_t *text, const hak_slab_t *slab, const char *address) {
    size_t offset = (size_t)(address - slab->base);
    size_t block = offset / slab->block_bytes, inside = offset % slab->block_bytes;
    if (inside != 0) {
        hak_text_format(text, "%z bytes into ", inside);
    }
    hak_text_format(text, "%z-byte block %z of the slab at %p", (size_t)slab->block_bytes, block,
                    (void *)slab->base);
    if (block >= slab->capacity) {
        hak_text_str(text, ", behind its last block");
    } else if (block >= hak_single_writer_load(&slab->carved)) {
        hak_text_str(text, ", never handed out");
    }
}

void hak_describe(hak_text_t *text, const void *address) {
    address = hak_tag_strip(address);
    bool is_user = (uintptr_t)address >> 48 == 0; /* the page map ignores those bits */
    uint32_t entry = is_user ? hak_pagemap_get(hak_pagemap_base(), address) : 0;
    uint32_t kind = entry & HAK_KIND_MASK;
    hak_superslab_t *superslab = is_user ? hak_pagemap_superslab(address) : NULL;
    if (hak_slab_is_entry(entry) && superslab != NULL) {
        describe_slab(text, hak_slab_in(superslab, address), address);
    } else if (superslab != NULL) {
        hak_text_str(text, kind != 0 ? "in a large block" : "in memory that is unused now");
    } else if (kind == HAK_KIND_HUGE) {
        hak_text_str(text, "in a huge block");
    } else if (kind == HAK_KIND_GUARD) {
        hak_text_str(text, "watched");
    } else if (kind == HAK_KIND_ZERO_SIZE) {
        hak_text_str(text, "a place of size 0");
    } else {
        hak_text_str(text, "not in memory that we use now");
    }
    hak_text_format(text, "; thread %u", hak_os_thread_id());
}
