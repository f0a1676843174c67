# SPDX-License-Identifier: MIT
"""What users type and other tools print; which rows and peers take part; the ledger's words."""
import re
import types

import pytest
from hakmem_lab import (arms, cli, command_line, execute, health, instructions, ledger, micro, model, peers,
                        place, prepare,
                        rows, stats, syscalls, tables)
from hakmem_lab.errors import UsageError
from hakmem_lab.model import Verdict

# --- arms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, name, peer, options", [
    ("hakmem", "hakmem", "hakmem", ""), ("glibc", "glibc", "glibc", ""),
    ("hakmem+learn:0", "hakmem+learn:0", "hakmem", "learn:0"),
    ("learn:0,bin_bytes:32k", "hakmem+learn:0,bin_bytes:32k", "hakmem", "learn:0,bin_bytes:32k"),
    ("+force_libc", "hakmem+force_libc", "hakmem", "force_libc"),
    ("force_libc", "hakmem+force_libc", "hakmem", "force_libc"),
    ("hakmem@low-memory", "hakmem@low-memory", "hakmem", ""),
    ("@throughput+learn:0", "hakmem@throughput+learn:0", "hakmem", "learn:0")])
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
    assert cli.named("glibc,hakmem+learn:0,cache:1m, mimalloc") == [
        "glibc", "hakmem+learn:0,cache:1m", "mimalloc"]


@pytest.mark.parametrize("text, valid", [("hakmem@nosuch", "low-memory"), ("nosuch", "glibc"),
                                         ("hakmem+nosuch:1", "bin_bytes"), ("a b=x.so", "letters")])
def test_unknown_arms_name_the_valid_ones(text, valid):
    with pytest.raises(UsageError, match=valid):
        arms.parse(text, {})


@pytest.mark.parametrize("named, expected", [
    ([], [*peers.DEFAULT, "mine"]), (["glibc"], ["glibc", "mine"]),
    (["mine", "glibc"], ["mine", "glibc"]),
    (["mine+learn:0"], ["mine+learn:0"]), (["/y/libother.so"], ["other", "mine"]),
    (["/x.so"], ["x"])])
def test_a_library_joins_whatever_peers_are_named(named, expected):
    settings = prepare.Settings("run", "full", peers=named, libs={"mine": "/x.so"})
    prepare.chosen_rows(settings)
    assert [spec.name for spec in prepare._specs(settings)] == ["hakmem", *expected]


def test_help_names_every_command_in_whole_sentences(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        command_line.start(cli.app, "./hakmem lab", "lab", ["--help"])
    said = capsys.readouterr().out
    text = " ".join(said.split())
    assert "..." not in said.partition("Commands:")[2] and max(map(len, said.splitlines())) <= 80
    assert "GO, NEUTRAL or NO-GO: an idea against what is there, in one run, with an A/A pair." in text
    launcher = (place.ROOT / "hakmem").read_text()
    known = re.search(r'^hm_measures="(.*)"', launcher, re.M)[1].split()
    assert sorted(known) == sorted(one.name or one.callback.__name__ for one in cli.app.registered_commands)
    assert all(name in re.search(r"^  lab COMMAND .*?^  stats ", launcher, re.M | re.S)[0] for name in known)


# --- rows -----------------------------------------------------------------------------------------


def a_row(name, group="small", named=False):
    return rows.Row(model.RowInfo(name, group, name, "", "cpu", "ns/op"),
                    argv=("prog", "100*", "7"), named=named)


T1, T4 = a_row("larson/t1", "threads"), a_row("larson/t4", "threads")
DAY = a_row("day/60s", "memory", named=True)
NEWEST = rows.on_newest(T1)
KNOWN = [T1, T4, a_row("burst/1k"), NEWEST, a_row("day", "memory"), DAY]


@pytest.mark.parametrize("words, ids", [
    (["burst/1k", "larson/t1"], "burst/1k larson/t1"), (["larson"], "larson/t1 larson/t4"),
    (["*/t4"], "larson/t4"),
    (["threads", "larson/t1"], "larson/t1 larson/t4"),
    (["newest"], "larson/t1@newest"), (["*@newest"], "larson/t1@newest"),
    (["memory"], "day"), (["d*"], "day"), (["day"], "day"),
    (["day/60s"], "day/60s")])  # long ones: whole ids
def test_rows_are_chosen_by_name_pattern_workload_and_group(words, ids):
    assert sorted(row.id for row in rows.select(KNOWN, words)) == ids.split()


def test_rows_on_other_c_libraries():
    assert (NEWEST.id, NEWEST.info.group, NEWEST.base) == ("larson/t1@newest", "newest", "newest")
    assert rows.select([NEWEST], ["larson/t1"]) == rows.select([NEWEST], ["larson/*"]) == [NEWEST]
    assert rows.select([rows.on_musl(DAY)], ["day/60s"])[0].id == "day/60s@musl"
    assert DAY not in rows.select(KNOWN, []) and len(rows.select(KNOWN, [])) == 5
    with pytest.raises(UsageError, match="burst day larson"):
        rows.select(KNOWN, ["nosuch"])


def test_rows_on_musl_are_workloads_alone_and_have_peers_of_their_own():
    settings = prepare.Settings("run", "full", base="musl")
    chosen = prepare.chosen_rows(settings)
    assert {row.base for row in chosen} == {"musl"}
    assert not any(row.app or row.ideal for row in chosen)
    assert {"larson/t4@musl", "start_up@musl"} <= {row.id for row in chosen}
    assert [spec.name for spec in prepare._specs(settings)] == ["hakmem", *peers.MUSL]

    def arm(name, library):
        found = peers.Found(peers.catalogue()[name], library=library, label=name)
        return arms._arm(arms.Spec(name, name), found)
    musl = peers.Base("musl", "musl 1.2.3")
    assert "musl" not in arm("mimalloc", "/x.so").bases and "musl" in arm("hakmem", "/y.so").bases
    assert arm("musl", "").launch(musl).preloaded() == ""  # "libc.so.6" is glibc's
    assert arm("hakmem", "/y.so").launch(musl).preloaded() == "/y.so"


@pytest.mark.parametrize("tier, base, command",
                         [("full", "", "run"), ("quick", "", "run"), ("full", "newest", "run"),
                                                 ("quick", "", "ab"), ("full", "musl", "run")])
def test_long_rows_are_in_no_matrix(tier, base, command):
    chosen = prepare.chosen_rows(prepare.Settings(command, tier, peers=["glibc"], base=base))
    assert chosen and not any(row.named for row in chosen)


@pytest.mark.parametrize("named, seconds", [(True, execute.LONG_TIMEOUT), (False, execute.TIMEOUT)])
def test_long_rows_have_time(monkeypatch, named, seconds):
    asked = []

    def run_rig(argv, launch, how, *, env, timeout):
        asked.append(timeout)
        return execute.Ran({"timeout": True}, b"", b"")
    monkeypatch.setattr(execute, "run_rig", run_rig)
    found = execute.measure(a_row("x", named=named), types.SimpleNamespace(env={}, library=""))
    assert found.failure == f"no end after {seconds} s" and asked == [seconds]


def test_scale_changes_the_amount_of_work_only():
    assert a_row("x").arguments(0.5) == ["prog", "50", "7"]
    assert a_row("x").arguments(0.0001) == ["prog", "1", "7"]
    assert micro.scaled(a_row("x"), 4).arguments(1) == ["prog", "400", "7"]


def test_the_table_of_rows_is_sound():
    found = micro.catalogue()
    assert len({row.id for row in found}) == len(found) >= 30
    groups = {"small", "program", "threads", "realloc", "large", "cliff", "memory", "start", "latency"}
    for row in found:
        assert (micro.place.MICRO / f"{row.argv[0]}.c").is_file(), row.id
        assert row.info.group in groups, row.id
        assert any(word.endswith("*") for word in row.argv) or row.info.group in ("memory", "start"), row.id
    assert micro.newest() | micro.steady() <= {row.id for row in found}
    long = {row.id for row in found if row.named}
    assert {"survivors/10s", "day/60s"} <= long and not long & (micro.newest() | micro.steady())
    assert not any(row.quick for row in found if row.named)


# --- what tools print -----------------------------------------------------------------------------


def test_strace_and_callgrind_are_read():
    text = ("% time     seconds  usecs/call     calls    errors syscall\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            " 60.00    0.000300          30        10           mmap\n"
            " 40.00    0.000200          20        12         2 openat\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            "100.00    0.000500          22        22         2 total\n")
    assert syscalls.parse(text) == {"mmap": 10, "openat": 12} and syscalls.parse("") == {}
    text = "==1== Events    : Ir\n==1== Collected : 123456\n==2== Collected : 4\n"
    assert instructions.parse(text) == 123460 and instructions.parse("nothing") == 0


def test_counted_amounts_differ_however_small():
    assert instructions.amounts(a_row("x"), 0.01) == (["prog", "1", "7"], ["prog", "2", "7"])
    assert instructions.amounts(a_row("x"), 0.5) == (["prog", "50", "7"], ["prog", "100", "7"])


def test_as_much_is_counted_as_rare_events_need(monkeypatch):
    counts = {"few": 100_000, "some": 2_000_000, "many": 50_000_000}
    monkeypatch.setattr(instructions, "_run_once", lambda argv, arm: (counts[arm], 1) if arm in counts else None)
    found = {arm: instructions.enough(a_row("x"), arm) for arm in [*counts, "fails"]}
    assert found == {"few": 0.5, "some": pytest.approx(0.05), "many": 0.01, "fails": 0.01}
    assert instructions.enough(a_row("x"), "few", 0.02) == pytest.approx(0.01)  # of a shortened run


# --- the ledger -----------------------------------------------------------------------------------

SLOWER, SAME, FASTER = (Verdict(word, ratio, ratio, ratio, 9) for word, ratio in
                        (("worse", 1.05), ("no difference", 1.0), ("better", 0.95)))
SMALL = Verdict("better", 0.985, 0.975, 0.995, 10)


@pytest.mark.parametrize("time, count, noise, found", [
    (SLOWER, FASTER, 0, ("NO-GO", "time")), (FASTER, SLOWER, 0, ("GO", "time")),
    (SAME, SLOWER, 0, ("NO-GO", "instructions")), (SAME, SAME, 0, ("NEUTRAL", "time")),
    (SAME, None, 0, ("NEUTRAL", "time")), (SMALL, None, 0.005, ("GO", "time")),
    (SMALL, None, 0.025, ("NEUTRAL", "noisy")),  # an effect smaller than the noise is none
    (SMALL, SLOWER, 0.025, ("NO-GO", "instructions")),
    (Verdict("noisy", 2.3, 1.0, 2.4, 10), None, 0.01, ("NEUTRAL", "noisy")),
    (Verdict("noisy", 2.3, 1.0, 2.4, 10), SLOWER, 0.01, ("NO-GO", "instructions"))])
def test_time_decides_before_instructions(time, count, noise, found):
    assert ledger.decide(time, count, noise) == found


@pytest.mark.parametrize("twin, expected", [
    (Verdict("no difference", 0.977, 0.002, 552.1, 2), "NO-GO (instructions)"),
    # they agree by chance
    (Verdict("no difference", 0.999, 0.990, 1.010, 10), "GO (time)")])
def test_an_effect_within_the_interval_of_the_pair_is_none(twin, expected):
    cells = {name: model.Cell(name, twin.rounds, 10.0) for name in ("idea", "old")}
    cells["old"].against = Verdict("better", 0.858, 0.798, 0.922, twin.rounds)
    row = model.RowSummary(a_row("r").info, cells, again=twin, noise=0.03)
    run = model.RunSummary("i", "", "quick", {}, twin.rounds, 0.01, "idea", [], [row], [])
    assert ledger.lines(run, ["idea", "old"], {"r": [1014.4, 1000.0]})[0].texts[-1] == expected


@pytest.mark.parametrize("rows, word", [
    ([("GO", 0.97, 0.005), ("GO", 0.98, 0.005)], "GO"),
    ([("NEUTRAL", 0.997, 0.005), ("NEUTRAL", 1.002, 0.005)], "NEUTRAL"),
    ([("NO-GO", 1.02, 0.005), ("NO-GO", 1.01, 0.005)], "NO-GO"),
    ([("GO", 0.90, 0.005), ("NO-GO", 1.06, 0.005)], "NO-GO"),  # the loss is larger than the gain
    ([("GO", 0.80, 0.005), ("NO-GO", 1.06, 0.005)], "GO"),
    ([("NEUTRAL", 1.02, 0.03), ("NEUTRAL", 1.015, 0.04)], "NEUTRAL"),  # within what the rows stray
    ([("NEUTRAL", 0.97, 0.05), ("NEUTRAL", 1.0, 0.04)], "NEUTRAL"), ([], "–")])
def test_the_word_over_all_rows(rows, word):
    found = [(one, Verdict("", ratio, ratio - half, ratio + half, 10)) for one, ratio, half in rows]
    assert ledger.overall(found) == word


@pytest.mark.parametrize("count, word",
                         [(103.0, "worse"), (98.9, "better"), (100.5, "no difference")])
def test_the_word_over_exact_counts(count, word):
    verdict = ledger.count_verdict([count, 100.0])
    assert verdict.word == word and ledger.overall([("", verdict)]) == stats.LEDGER[word]


def test_ledger_table_is_replaced_not_doubled(tmp_path):
    entry = tmp_path / "0009-idea.md"
    entry.write_text("# Idea\n\nbefore\n")
    ledger.write(entry, "first\n")
    ledger.write(entry, "second\n")
    text = entry.read_text()
    assert "second" in text and "first" not in text and text.startswith("# Idea\n\nbefore\n")
    assert text.count(ledger.BEGIN) == text.count(ledger.END) == 1


# --- health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale, debug", [(1, 0.01), (0.005, 0.005)])
def test_health_gives_profile_debug_little_work(monkeypatch, scale, debug):
    amounts = {}

    def measure(row, launch, how):
        assert how.timeout == 600  # nothing is timed
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
    against = Verdict("worse", ratio, low, ratio + 0.02, 10)
    cells = {"hakmem": model.Cell("hakmem", 10, 10 * ratio, 7.9, 8.1, failure=failure),
             "glibc": model.Cell("glibc", 10, 10.0, 9.9, 10.1, against=against)}
    row = model.RowSummary(a_row("r").info, cells, noise=noise)
    return model.RunSummary("i", "", "full", {}, 10, 0.01, "hakmem", [], [row], [])


@pytest.mark.parametrize("now, said", [
    (a_run(0.81, 0.80), ""), (a_run(0.90, 0.88), "NO-GO"), (a_run(0.83, 0.82), "NO-GO"),
    (a_run(0.84, 0.82, noise=0.05), ""), (a_run(1.6, 1.5, noise=0.05), "NO-GO"),
    # noise raises the bar
    (a_run(0.8, 0.79, failure="signal 11 (SIGSEGV)"), "signal 11")])
def test_regression_against_a_committed_result(now, said):
    found = health.regression(now, a_run(0.8, 0.79))
    assert said in found[0] if said else found == []


def test_growth_and_numbers():
    assert not health.growth(2000, 4000) and not health.growth(100_000, 120_000)
    assert health.growth(100_000, 130_000)
    assert [tables.number(value) for value in (1234.5, 12.345, 0.01234, None, 0)] == [
        "1,234", "12.3", "0.0123", "–", "0"]
