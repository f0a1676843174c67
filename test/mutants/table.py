# SPDX-License-Identifier: MIT
"""Errors of one line in the core, each with tests that must find it.

The old text is a part of one line that the file has once. `tests` is a regular expression of names without flavour:
those that are quick and find it. Mutations of the protocol of remote frees are in test/model_protocol/mutations.py.
"""
from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: str
    preset: str = "debug-audit"


MUTANTS = [
    # --- front
    Mutant("pop_counts_no_slot", "src/front/fast.h",
           "    bin->slots_left++;", "",
           "unit_front_bin"),
    Mutant("push_beyond_capacity", "src/front/fast.h",
           "--bin->slots_left < 0", "--bin->slots_left < -1",
           "unit_front_flush"),
    Mutant("freed_again_is_pushed", "src/front/fast.h",
           "hak_link_has_free_marker(hak_link_word(block)) ||\n", "\n",
           "unit_front_flush"),
    Mutant("refill_keeps_its_first", "src/front/refill.c",
           "&bin->head, hak_link_get(blocks.head)", "&bin->head, blocks.head",
           "model_seed_1"),
    Mutant("overflow_total_is_capacity", "src/front/free.c",
           "side->total = kept > capacity ? kept : capacity; /*", "side->total = capacity; /*",
           "unit_front_bin"),
    Mutant("message_mixes_words", "src/front/flush.c",
           "if (word != marks->word && marks->count != 0)", "if (word > marks->word && marks->count != 0)",
           "unit_front_flush"),
    Mutant("row_passes_its_slab", "src/front/flush.c",
           "(uint32_t)hak_least(most, is_upward ? carved - *index : *index + 1)", "most",
           "unit_front_flush"),
    Mutant("first_frees_are_kept", "src/front/free.c",
           "counters->remote_out % FREES_BEFORE_BIN == 0", "counters->remote_out != 0",
           "unit_front_mixed"),
    Mutant("realloc_leaks_the_old", "src/front/realloc.c",
           "    hak_fast_free(block);", "",
           "unit_front_realloc"),
    Mutant("exit_keeps_the_bins", "src/front/attach.c",
           "    bins_end(tcache);", "",
           "unit_front_tcache|unit_front_budget"),
    Mutant("calloc_trusts_dirty_memory", "src/front/malloc.c",
           "result.block != NULL && !result.is_zero", "result.block != NULL && result.is_zero",
           "model_seed_1"),
    # --- slab
    Mutant("mark_twice_is_fine", "src/slab/slab_inl.h",
           "    return !was_set;", "    return was_set || !was_set;",
           "unit_front_flush"),
    Mutant("carve_past_the_end", "src/slab/slab.c",
           "    count = left < count ? left : count;", "    (void)left;",
           "unit_slab_slab"),
    Mutant("empty_slab_stays", "src/slab/slab_inl.h",
           "before == 0 || before + count >= slab->carved", "before == 0 || before + count > slab->carved",
           "unit_slab_slab"),
    Mutant("remote_marks_replace", "src/slab/remote.c",
           "    slab->bits[word] |= bits;", "    slab->bits[word] = bits;",
           "unit_slab_remote"),
    Mutant("purge_takes_a_live_block", "src/slab/idle_pages.c",
           "idle.from = hak_align_up(", "idle.from = hak_align_down(",
           "unit_slab_idle_pages"),
    Mutant("adopted_slab_not_counted", "src/slab/slab.c",
           "    hak_single_writer_add(&owner->slab_count[slab->sc], 1);", "",
           "unit_slab_adopt"),
    # --- span
    Mutant("freed_units_stay_clean", "src/span/superslab.c",
           "        clean = hak_and_relaxed(&superslab->clean_units, ~written) & ~written;", "",
           "unit_span_superslab"),
    Mutant("summary_wants_one_more", "src/span/summary.c",
           "(0x80 - least)", "(0x7f - least)",
           "unit_span_summary"),
    Mutant("extend_over_a_neighbour", "src/span/superslab.c",
           "hak_units_take(superslab, more, 1ull << next, &units)", "hak_units_take(superslab, 1, 1ull << next, &units)",
           "unit_span_superslab|unit_large_large"),
    Mutant("refused_units_are_clean", "src/span/purge.c",
           "hak_or_relaxed(&superslab->clean_units, done);", "hak_or_relaxed(&superslab->clean_units, job->units);",
           "unit_span_refused"),
    Mutant("units_of_a_superslab_not_noted", "src/span/pagemap.c",
           "    pagemap_note(base, index * units, units);", "    (void)units;",
           "unit_span_pagemap"),
    Mutant("entry_that_goes_not_noted", "src/span/pagemap.c",
           "    pagemap_note(base, inside * sizeof entry, here * sizeof entry);",
           "    if (entry != 0) {\n        pagemap_note(base, inside * sizeof entry, here * sizeof entry);\n    }",
           "unit_span_pagemap"),
    # --- large
    Mutant("extent_begins_where_it_did", "src/large/huge_cache.c",
           "        extent->base += bytes;", "",
           "unit_large_huge_cache"),
    Mutant("shrunk_block_keeps_its_body", "src/large/large.c",
           "        hak_pagemap_set_units((char *)block + wanted * HAK_UNIT_BYTES, count - wanted, 0);", "",
           "unit_large_large"),
    Mutant("joined_ranges_are_zero", "src/large/vacant.c",
           "        range->is_zero = range->is_zero && joined.is_zero;", "",
           "unit_large_vacant"),
    # --- reclaim
    Mutant("bound_purges_at_once", "src/reclaim/target.c",
           "pool->resident_bytes > 2 * bound", "pool->resident_bytes > bound",
           "unit_reclaim_target"),
    Mutant("locked_memory_asked_again", "src/reclaim/target.c",
           "given_back == 0 && plan->is_refused", "given_back != 0 && plan->is_refused",
           "unit_reclaim_target"),
    Mutant("limit_ignores_other_processes", "src/reclaim/limit.c",
           "hak_excess(has->all_bytes + limit, used)", "hak_excess(limit, 0 * used)",
           "unit_reclaim_limit"),
    # --- life
    Mutant("child_keeps_users_of_owners", "src/slab/owner.c",
           "        o->users = 0;", "",
           "unit_front_abandoned"),
    Mutant("child_keeps_the_locks", "src/life/fork.c",
           "    hak_lock_fork_end(true);", "",
           "life_fork_hak"),
    # --- guard
    Mutant("watched_block_unchecked", "src/guard/guard.c",
           "    canary_check(slot);", "    (void)canary_check;",
           "crime_guard", "release"),
    # --- hardened
    Mutant("canary_unchecked", "src/slab/harden.h",
           "return *hak_harden_canary_at(block, bytes) == hak_harden_canary(block);", "return block != NULL && bytes != 0;",
           "unit_slab_harden", "hardened"),
    # --- api, and the crimes through the library
    Mutant("large_freed_by_both", "src/large/large.c",
           "if (HAK_UNLIKELY(!hak_pagemap_take(block, HAK_KIND_LARGE))) {", "if (HAK_UNLIKELY(block == NULL)) {",
           "unit_large_large"),
    Mutant("posix_memalign_any_alignment", "src/api/family.c",
           "!hak_is_pow2(align) || align % sizeof(void *) != 0", "!hak_is_pow2(align)",
           "api_aligned_hak"),
]
