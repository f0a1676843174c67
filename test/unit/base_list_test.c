/* SPDX-License-Identifier: MIT */
#include "base/list.h"
#include "unit/unit.h"

typedef struct item {
    int before;
    hak_list_t link;
    int number;
} item_t;

static hak_list_t head;
static item_t items[64];

static int number_of(const hak_list_t *link) {
    return HAK_CONTAINER_OF(link, const item_t, link)->number;
}

static void list_begin(void) {
    hak_list_init(&head);
    for (int i = 0; i < 64; i++) {
        items[i].number = i;
        hak_list_init(&items[i].link);
    }
}

/* The list has exactly these numbers, walked in both directions. */
static void list_expect(const int *numbers, int count) {
    const hak_list_t *forth = head.next;
    const hak_list_t *back = head.prev;
    for (int i = 0; i < count; i++, forth = forth->next, back = back->prev) {
        assert_int_equal(number_of(forth), numbers[i]);
        assert_int_equal(number_of(back), numbers[count - 1 - i]);
    }
    assert_ptr_equal(forth, &head);
    assert_ptr_equal(back, &head);
    assert_int_equal(hak_list_is_empty(&head), count == 0);
}

UNIT_TEST(list_removal_twice_is_harmless) {
    list_begin();
    hak_list_push_front(head.prev, &items[0].link);
    hak_list_push_front(head.prev, &items[1].link);
    hak_list_remove(&items[0].link);
    hak_list_remove(&items[0].link);
    list_expect((int[]){1}, 1);
    assert_true(hak_list_is_empty(&items[0].link));
    hak_list_remove(&items[1].link);
    hak_list_remove(&items[1].link);
    list_expect(NULL, 0);
}

UNIT_TEST(list_random_operations_equal_an_array) {
    int model[64], count = 0;
    bool is_in[64] = {false};
    uint64_t seed = 5;
    list_begin();
    for (unsigned step = 0; step < 5000; step++) {
        int which = (int)(hak_rng_next(&seed) % 64);
        if (is_in[which]) {
            int at = 0;
            while (model[at] != which) {
                at++;
            }
            memmove(model + at, model + at + 1, (size_t)(--count - at) * sizeof *model);
            hak_list_remove(&items[which].link);
        } else if (hak_rng_next(&seed) % 2 == 0) {
            memmove(model + 1, model, (size_t)count++ * sizeof *model);
            model[0] = which;
            hak_list_push_front(&head, &items[which].link);
        } else {
            model[count++] = which;
            hak_list_push_front(head.prev, &items[which].link);
        }
        is_in[which] = !is_in[which];
        list_expect(model, count);
    }
}
