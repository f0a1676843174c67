# SPDX-License-Identifier: MIT
"""Profiles as numbers and as text: the model, differences, every order of the sites, sampling of a (fake) process."""
import json
import math

import jsonschema
import pytest
import synthetic
from conftest import ROOT, asked
from synthetic import Load, Truth

from hakmem_view import profile_report
from hakmem_view.profile_model import LIKELY, Profile, difference, profile
from hakmem_view.profile_names import Named, is_plumbing, short


def made(load: Load, seed: int = 1) -> Profile:
    return profile(synthetic.document(load, seed), "it")


def text(found: Profile, mode: str = "inuse", before=None, most: int = 20, width: int = 80) -> str:
    named = Named(found, has_symbols=False)
    return "\n".join(profile_report.lines(profile_report.make(named, "it", mode, before, most), width))


def test_estimates_are_unbiased_and_within_their_error():
    """95 of 100, by what the tool prints: of the site, and of the whole."""
    load = Load([Truth([0x1100], 200, 30_000), Truth([0x1200], 5000, 300), Truth([0x1300], 300_000, 10)])
    within, sums, runs = 0, 0.0, 300
    for seed in range(runs):
        found = made(load, seed)
        sums += found.sites[0].inuse.bytes
        within += abs(found.sites[0].inuse.bytes - load.sites[0].bytes) <= found.sites[0].error
        assert abs(found.sites[0].inuse.variance - found.sites[0].variance) <= 1e-6 * found.sites[0].variance
    assert abs(sums / runs / load.sites[0].bytes - 1) < 0.02
    assert 0.90 * runs < within < 0.99 * runs


def test_relative_error_is_the_root_of_rate_over_bytes():
    load = Load([Truth([0x1100], 64, 2_000_000)])
    site = made(load).sites[0]
    assert site.error / site.inuse.bytes == pytest.approx(LIKELY * math.sqrt(load.rate / load.bytes), rel=0.05)
    document = synthetic.document(synthetic.standard())  # the standard deviations make the sum's
    document.pop("estimate")
    found = profile(document, "it")
    assert found.estimate == pytest.approx(sum(site["inuse"]["bytes"] for site in document["sites"]))
    assert found.sigma == pytest.approx(math.sqrt(sum(site["variance"] for site in document["sites"])))


def test_synthetic_profiles_are_what_the_library_promises():
    load = synthetic.standard()
    load.sites[3].label = "0x5555"  # ours may be any text
    schema = json.loads((ROOT / "docs/schema/profile.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(synthetic.document(load), schema)


def test_head_says_whose_how_good_and_what_is_missing():
    found = made(synthetic.standard())
    said = text(found, width=200)
    assert said.startswith("it: 100 MiB ± 4.76 MiB in use at 4 sites; one sample per 64.0 KiB for 1 min 00 s\n")
    assert "The library counts 97.0 MiB; the estimate is 3.2 % above.\n" in said
    found.is_whole = False
    assert "counts 97.0 MiB; blocks allocated before sampling began are not in the profile.\n" in text(found, width=200)
    found.samples["dropped"], found.is_on = 9, False
    assert "9 samples found no room and are missing: raise profile_bytes or the rate." in text(found, width=200)
    assert "one sample per 64.0 KiB, begun 1 min 00 s before, sampling is off now\n" in text(found, width=200)
    some = made(Load([Truth([0x1100], 4096, 9000), Truth([0x1200], 4096, 0, freed=9000)]))
    assert " in use at 1 site;" in text(some, width=200)
    found.sites, found.rate = [], 0
    assert text(found, width=200).startswith("it: no profile, as sampling is off\n\nNothing was sampled")


def few(samples: int) -> Profile:
    """A site of so many samples of 64 bytes, each of which stands for 64 KiB."""
    document = synthetic.document(Load([Truth([0x1100], 64, 2048)]))
    document["sites"][0].update(variance=samples << 32, inuse={"samples": samples, "objects": 1024 * samples, "bytes": samples << 16,
                                                              "raw_bytes": 64 * samples})
    document["samples"].update(live=samples)
    document["estimate"] = {"live_bytes": samples << 16, "sigma_bytes": round(math.sqrt(samples)) << 16}
    return profile(document, "it")


def test_error_as_large_as_the_estimate_is_said_by_the_number_of_samples():
    said = text(few(1))
    assert said.startswith("it: 64.0 KiB (1 sample) in use at 1 site;") and "64.0 KiB  1 sample  " in said
    assert "too little for one sample per 64.0 KiB; a smaller --rate takes more." in " ".join(said.split())
    assert "1 to 3 samples: the truth may be none" in " ".join(said.split()) and "196 %" not in said
    assert "192 KiB (3 samples) in use" in text(few(3)) and "192 KiB  3 samples  " in text(few(3))
    said = text(few(16))
    assert "1.00 MiB ± 502 KiB in use" in said and "  49 %  " in said and "1 to 3 samples" not in said
    assert text(few(0)).startswith("it: nothing sampled is in use at 1 site;")
    one = few(1).sites[0]
    assert profile_report.error_words(one.inuse, one.error) == "(1 sample)"
    assert profile_report.with_error(one.inuse, one.error, False) == "64.0 KiB (1 sample)"


def test_sites_are_ordered_by_what_is_asked_for():
    found = made(synthetic.standard())
    for mode in ("inuse", "alloc", "peak", "pinned", "leaks"):
        rows = [line for line in text(found, mode).splitlines() if line.startswith("    ")]
        assert rows[0].strip().startswith("program+0x1100  < "), mode
    assert "9.00 MiB" in text(found, "pinned") and text(found, "pinned").count("    program") == 1
    threads = [line.split()[0] for line in text(found, "threads").splitlines()
               if line.strip()[:2] == "47"]
    assert threads == ["4712", "4712", "4712", "4713"]
    assert "3.0 s" in text(found, "lifetimes") and "Still live" in text(found, "lifetimes")
    assert "Temporary" in text(found, "lifetimes") and "25 %" in text(found, "lifetimes")
    assert "    program+0x1400 (cache)  < program+0x3100" in text(found)
    said = text(found, most=1)
    assert said.count("    program") == 1 and "3 more functions, 19.1 MiB together" in said
    assert text(made(Load([]))).endswith("Nothing was sampled so far: wait longer (--seconds), or sample more (--rate 64k).")


def test_difference_of_two_runs_knows_a_site_again_where_it_was_loaded_elsewhere():
    old = made(Load([Truth([0x1100, 0x3100], 4096, 1000), Truth([0x1200], 4096, 5000), Truth([0x1500], 4096, 3000)]))
    new = made(Load([Truth([0x1100, 0x3100], 4096, 9000), Truth([0x1200], 4096, 5000), Truth([0x1600], 4096, 2000)],
                    begin=0x7f0000000000), seed=2)
    grown = {new.place(one.site.stack[0])[1]: one for one in difference(old, new)}
    assert list(grown) == [0x1100, 0x1600, 0x1200, 0x1500]
    assert grown[0x1100].bytes == pytest.approx(8000 * 4096, abs=2 * grown[0x1100].error) and grown[0x1100].is_certain
    assert not grown[0x1200].is_certain
    assert grown[0x1500].bytes == pytest.approx(-3000 * 4096, rel=0.2)
    assert grown[0x1200].error == pytest.approx(math.hypot(new.sites[1].error, old.sites[1].error))
    said = text(new, "diff", old)
    assert "Functions by growth" in said and "program+0x1500" in said and "+" in said


def test_labels_are_places_of_the_program_or_numbers_of_types():
    found = made(synthetic.standard())
    for label, said in (("0x555500000200", "program+0x1400 (site "), ("0x1234abcd", "program+0x1400 (type 0x1234abcd)")):
        found.sites[3].label = label
        assert said in text(found)
    assert Named(found, has_symbols=False).stack(found.sites[3])[0][0].function == "type 0x1234abcd"


@pytest.mark.parametrize("name, called, passes_on", [
    ("void foo<int, std::string>(std::vector<int> const&)", "foo", False),
    ("operator new(unsigned long)", "operator new", True),
    ("void* operator new[](unsigned long)", "operator new[]", True),
    ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back", True),
    ("(anonymous namespace)::Cache::put(int)", "(anonymous namespace)::Cache::put", False),
    ("Foo::operator()(int) const", "Foo::operator()", False), ("bool operator< <int>(A<int>, B)", "operator<", False),
    ("leaky::leak::h0123456789abcdef", "leaky::leak", False),
    ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push", True),
    ("<leaky::Foo as core::clone::Clone>::clone",) * 2 + (False,),
    ("<alloc::vec::Vec<T> as X>::f",) * 2 + (True,),
    ("main::{{closure}}",) * 2 + (False,), ("libx.so+0x123",) * 2 + (False,),
    ("malloc@plt",) * 2 + (True,),
    ("ztrymalloc_usable_internal.constprop.0", "ztrymalloc_usable_internal", True),
    ("_PyMem_RawMalloc",) * 2 + (True,), ("Perl_safesysmalloc",) * 2 + (True,), ("alloc_cache(int)", "alloc_cache", False),
    ("Shop.open.<locals>.inner.<locals>.<genexpr>",) * 2 + (False,), ("<lambda>",) * 2 + (False,)])
def test_names_are_short_and_allocators_are_passed_over(name, called, passes_on):
    assert short(name) == called and is_plumbing(name) == passes_on


# --- a process ------------------------------------------------------------------------------------


def test_sampling_is_switched_on_and_off_again(program, view):
    one = program()
    done = view("profile", "--seconds", "0.1", one.pid)
    assert (done.returncode, done.stderr) == (0, "") and asked(one) == ["524288", "0"]
    assert f"process {one.pid} (program)" in done.stdout and "program+0x1100  < program+0x2100" in done.stdout
    done = view("profile", "--seconds", "0.1", "--rate", "64k", "--keep", one.pid)
    assert asked(one)[2:] == ["65536"] and done.stderr == "hakmem: sampling goes on; --stop ends it\n"
    assert view("profile", "--seconds", "0.1", one.pid).returncode == 0 and asked(one)[3:] == []
    done = view("profile", "--stop", one.pid)
    assert (done.stdout, asked(one)[3:]) == ("", ["0"]) and "samples no more" in done.stderr


@pytest.mark.parametrize("option",
                         ["--alloc", "--peak", "--pinned", "--lifetimes", "--leaks", "--per-thread",
                          "--inuse"])
@pytest.mark.parametrize("width", [60, 80, 130])
def test_tables_fit_the_terminal(program, view, option, width):
    one = program("on")
    done = view("profile", "--seconds", "0.1", *[option] * (option != "--inuse"), one.pid,
                width=width)
    assert (done.returncode, done.stderr) == (0, "") and "program+0x1100" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= max(width, 74)
    assert asked(one) == []  # sampling that was on stays on
    if option == "--leaks":  # what grows while we look
        row = next(line for line in done.stdout.splitlines() if "+" in line and "MiB" in line)
        assert "100 %" in row and "Growth is that of 3.0 s" in done.stdout


def test_a_file_of_a_dash_is_standard_output(program, view):
    done = view("profile", "--seconds", "0", "--json", "-", program("on").pid)
    assert json.loads(done.stdout)["profile"] == 1 and done.stderr == ""


def test_difference_to_a_stored_profile(program, view, tmp_path):
    one, old = program("on"), tmp_path / "old.json"
    done = view("profile", "--seconds", "0", "--json", old, one.pid)
    assert done.stdout == "" and done.stderr.startswith(f"hakmem: {old}: ")
    done = view("profile", "--seconds", "0", "--diff", old, one.pid)
    assert done.returncode == 0 and "Functions by growth" in done.stdout
    both = view("profile", "--diff", old, old)
    assert both.returncode == 0 and "No site has grown or shrunk." in both.stdout


def test_stored_profile_may_lack_almost_everything(view, tmp_path):
    sites = [{"stack": []}, {"stack": ["0x0", "0xffffffffffffffff"], "inuse": {"bytes": 5}}]
    (tmp_path / "p.json").write_text(json.dumps({"profile": 1, "sites": sites}), encoding="utf-8")
    files = ("pprof", "otlp", "html", "heap-v2", "collapsed", "speedscope")
    for words in ([], ["--peak"], ["--per-thread"], ["--lifetimes"],
                  *([f"--{one}", tmp_path / one] for one in files)):
        done = view("profile", *words, tmp_path / "p.json")
        assert done.returncode == 0, (words, done)


def test_what_a_process_says_of_itself(program, view, tmp_path):
    """Samples that found no room are told; nothing moves the terminal's cursor."""
    done = view("profile", "--seconds", "0", program("drops").pid)
    assert "7 samples found no room and are missing: raise profile_bytes" in done.stdout
    one = program("evil").pid
    done = view("profile", "--seconds", "0", "--collapsed", tmp_path / "c", one)
    shown = view("profile", "--seconds", "0", one)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + shown.stdout + (tmp_path / "c").read_text()


# --- what figures refer to ------------------------------------------------------------------------


def rates(found: Profile, since=None) -> list[str]:
    """Of the sites, in their order."""
    report = profile_report.make(Named(found, has_symbols=False), "it", since=since)
    return [row.cells[report.columns.index("Alloc")] for row in report.rows]


def test_rates_are_of_the_time_that_it_sampled():
    """Sampling that was off for a while: nobody knows how long it was on, so there is no rate since its start."""
    load = Load([Truth([0x1100], 4096, 0, freed=60 * 25_600)])  # 100 MiB a second for 60 s
    found = made(load)
    site = found.sites[0]
    site.inuse.bytes = 1.0
    assert rates(found)[0].startswith(("99", "100", "101"))
    found.is_whole = False
    assert rates(found) == [profile_report.NONE]
    before = made(load)
    before.time, before.sites[0].alloc.bytes = found.time - 10, site.alloc.bytes - (1000 << 20)
    assert rates(found, before) == ["100 MiB/s"]
    before.is_on = False  # between the two it was not on all the time
    assert rates(found, before) == [profile_report.NONE]


def test_difference_to_another_run_has_no_rate_of_the_time_between():
    old, new = made(Load([Truth([0x1100], 4096, 10_000)])), made(Load([Truth([0x1100], 4096, 30_000)]), seed=2)
    old.time, old.pid = new.time - 10, 1

    def rate() -> str:
        report = profile_report.make(Named(new, has_symbols=False), "it", "diff", old)
        return report.rows[0].cells[report.columns.index("Alloc")]
    assert rate().startswith(("1.9", "2.0"))  # 117 MiB since its start, a minute ago
    old.pid = new.pid
    assert rate().startswith(("7.", "8."))  # 78 MiB in the ten seconds between
    new.is_whole = False
    assert rate() == profile_report.NONE


def test_growth_that_no_site_has_is_told():
    """The library counts all of it, also while sampling was off."""
    old = made(Load([Truth([0x1100], 4096, 10_000)]))
    new = made(Load([Truth([0x1100], 4096, 10_000)]))
    new.exact_bytes += 200 << 20
    said = text(new, "diff", old, width=200)
    assert "The library counts 200 MiB more in use, of which 200 MiB are at no site: they were allocated while sampling was off" in said
    assert "more in use" not in text(made(Load([Truth([0x1100], 4096, 20_000)])), "diff", old, width=200)


def test_no_block_lives_longer_than_sampling():
    found = made(synthetic.standard(seconds=2))
    assert max(site.lifetimes.p99 for site in found.sites) == 2_000_000_000


def test_threads_that_are_not_listed_are_one_row():
    document = synthetic.document(Load([Truth([0x1100], 4096, 10_000)]))
    site = document["sites"][0]
    site["threads"] = [{"tid": 4712, "bytes": site["inuse"]["bytes"] // 4}]
    lines_of = text(profile(document, "it"), "threads").splitlines()
    assert [line.split()[0] for line in lines_of if "MiB" in line and line.startswith((" ", "o"))][-1] == "others"
    assert [line.split()[0] for line in lines_of if line.strip().startswith("4712")] == ["4712"]


def test_columns_are_explained():
    said = " ".join(text(made(synthetic.standard())).split())
    assert "Pinned: free memory that their blocks keep resident" in said and "With calls: of it and all" in said
    assert "p50: half of the freed blocks" in " ".join(text(made(synthetic.standard()), "lifetimes").split())
    assert "Kept: share of what was allocated" in " ".join(text(made(synthetic.standard()), "leaks").split())
