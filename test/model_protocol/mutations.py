# SPDX-License-Identifier: MIT
"""Mutations of the protocol's sources: each takes one thing away, and some scenario must find it.

`expected`: beginnings of what the failure may say. docs/remote-free.md, section 11, names each.
"""
import collections

Mutation = collections.namedtuple("Mutation", "name scenario expected changes")

REMOTE_H = "slab/remote.h"
REMOTE, OWNER, SLAB, LOCK, FLUSH = "slab/remote.c", "slab/owner.c", "slab/slab.c", "os/lock.c", "front/flush.c"
FIT, SUPERSLAB, HUGE_PAGE = "span/fit.c", "span/superslab.c", "span/huge_page.c"
PURGE, SUMMARY, SPAN_STATE = "span/purge.c", "span/summary.c", "span/span_state.h"
RACE, LOST, TWICE = "race: ", "RF-3: ", "fatal: hakmem broke its own invariant: (nil) RF-2"
BROKEN, MISCOUNTED = "fatal: hakmem broke its own invariant", "SLAB-1: "

MUTATIONS = [
    # --- memory orders ---
    Mutation("mark_relaxed", "early", [RACE], [
        (REMOTE, "hak_or_release(word", "hak_or_relaxed(word")]),
    Mutation("take_relaxed", "early", [RACE], [
        (REMOTE, "hak_swap_acquire(marks", "hak_swap_relaxed(marks")]),
    Mutation("tell_relaxed", "late", [BROKEN], [
        (REMOTE, "hak_add_release(number", "hak_add_relaxed(number")]),
    Mutation("number_take_relaxed", "late", [BROKEN], [
        (REMOTE, "hak_swap_acquire(number", "hak_swap_relaxed(number")]),
    Mutation("queue_push_relaxed", "two_slabs", [RACE, LOST, TWICE], [
        (REMOTE, "hak_cas_release(&owner->queue", "hak_cas_relaxed(&owner->queue")]),
    Mutation("queue_take_relaxed", "two_slabs", [RACE, LOST, TWICE], [
        (REMOTE, "hak_swap_acquire(&owner->queue", "hak_swap_relaxed(&owner->queue")]),
    Mutation("owner_store_relaxed", "new_owner", [RACE], [
        (SLAB, "hak_store_release(&slab->owner", "hak_store_relaxed(&slab->owner")]),
    Mutation("owner_load_relaxed_in_push", "new_owner", [RACE], [
        (REMOTE, "queue_push(hak_load_acquire(&slab->owner), slab);",
         "queue_push(hak_load_relaxed(&slab->owner), slab);")]),
    Mutation("owner_load_relaxed_in_drain", "forward", [RACE], [
        (REMOTE, "hak_owner_t *now = hak_load_acquire(", "hak_owner_t *now = hak_load_relaxed(")]),
    Mutation("try_relaxed", "two_drainers", [RACE], [
        (LOCK, "return hak_cas_acquire(state, &expected, 1);",
         "return hak_cas_relaxed(state, &expected, 1);")]),
    Mutation("leave_relaxed", "two_drainers", [RACE], [
        (LOCK, "hak_store_release(&owner_lock->is_taken, 0);",
         "hak_store_relaxed(&owner_lock->is_taken, 0);")]),
    Mutation("touch_after_unlock", "two_drainers", [RACE], [
        (OWNER, "    hak_lock_unlock(&owner->lock);\n}", "    hak_lock_unlock(&owner->lock);\n    (void)*(hak_slab_t *volatile *)&owner->ready;\n}")]),
    Mutation("try_by_load_and_store", "enter", [RACE, "RF-1"], [
        (LOCK, "return hak_cas_acquire(state, &expected, 1);",
         "bool is_free = hak_load_acquire(state) == expected;\n    if (is_free) {\n"
         "        hak_store_relaxed(state, 1);\n    }\n    return is_free;")]),
    Mutation("enter_without_another_look", "enter", ["too many", RACE, "RF-1", "deadlock"], [
        (OWNER, "        hak_os_sleep(OWNER_NAP_NS);\n", "        hak_os_sleep(OWNER_NAP_NS);\n        return home;\n")]),
    Mutation("lock_take_relaxed", "lock", [RACE], [
        (LOCK, "return hak_cas_acquire(state, &expected, 1);",
         "return hak_cas_relaxed(state, &expected, 1);")]),
    Mutation("lock_free_relaxed", "lock", [RACE], [
        (LOCK, "hak_swap_release(&lock->state, 0)", "hak_swap_relaxed(&lock->state, 0)")]),
    Mutation("lock_take_late_relaxed", "lock", [RACE], [
        (LOCK, "while (hak_swap_acquire(&lock->state, 2) != 0)", "while (hak_swap_relaxed(&lock->state, 2) != 0)")]),
    Mutation("single_try_always", "single", [RACE, "RF-1"], [
        (LOCK, "    if (hak_libc_is_single() && hak_load_relaxed(is_taken) == 0) {", "    if (hak_load_relaxed(is_taken) == 0) {")]),
    Mutation("single_try_taken", "single", ["taken twice"], [
        (LOCK, "    if (hak_libc_is_single() && hak_load_relaxed(is_taken) == 0) {", "    if (hak_libc_is_single()) {")]),
    Mutation("lock_sleeper_unseen", "lock", ["deadlock"], [
        (LOCK, "while (hak_swap_acquire(&lock->state, 2) != 0) { /* pairs LOCK */\n        hak_os_wait(&lock->state, 2);",
         "while (hak_swap_acquire(&lock->state, 1) != 0) {\n        hak_os_wait(&lock->state, 1);")]),
    Mutation("lock_wake_left_out", "lock", ["deadlock"], [
        (LOCK, "    if (HAK_UNLIKELY(hak_swap_release(&lock->state, 0) == 2)) { /* pairs LOCK */\n        hak_os_wake_one(&lock->state);\n    }\n",
         "    (void)hak_swap_release(&lock->state, 0);\n")]),
    # --- steps of a pusher ---
    Mutation("number_before_marks", "push", [BROKEN], [
        (REMOTE, "    hak_remote_mark(marks);\n    hak_remote_tell(marks, marks->count);\n",
         "    hak_remote_tell(marks, marks->count);\n    hak_remote_mark(marks);\n")]),
    Mutation("queue_by_nobody", "push", [LOST], [
        (REMOTE, "    if (before == 0) {\n", "    if (before == 99) {\n")]),
    Mutation("queue_by_everybody", "push", [TWICE], [
        (REMOTE, "    if (before == 0) {\n", "    if (before != 99) {\n")]),
    Mutation("queue_before_number", "push", [LOST, TWICE], [
        (REMOTE, "    uint64_t before = hak_add_release(number, count); /* pairs REMOTE-4 */\n",
         "    if (hak_load_relaxed(number) == 0) {\n"
         "        queue_push(hak_load_acquire(&slab->owner), slab);\n    }\n"
         "    uint64_t before = hak_add_release(number, count); /* pairs REMOTE-4 */\n"),
        (REMOTE, "    if (before == 0) {\n        /* We", "    if (before == 99) {\n        /* We")]),
    Mutation("queue_on_a_look", "two_pushers", [LOST, TWICE], [
        (REMOTE, "    uint64_t before = hak_add_release(number, count); /* pairs REMOTE-4 */\n",
         "    bool is_first = hak_load_relaxed(number) == 0;\n"
         "    uint64_t before = hak_add_release(number, count); /* pairs REMOTE-4 */\n"),
        (REMOTE, "    if (before == 0) {\n        /* We", "    if (is_first) {\n        /* We")]),
    Mutation("link_outside_loop", "two_slabs", [LOST, TWICE], [
        (REMOTE, "    do {\n        hak_store_relaxed(&slab->queue_next, top);\n    } while (",
         "    hak_store_relaxed(&slab->queue_next, top);\n    do {\n    } while (")]),
    Mutation("touch_after_queue", "retire", [RACE], [
        (REMOTE, "} while (!hak_cas_release(&owner->queue, &top, slab)); /* pairs REMOTE-2 */\n",
         "} while (!hak_cas_release(&owner->queue, &top, slab)); /* pairs REMOTE-2 */\n"
         "    (void)*(volatile uint8_t *)&slab->sc;\n")]),
    Mutation("touch_after_number", "retire", [RACE], [
        (REMOTE, "    if (before == 0) {\n",
         "    (void)*(volatile uint8_t *)&slab->sc;\n    if (before == 0) {\n")]),
    # --- steps of a holder ---
    Mutation("queue_taken_by_load_and_store", "two_slabs", [LOST, TWICE], [
        (REMOTE, "hak_swap_acquire(&owner->queue, NULL); /* pairs REMOTE-2 */",
         "hak_load_acquire(&owner->queue);\n            hak_store_relaxed(&owner->queue, NULL);")]),
    Mutation("take_what_is_queued", "refill", [LOST, TWICE], [
        (SLAB, "    if (slab != NULL) {\n        blocks = slab_take(slab, want);\n        if (",
         "    if (slab != NULL) {\n        extern void slab_take_early(hak_owner_t *, hak_slab_t *);\n"
         "        slab_take_early(owner, slab);\n"
         "        blocks = slab_take(slab, want);\n        if ("),
        (REMOTE, "bool hak_remote_drain(",
         "void slab_take_early(hak_owner_t *owner, hak_slab_t *slab);\n"
         "void slab_take_early(hak_owner_t *owner, hak_slab_t *slab) {\n"
         "    if (hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit) != 0) {\n"
         "        slab_take_remote(owner, slab);\n"
         "    }\n}\n\nbool hak_remote_drain(")]),
    Mutation("take_before_dequeue", "push", [LOST, TWICE, RACE], [
        (REMOTE, "        hak_single_writer_store(&owner->ready, hak_load_relaxed(&slab->queue_next));\n",
         "        hak_owner_t *mine = hak_load_relaxed(&slab->owner);\n"
         "        if (mine == owner) {\n            slab_take_remote(owner, slab);\n        }\n"
         "        hak_single_writer_store(&owner->ready, hak_load_relaxed(&slab->queue_next));\n"
         "        if (mine == owner) {\n            continue;\n        }\n")]),
    Mutation("forward_left_out", "adopt", [LOST], [
        (REMOTE, "            queue_push(now, slab);\n", "            (void)now;\n")]),
    # RF-7
    Mutation("forward_test_left_out", "adopt", [RACE, "fatal: hakmem broke its own invariant"], [
        (REMOTE, "if (HAK_LIKELY(now == owner)) {", "if (HAK_LIKELY(now != NULL)) {")]),
    Mutation("retire_pending", "retire", ["fatal", "RF", RACE, LOST], [
        (SLAB, "    if (slab->free_count == slab->carved) {\n        slab_retire(owner, slab);\n",
         "    if (slab->free_count == slab->carved ||\n"
         "        hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit) != 0) {\n"
         "        slab_retire(owner, slab);\n"),
        (SLAB, '    HAK_ASSERT(slab->free_count == slab->carved, "SLAB-3");\n', ""),
        (SLAB, '    HAK_ASSERT(hak_remote_waiting(superslab, slab->unit) == 0, "SLAB-3");\n', "")]),
    Mutation("number_taken_last", "push", [BROKEN], [
        (REMOTE, "    uint64_t count = hak_swap_acquire(number, 0); /* pairs REMOTE-4 */\n"
         '    HAK_ASSERT(count != 0, "RF-2: a queued slab is pending");\n', ""),
        (REMOTE, "    HAK_ASSERT(slab_marks(slab) >=",
         "    uint64_t count = hak_swap_acquire(number, 0); /* pairs REMOTE-4 */\n"
         "    HAK_ASSERT(slab_marks(slab) >=")]),
    Mutation("marks_counted", "retire", ["fatal", "RF", RACE, LOST, MISCOUNTED], [
        (REMOTE, "    hak_slab_count_free(owner, slab, (uint32_t)count, slab->base);\n",
         "    count = hak_popcount(slab->bits[0]) - slab->free_count;\n"
         "    hak_slab_count_free(owner, slab, (uint32_t)count, slab->base);\n")]),
    # --- changes of owner ---
    Mutation("adopt_without_lock", "adopt", [RACE], [
        (OWNER, "if (from == owner || !hak_lock_try(&from->lock)) {", "if (from == owner) {"),
        (OWNER, "    hak_lock_unlock(&from->lock);\n    return slab;", "    return slab;")]),
    Mutation("adopt_any_without_lock", "adopt_any", [RACE, "fatal: hakmem broke its own invariant"], [
        (OWNER, "if (from == owner || !hak_lock_try(&from->lock)) {", "if (from == owner) {"),
        (OWNER, "    hak_lock_unlock(&from->lock);\n    return slab;", "    return slab;")]),
    Mutation("part_without_lock", "exit", [RACE], [
        (OWNER, "    if (owner_remove_user(owner) && hak_owner_try_lock(owner)) {\n        owner_maintain(owner, OWNER_DRAIN_BUDGET);\n"
         "        hak_owner_unlock(owner);\n    }\n",
         "    if (owner_remove_user(owner)) {\n        owner_maintain(owner, OWNER_DRAIN_BUDGET);\n    }\n")]),
    Mutation("lock_left_before_change", "adopt", [RACE, "fatal"], [
        (OWNER, "    owner_maintain(from, ADOPT_DRAIN_BUDGET);\n",
         "    hak_lock_unlock(&from->lock);\n    owner_maintain(from, ADOPT_DRAIN_BUDGET);\n"),
        (OWNER, "    hak_lock_unlock(&from->lock);\n    return slab;", "    return slab;")]),
    # RF-6
    Mutation("entry_read_before_lock", "flush", [RACE, "fatal: hakmem broke its own invariant"], [
        (FLUSH, "    hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;\n",
         "    tcache->first_entry = hak_pagemap_get(hak_pagemap_base(), blocks.head);\n"
         "    tcache->first_entry = tcache->first_entry == hak_sc_entry(tcache->home->first_entry, sc) ? tcache->first_entry : 0;\n"
         "    hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;\n"),
        (FLUSH, "hak_pagemap_at(base, at) == own",
         "(held != NULL && tcache->first_entry != 0 ? tcache->first_entry\n"
         "                             : hak_pagemap_at(base, at)) == own")]),
    # RF-5
    Mutation("flush_without_lock", "flush", [RACE], [
        (FLUSH, "hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;",
         "bool is_held = hak_owner_try_lock(tcache->home);\n    hak_owner_t *held = tcache->home;"),
        (FLUSH, "    if (HAK_LIKELY(held != NULL)) {\n        hak_owner_unlock",
         "    if (HAK_LIKELY(is_held)) {\n        hak_owner_unlock")]),
    # --- bins with blocks of several owners ---
    # RF-6
    Mutation("mixed_by_first", "mixed", [RACE, BROKEN], [
        (FLUSH, "if (HAK_LIKELY(hak_pagemap_at(base, at) == own)) {",
         "if (HAK_LIKELY(hak_pagemap_get(base, blocks.head) == own)) {")]),
    Mutation("mixed_run_past_its_slab", "mixed_foreign", ["fatal: ", MISCOUNTED, "a block is lost"], [
        (FLUSH, "while (left != 0 && (before ^ (uintptr_t)block) < HAK_UNIT_BYTES);", "while (left != 0);")]),
    Mutation("mixed_messages_kept", "mixed", [LOST, MISCOUNTED, "a block is lost"], [
        (FLUSH, "    if (messages.used != 0) {\n        messages_send(tcache, &messages);\n    }\n", "")]),
    Mutation("mixed_number_of_two_slabs", "mixed_foreign", [BROKEN, MISCOUNTED, LOST, "fatal: ", "a block is lost"], [
        (FLUSH, "        if (left == 0 || !is_same_slab(marks, &messages->slot[hak_ctz(left)])) {", "        if (left == 0) {")]),
    # --- fork ---
    Mutation("mend_without_queueing", "fork", [LOST], [
        (REMOTE, "    if (count != 0 && !mend->is_queued) {", "    if (count == UINT32_MAX) {")]),
    Mutation("mend_only_what_was_not_pending", "fork", [LOST], [
        (REMOTE, "!mend->is_queued) {\n        queue_push", "before == 0) {\n        queue_push")]),
    Mutation("mend_what_is_queued", "fork", [TWICE, LOST], [
        (REMOTE, "    if (count != 0 && !mend->is_queued) {", "    if (count != 0) {")]),
    Mutation("mend_without_ready", "fork_drain", [TWICE, LOST], [
        (REMOTE, "{owner->ready, hak_load_relaxed(&owner->queue)}", "{NULL, hak_load_relaxed(&owner->queue)}")]),
    Mutation("mend_by_number", "fork", [MISCOUNTED, LOST, "a block is lost"], [
        (REMOTE, "is_lost ? before : slab_uncounted(superslab, slab);\n",
         "is_lost ? before : slab_uncounted(superslab, slab);\n    count = before;\n")]),
    # REMOTE-5
    Mutation("note_after_marks", "fork", [LOST, MISCOUNTED, "a block is lost"], [
        (REMOTE, "    hak_remote_note(sending, (hak_slab_t *)&marks->superslab->unit[marks->unit]);\n"
         "    hak_remote_mark(marks);\n",
         "    hak_remote_mark(marks);\n"
         "    hak_remote_note(sending, (hak_slab_t *)&marks->superslab->unit[marks->unit]);\n")]),
    Mutation("note_ends_before_the_number", "fork", [LOST, MISCOUNTED, "a block is lost"], [
        (REMOTE, "    hak_remote_tell(marks, marks->count);\n    hak_remote_end(sending);\n",
         "    hak_remote_end(sending);\n    hak_remote_tell(marks, marks->count);\n")]),
    Mutation("note_of_a_signal_handler", "fork_signal", [LOST, MISCOUNTED, "a block is lost"], [
        (REMOTE_H, "HAK_LIKELY(hak_in_unlocked_update == 0) ? sending : NULL;", "sending;")]),
    Mutation("mend_all_with_queues", "fork_signal", [TWICE, LOST], [
        (REMOTE, "        hak_owner_visit(owner_empty, NULL);\n", "")]),
    Mutation("keep_what_a_kept_owner_took", "fork_kept_in_drain", ["RF-3"], [
        (LOCK, "        if (hak_lock_fork_lacks(l)) {\n            return true;\n        }\n", "")]),
    # RF-9
    Mutation("fork_without_deadline", "fork_kept", ["too many choices"], [
        (LOCK, "        if (i >= LOCK_SPINS + naps) {\n            return false;\n        }\n", "")]),
    Mutation("fork_frees_what_is_kept", "fork_kept", ["a lock is freed that the fork did not take"], [
        (LOCK, "        if (hak_load_relaxed(&l->forked_by) == &lock_own.forked) {\n            hak_store_relaxed(",
         "        {\n            hak_store_relaxed(")]),
    Mutation("fork_without_locks", "fork_holder", ["a lock is never released", "a block is lost", LOST], [
        (LOCK, "        if (rank == HAK_LOCK_OWNER && is_begun) {\n            lock_fork_owners("
         "is_clean ? FORK_NAPS : FORK_HANDLER_NAPS);\n        }\n", "")]),
    # --- units ---
    Mutation("units_look_left_out", "units", ["SPAN-4"], [
        (FIT, "uint64_t free = superslab != NULL ? units_look(superslab) : 0;", "uint64_t free = before;")]),
    Mutation("units_look_relaxed", "units", ["SPAN-4"], [
        (FIT, "return hak_or_acquire_release(&superslab->free_units, 0);", "return hak_load_relaxed(&superslab->free_units);")]),
    Mutation("units_give_release_only", "units", ["SPAN-4"], [
        (SUPERSLAB, "hak_or_acquire_release(&superslab->free_units, mask)", "hak_or_release(&superslab->free_units, mask)")]),
    Mutation("units_give_relaxed", "units", [RACE], [
        (SUPERSLAB, "hak_or_acquire_release(&superslab->free_units, mask)", "hak_or_relaxed(&superslab->free_units, mask)")]),
    Mutation("units_take_relaxed", "units", [RACE, "SPAN-2"], [
        (SPAN_STATE, "hak_cas_acquire(&superslab->free_units,", "hak_cas_relaxed(&superslab->free_units,")]),
    Mutation("units_promise_before_give", "units", ["SPAN-4"], [
        (SUPERSLAB, "    uint64_t before = hak_or_acquire_release(&superslab->free_units, mask);",
         "    unsigned early = hak_summary_get(hak_fit_any(partition), index);\n"
         "    uint64_t before = hak_or_acquire_release(&superslab->free_units, mask);"),
        (SUPERSLAB, "HAK_UNLIKELY(is_news(hak_fit_any(partition), index, run, dirty))",
         "is_news(hak_fit_any(partition), index, 0, 0) || run > early")]),
    Mutation("units_clean_after", "units", ["SPAN-2", RACE], [
        (SUPERSLAB, "        clean = hak_and_relaxed(&superslab->clean_units, ~written) & ~written;\n", "        clean &= ~written;\n"),
        (SUPERSLAB, "    uint64_t free = before | mask;\n",
         "    uint64_t free = before | mask;\n    (void)hak_and_relaxed(&superslab->clean_units, ~written);\n")]),
    Mutation("units_dirty_look_left_out", "units_settle", ["SPAN-10"], [
        (FIT, "(units_look(superslab) & ~", "(0 & ~")]),
    Mutation("units_back_not_promised", "units_back", ["SPAN-4"], [
        (PURGE, "hak_longest_run(free, ~0ull),\n                    free, dirty", "0,\n                    free, dirty")]),
    Mutation("units_level_look_left_out", "units_levels", ["SPAN-4"], [
        (SUMMARY, "if (HAK_UNLIKELY(line_most(line) > most)) {", "if (most > HAK_SUMMARY_MOST) {")]),
    Mutation("units_level_relaxed", "units_levels", ["SPAN-4"], [
        (SUMMARY, "hak_swap_acquire_release(byte,", "hak_swap_relaxed(byte,")]),
    Mutation("units_move_relaxed", "units_move", ["SPAN-4"], [
        (SUMMARY, "hak_or_acquire_release(&old[place], 0)", "hak_load_relaxed(&old[place])"),
        (SUMMARY, "hak_or_acquire_release(&summary->level[0][place], 0)", "hak_load_relaxed(&summary->level[0][place])")]),
    Mutation("units_raise_once", "units_move", ["SPAN-4"], [
        (SUMMARY, "while (HAK_UNLIKELY(hak_load_relaxed(&summary->size_log2) != size_log2));", "while (0);")]),
    Mutation("units_rest_not_promised", "units_rest", ["SPAN-4"], [
        (HUGE_PAGE, "hak_longest_run(free, ~0ull)", "0")]),
    Mutation("units_rest_not_taken", "units_huge", ["SPAN-", RACE], [
        (HUGE_PAGE, "rest &= hak_and_acquire(&superslab->free_units, ~rest);", "rest &= hak_load_acquire(&superslab->free_units);")]),
    Mutation("units_opened_without_wait", "units_huge", ["SPAN-6"], [
        (HUGE_PAGE, "(is_huge || may_open)", "may_open")]),
]
