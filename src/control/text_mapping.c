/* SPDX-License-Identifier: MIT
 *
 * A text of any length in its own mapping, without an allocation. */
#include "control/control.h"

#include <string.h>

enum { BODY_FIRST_BYTES = 256 << 10 };
static const size_t BODY_MOST_BYTES = (size_t)1 << 30;

static bool body_grow(hak_body_t *body, size_t bytes) {
    size_t capacity = body->capacity != 0 ? body->capacity : BODY_FIRST_BYTES;
    while (capacity < bytes && capacity < BODY_MOST_BYTES) {
        capacity *= 2;
    }
    char *data = capacity >= bytes ? hak_os_map(capacity, hak_os_page_bytes()) : NULL;
    if (data == NULL) {
        return false;
    }
    if (body->data != NULL) {
        memcpy(data, body->data, body->length);
        hak_os_unmap(body->data, body->capacity);
    }
    body->data = data;
    body->capacity = capacity;
    return true;
}

static void body_put(void *context, const char *data, size_t length) {
    hak_body_t *body = context;
    if (body->is_cut ||
        (length > body->capacity - body->length && !body_grow(body, body->length + length))) {
        body->is_cut = true;
        return;
    }
    memcpy(body->data + body->length, data, length);
    body->length += length;
}

void hak_body_make(hak_body_t *body, const hak_control_topic_t *topic) {
    const hak_sink_t sink = {.put = body_put, .context = body};
    *body = (hak_body_t){0};
    topic->write(topic->which, &sink);
}

void hak_body_drop(hak_body_t *body) {
    if (body->data != NULL) {
        hak_os_unmap(body->data, body->capacity);
    }
    *body = (hak_body_t){0};
}
