/* SPDX-License-Identifier: MIT
 *
 * Intrusive circular double list. A head is an element without an item; an unlinked item points to
 * itself, so removing it twice is harmless. */
#ifndef HAK_BASE_LIST_H
#define HAK_BASE_LIST_H

#include "base/compiler.h"
#include "base/words.h"

typedef struct hak_list {
    struct hak_list *next;
    struct hak_list *prev;
} hak_list_t;

#define HAK_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

HAK_INLINE void hak_list_init(hak_list_t *head) {
    head->next = head;
    head->prev = head;
}

HAK_INLINE bool hak_list_is_empty(const hak_list_t *head) {
    return head->next == head;
}

HAK_INLINE void hak_list_push_front(hak_list_t *head, hak_list_t *item) {
    item->next = head->next;
    item->prev = head;
    head->next->prev = item;
    head->next = item;
}

HAK_INLINE void hak_list_remove(hak_list_t *item) {
    item->prev->next = item->next;
    item->next->prev = item->prev;
    hak_list_init(item);
}

#endif
