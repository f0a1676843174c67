# SPDX-License-Identifier: MIT
"""What users type, and what other tools print."""
import types

import pytest
from hakmem_lab import arms, cli, health, instructions, ledger, micro, model, rows, stats, syscalls, tables
from hakmem_lab.errors import UsageError


@pytest.mark.parametrize("text, name, peer, options", [
    ("hakmem", "hakmem", "hakmem", ""),
    ("hakmem+learn:0", "hakmem+learn:0", "hakmem", "learn:0"),
    ("learn:0,bin_bytes:32k", "hakmem+learn:0,bin_bytes:32k", "hakmem", "learn:0,bin_bytes:32k"),
    ("+force_libc", "hakmem+force_libc", "hakmem", "force_libc"),
    ("force_libc", "hakmem+force_libc", "hakmem", "force_libc"),
    ("glibc", "glibc", "glibc", ""),
    ("hakmem@low-memory", "hakmem@low-memory", "hakmem", ""),
    ("@throughput+learn:0", "hakmem@throughput+learn:0", "hakmem", "learn:0"),
])
def test_arms(text, name, peer, options):
    spec = arms.parse(text, {})
    assert (spec.name, spec.peer, spec.options) == (name, peer, options)


def test_libraries_join():
    libs = {"mine": "somewhere/mine.so"}
    assert arms.parse("mine", libs).peer == "mine"
    assert arms.parse("build/old/libhak.so+learn:0", libs).name == "hak+learn:0"
    assert arms.parse("new=build/new.so", libs).peer == "new"
    assert libs == {"mine": "somewhere/mine.so", "hak": "build/old/libhak.so", "new": "build/new.so"}
    assert arms.parse("other/libhak.so", libs).peer == "hak-2"


def test_options_stay_with_their_arm():
    assert cli.named("glibc,hakmem+learn:0,outbox:1k,mimalloc") == ["glibc", "hakmem+learn:0,outbox:1k", "mimalloc"]
    assert cli.named("glibc, jemalloc") == ["glibc", "jemalloc"]


@pytest.mark.parametrize("text, valid", [("hakmem@nosuch", "low-memory"), ("nosuch", "glibc"),
                                         ("hakmem+nosuch:1", "bin_bytes"), ("a b=x.so", "letters")])
def test_unknown_arms_name_the_valid_ones(text, valid):
    with pytest.raises(UsageError, match=valid):
        arms.parse(text, {})


def a_row(name, group="small"):
    return rows.Row(model.RowInfo(name, group, name, "", "cpu", "ns/op"), argv=("prog", "100*", "7"))


def test_rows_are_chosen_by_name_pattern_workload_and_group():
    known = [a_row("larson/t1", "threads"), a_row("larson/t4", "threads"), a_row("burst/1k")]
    assert [row.id for row in rows.select(known, ["burst/1k", "larson/t1"])] == ["burst/1k", "larson/t1"]
    assert [row.id for row in rows.select(known, ["larson"])] == ["larson/t1", "larson/t4"]
    assert [row.id for row in rows.select(known, ["*/t4"])] == ["larson/t4"]
    assert [row.id for row in rows.select(known, ["threads", "larson/t1"])] == ["larson/t1", "larson/t4"]
    with pytest.raises(UsageError, match="burst larson"):
        rows.select(known, ["nosuch"])


def test_rows_on_the_newest_c_library_are_a_group_of_their_own():
    system, newest = a_row("larson/t1", "threads"), rows.on_newest(a_row("larson/t1", "threads"))
    assert (newest.id, newest.info.group, newest.base) == ("larson/t1@newest", "newest", "newest")
    assert rows.select([system, newest], ["larson"]) == [system]
    assert rows.select([system, newest], ["newest"]) == rows.select([system, newest], ["*@newest"]) == [newest]
    assert rows.select([newest], ["larson/t1"]) == rows.select([newest], ["larson/*"]) == [newest]


def test_scale_changes_the_amount_of_work_only():
    assert a_row("x").arguments(0.5) == ["prog", "50", "7"]
    assert a_row("x").arguments(0.0001) == ["prog", "1", "7"]
    assert micro.scaled(a_row("x"), 4).arguments(1) == ["prog", "400", "7"]


def test_the_table_of_rows_is_sound():
    found = micro.catalogue()
    assert len({row.id for row in found}) == len(found) >= 30
    for row in found:
        assert (micro.place.MICRO / f"{row.argv[0]}.c").is_file(), row.id
        groups = {"small", "program", "threads", "realloc", "large", "memory", "start", "latency"}
        assert row.info.group in groups, row.id
        assert any(word.endswith("*") for word in row.argv) or row.info.group in ("memory", "start"), row.id
    assert micro.newest() <= {row.id for row in found} and micro.steady() <= {row.id for row in found}


def test_strace_table():
    text = ("% time     seconds  usecs/call     calls    errors syscall\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            " 60.00    0.000300          30        10           mmap\n"
            " 40.00    0.000200          20        12         2 openat\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            "100.00    0.000500          22        22         2 total\n")
    assert syscalls.parse(text) == {"mmap": 10, "openat": 12}
    assert syscalls.parse("") == {}


def test_callgrind_count():
    assert instructions.parse("==1== Events    : Ir\n==1== Collected : 123456\n==2== Collected : 4\n") == 123460
    assert instructions.parse("nothing") == 0


def test_counted_amounts_differ_however_small():
    assert instructions.amounts(a_row("x"), 0.01) == (["prog", "1", "7"], ["prog", "2", "7"])
    assert instructions.amounts(a_row("x"), 0.5) == (["prog", "50", "7"], ["prog", "100", "7"])


def test_as_much_is_counted_as_rare_events_need(monkeypatch):
    counts = {"few": 100_000, "some": 2_000_000, "many": 50_000_000}
    monkeypatch.setattr(instructions, "_run_once", lambda argv, arm: (counts[arm], 1) if arm in counts else None)
    found = {arm: instructions.enough(a_row("x"), arm) for arm in [*counts, "fails"]}
    assert found == {"few": 0.5, "some": pytest.approx(0.05), "many": 0.01, "fails": 0.01}
    assert instructions.enough(a_row("x"), "few", 0.02) == pytest.approx(0.01)  # of the work of a shortened run


def test_count_verdicts():
    assert ledger.count_verdict([103.0, 100.0]).word == "worse"
    assert ledger.count_verdict([98.9, 100.0]).word == "better"
    assert ledger.count_verdict([100.5, 100.0]).word == "no difference"


def test_time_decides_before_instructions():
    slower, same, faster = (model.Verdict(word, ratio, ratio, ratio, 9) for word, ratio in
                            (("worse", 1.05), ("no difference", 1.0), ("better", 0.95)))
    assert ledger.decide(slower, faster) == ("NO-GO", "time")
    assert ledger.decide(faster, slower) == ("GO", "time")
    assert ledger.decide(same, slower) == ("NO-GO", "instructions")
    assert ledger.decide(same, same) == ("NEUTRAL", "time")
    assert ledger.decide(same, None) == ("NEUTRAL", "time")


def test_an_effect_smaller_than_the_noise_is_none():
    better = model.Verdict("better", 0.985, 0.975, 0.995, 10)
    assert ledger.decide(better, None, 0.025) == ("NEUTRAL", "noisy")
    assert ledger.decide(better, None, 0.005) == ("GO", "time")
    assert ledger.decide(better, model.Verdict("worse", 1.02), 0.025) == ("NO-GO", "instructions")


@pytest.mark.parametrize("twin, expected", [
    (model.Verdict("no difference", 0.977, 0.002, 552.1, 2), ("NO-GO", "instructions")),  # two rounds agree by chance
    (model.Verdict("no difference", 0.999, 0.990, 1.010, 10), ("GO", "time")),
])
def test_an_effect_within_the_interval_of_the_pair_is_none(twin, expected):
    cells = {name: model.Cell(name, twin.rounds, 10.0) for name in ("idea", "old")}
    cells["old"].against = model.Verdict("better", 0.858, 0.798, 0.922, twin.rounds)
    row = model.RowSummary(model.RowInfo("r", "small", "r", "", "cpu", "ns/op"), cells, again=twin, noise=0.03)
    run = model.RunSummary("i", "", "quick", {}, twin.rounds, 0.01, "idea", [], [row], [])
    line = ledger.lines(run, ["idea", "old"], {"r": [1014.4, 1000.0]})[0]
    assert line.texts[-1] == f"{expected[0]} ({expected[1]})"


@pytest.mark.parametrize("rows, word", [
    ([("GO", 0.97, 0.005), ("GO", 0.98, 0.005)], "GO"),
    ([("NEUTRAL", 0.997, 0.005), ("NEUTRAL", 1.002, 0.005)], "NEUTRAL"),
    ([("NO-GO", 1.02, 0.005), ("NO-GO", 1.01, 0.005)], "NO-GO"),
    ([("GO", 0.90, 0.005), ("NO-GO", 1.06, 0.005)], "NO-GO"),  # the loss is larger than the gain of 2.3 %
    ([("GO", 0.80, 0.005), ("NO-GO", 1.06, 0.005)], "GO"),
    ([("NEUTRAL", 1.02, 0.03), ("NEUTRAL", 1.015, 0.04)], "NEUTRAL"),  # the mean is within what the rows stray
    ([("NEUTRAL", 0.97, 0.05), ("NEUTRAL", 1.0, 0.04)], "NEUTRAL"), ([], "–")])
def test_the_word_over_all_rows(rows, word):
    found = [(one, model.Verdict("", ratio, ratio - half, ratio + half, 10)) for one, ratio, half in rows]
    assert ledger.overall(found) == word


def test_the_word_over_exact_counts():
    assert ledger.overall([("NO-GO", ledger.count_verdict([103.0, 100.0]))]) == "NO-GO"
    assert ledger.overall([("GO", ledger.count_verdict([97.0, 100.0]))]) == "GO"


def test_ledger_table_is_replaced_not_doubled(tmp_path):
    entry = tmp_path / "0009-idea.md"
    entry.write_text("# Idea\n\nbefore\n")
    ledger.write(entry, "first\n")
    ledger.write(entry, "second\n")
    text = entry.read_text()
    assert "second" in text and "first" not in text and text.startswith("# Idea\n\nbefore\n")
    assert text.count(ledger.BEGIN) == text.count(ledger.END) == 1


def test_growth_allows_slack_and_no_more():
    assert not health.growth(2000, 4000)
    assert not health.growth(100_000, 120_000)
    assert health.growth(100_000, 130_000)


@pytest.mark.parametrize("scale, debug", [(1, 0.01), (0.005, 0.005)])
def test_health_gives_profile_debug_little_work(monkeypatch, scale, debug):
    amounts = {}

    def measure(row, launch):
        amounts.setdefault(launch, []).append(row)
        return types.SimpleNamespace(failure="", check=row, fields={"hwm_kib": 1})
    monkeypatch.setattr(health, "measure", measure)
    monkeypatch.setattr(health.micro, "scaled", lambda row, amount: amount)
    monkeypatch.setattr(health.micro, "steady", set)
    monkeypatch.setattr(health.peers, "find_base", lambda name: name)
    monkeypatch.setattr(health.arms, "resolve", lambda specs, libs: [
        types.SimpleNamespace(name=specs[0].name, launch=lambda base: specs[0].name)])
    assert health.profiles([a_row("r")], scale, lambda text: None) == []
    assert amounts["hakmem@debug"] == [debug] and amounts["hakmem@balanced"] == [scale]
    assert set(amounts["glibc"]) == {scale, debug}  # each output is compared with one of the same work


def a_run(ratio, low, noise=0.0, failure=""):
    cell = model.Cell("glibc", 10, 10.0, 9.9, 10.1, against=model.Verdict("worse", ratio, low, ratio + 0.02, 10))
    mine = model.Cell("hakmem", 10, 10 * ratio, 7.9, 8.1, failure=failure)
    row = model.RowSummary(a_row("r").info, {"hakmem": mine, "glibc": cell}, noise=noise)
    return model.RunSummary("i", "", "full", {}, 10, 0.01, "hakmem", [], [row], [])


def test_regression_against_a_committed_result():
    then = a_run(0.8, 0.79)
    assert health.regression(a_run(0.81, 0.80), then) == []
    assert "NO-GO" in health.regression(a_run(0.90, 0.88), then)[0]
    assert "NO-GO" in health.regression(a_run(0.83, 0.82), then)[0]


def test_noise_raises_the_bar_and_does_not_take_it_away():
    assert health.regression(a_run(0.84, 0.82, noise=0.05), a_run(0.8, 0.79)) == []
    assert "NO-GO" in health.regression(a_run(1.6, 1.5, noise=0.05), a_run(0.8, 0.79))[0]


def test_a_failure_is_no_health():
    assert "signal 11" in health.regression(a_run(0.8, 0.79, failure="signal 11 (SIGSEGV)"), a_run(0.8, 0.79))[0]


@pytest.mark.parametrize("value, text", [(1234.5, "1,234"), (12.345, "12.3"), (0.01234, "0.0123"), (None, "–"),
                                         (0, "0")])
def test_numbers(value, text):
    assert tables.number(value) == text


def test_ledger_words():
    assert [stats.LEDGER[word] for word in ("better", "no difference", "worse")] == ["GO", "NEUTRAL", "NO-GO"]
