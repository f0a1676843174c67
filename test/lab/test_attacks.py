# SPDX-License-Identifier: MIT
"""What came of attacks on the heap: words, choices, counts, tables. Only the last test runs some."""
import types

import pytest
from hakmem_lab import attacks, micro, tables
from hakmem_lab.errors import LabError, UsageError

KNOWN = [attacks.Attack("double free", "double_free_64"), attacks.Attack("double free", "double_free_3m"),
         attacks.Attack("underflow", "underflow_40_by_1")]
ARM = types.SimpleNamespace(name="one", info=types.SimpleNamespace(label="One 1.0"))


def an_outcome():
    words = {(attack, "one", heap): attacks.STOPPED for attack in KNOWN for heap in attacks.HEAPS}
    words[KNOWN[2], "one", "warm"] = attacks.SUCCEEDED
    return attacks.Outcome(KNOWN, [ARM], words)


@pytest.mark.parametrize("status, said, word", [
    (-6, "", "stopped"), (-11, "succeeded\n", "stopped"), (0, "harmless\n", "harmless"), (0, "x\nsucceeded\n", "succeeded"),
])
def test_a_signal_stops_an_attack_else_it_says_what_came_of_it(status, said, word):
    assert attacks.judge(status, said) == word
    for odd in ((1, "stopped\n"), (0, ""), (0, "nonsense\n")):
        with pytest.raises(LabError, match="status"):
            attacks.judge(*odd)


def test_attacks_are_chosen_by_kind_name_and_pattern():
    assert attacks.choose(KNOWN, []) == KNOWN
    assert attacks.choose(KNOWN, ["double free"]) == KNOWN[:2]
    assert attacks.choose(KNOWN, ["*_3m", "underflow_40_by_1"]) == KNOWN[1:]
    with pytest.raises(UsageError, match="underflow"):
        attacks.choose(KNOWN, ["nosuch"])


def test_the_most_frequent_word_counts_and_of_equals_the_worst(monkeypatch):
    said = iter(["stopped", "succeeded", "stopped"] + ["stopped", "harmless", "succeeded"])
    monkeypatch.setattr(attacks, "commit", lambda *words: next(said))
    found = attacks.run(KNOWN[:1], [ARM], 3, lambda text: None)
    assert [found.words[KNOWN[0], "one", heap] for heap in attacks.HEAPS] == ["stopped", "succeeded"]


def test_tables_count_each_kind_on_the_used_heap_and_all_on_both():
    text = attacks.markdown(an_outcome()).splitlines()
    assert text[0] == "| Kind of attack | One 1.0 |"
    assert text[2:] == ["| double free (2) | 2 / 0 / 0 |", "| underflow (1) | 0 / 0 / 1 |",
                        "| all, warm heap (3) | 2 / 0 / 1 |", "| all, fresh heap (3) | 3 / 0 / 0 |"]
    console = tables.console()
    with console.capture() as shown:
        console.print(attacks.table(an_outcome(), each=True))
    assert "succeeded, stopped" in shown.get()


def test_the_programs_commit_what_they_list():
    micro.build()
    known = attacks.catalogue()
    assert len(known) == len({attack.name for attack in known}) >= 60
    glibc = types.SimpleNamespace(name="glibc", info=types.SimpleNamespace(label="glibc"),
                                  launch=lambda base: types.SimpleNamespace(env={}, preloaded=lambda: ""))
    chosen = attacks.choose(known, ["double_free_20000", "neighbours_1000", "calloc_that_overflows"])
    found = attacks.run(chosen, [glibc], 1, lambda text: None)
    words = {attack.name: found.words[attack, "glibc", "warm"] for attack in chosen}
    assert words["double_free_20000"] == words["calloc_that_overflows"] == "stopped"
    assert words["neighbours_1000"] in ("harmless", "succeeded")
