# SPDX-License-Identifier: MIT
"""What of a run is committed: the CSV file, and the tables and the picture that are made from it."""
import copy
import dataclasses
import math
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import fake
import pytest
from hakmem_lab import place, publish, results
from hakmem_lab.errors import LabError
from hakmem_lab.means import means
from hakmem_lab.model import Cell

TEXT = f"# title\n\nbefore\n\n{publish.BEGIN}\nold\n{publish.END}\n\nafter\n"


def pages(tree: Path) -> tuple[Path, Path]:
    """README and the page of results, with markers."""
    found = tree / "README.md", tree / "bench" / "results" / "README.md"
    for path in found:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT, encoding="utf-8")
    return found


@pytest.fixture
def summary():
    return fake.summary()


@pytest.fixture
def tree(tmp_path, summary):
    """A small repository: two pages with markers, and the run's CSV file."""
    pages(tmp_path)
    publish.write_csv(summary, tmp_path / "bench" / "results")
    return tmp_path


def csv_of(tree: Path) -> Path:
    return publish.newest_csv(tree / "bench" / "results")


def write(tree: Path) -> tuple[str, str, str]:
    """README, the page of results, the picture."""
    paths = tree / "README.md", tree / "bench" / "results" / "README.md", tree / "docs" / "lab.svg"
    publish.write_pages(csv_of(tree), *paths)
    return tuple(path.read_text(encoding="utf-8") for path in paths)


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def same(a, b) -> bool:
    """Equal, numbers to six digits; NaN equals NaN."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isnan(a) and math.isnan(b) or a == pytest.approx(b, rel=1e-5)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


# --- CSV ------------------------------------------------------------------------------------------

def test_csv_round_trip(summary, tmp_path):
    path = publish.write_csv(summary, tmp_path / "results")
    assert path.name == "0.1.0-x86_64-amd-epyc-7b13-2cpu.csv"
    found = publish.read_csv(path)
    expected = copy.deepcopy(summary)
    expected.latency = []
    for arm in expected.arms:
        arm.library = ""
    for row in expected.rows:
        row.row.text = row.row.program = ""
        row.row.threads = 1
        for cell in row.cells.values():
            cell.curve, cell.spread = [], None
        subject = row.cells["hakmem"]
        assert row.again is not None and subject.against is None
    for ours, theirs in zip(expected.rows, found.rows):
        theirs.noise = ours.noise
        for cell in (*ours.cells.values(), *theirs.cells.values()):
            if cell.against:
                cell.against.rounds = 0
    assert same(dataclasses.asdict(expected), dataclasses.asdict(found))


def test_csv_tells_nothing_of_this_machine(summary, tmp_path):
    summary.arms[2].library = str(place.ROOT / "build" / "libx.so")
    summary.arms[3].skip = f"no {place.ROOT}/build/lab/peers/x.so and /usr/lib/y.so: https://host.example/simple " \
                           "failed (cannot connect to packages.example.org:443)\nsecond line"
    text = publish.write_csv(summary, tmp_path).read_text(encoding="utf-8")
    assert str(place.ROOT) not in text and "example" not in text and "/usr/lib" not in text
    assert "no build/lab/peers/x.so and …/y.so: (an address) failed (cannot connect to (an address) second" in text


def test_csv_numbers_are_plain():
    assert [results.text_of(value) for value in (12345678.0, 0.000012345, 1.0, 0.0, None, math.nan)] == \
        ["12345700", "0.000012345", "1", "0", "", ""]


@pytest.mark.parametrize("change, words", [
    (lambda run: setattr(run, "complete", False), "not complete"), (lambda run: run.rows.clear(), "not complete"),
    (lambda run: setattr(run, "tier", "own"), "of your own"),
    (lambda run: setattr(run.arms[0], "version", ""), "no version"),
    (lambda run: run.machine.pop("processor"), "on which machine"),
])
def test_unfit_runs_are_not_published(summary, tmp_path, change, words):
    change(summary)
    with pytest.raises(LabError, match=words):
        publish.write_csv(summary, tmp_path)


@pytest.mark.parametrize("damage", [
    lambda text: "", lambda text: text.replace("row,group,title", "row,title"),
    lambda text: text.replace("# subject", "# x"), lambda text: text.replace(",ns/op,", ",ns/op,many"),
    lambda text: text.rsplit(",", 30)[0],
])
def test_damaged_file_gives_one_line(tree, damage):
    path = csv_of(tree)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(LabError, match="no results file") as error:
        publish.read_csv(path)
    assert "\n" not in str(error.value)


def test_newest_is_the_run_that_began_last(tree, summary):
    summary.started, summary.arms[0].version = "2026-07-01 10:00", "0.0.9"
    later = publish.write_csv(summary, tree / "bench" / "results")
    assert csv_of(tree) == later
    with pytest.raises(LabError, match="no results file"):
        publish.newest_csv(tree / "docs")


# --- pages ----------------------------------------------------------------------------------------

def test_pages_are_made_between_the_markers_only(tree):
    readme, page, picture = write(tree)
    for text in (readme, page):
        assert text.startswith("# title\n\nbefore\n\n" + publish.BEGIN)
        assert text.endswith(publish.END + "\n\nafter\n") and "\nold\n" not in text
    assert "](docs/lab.svg)" in readme and "](bench/results/README.md)" in readme
    assert "](0.1.0-x86_64-amd-epyc-7b13-2cpu.csv)" in page
    assert write(tree) == (readme, page, picture)


def test_readme_table_shows_three_columns_of_a_few(tree, summary):
    table, found = rows_of(write(tree)[0]), means(publish.read_csv(csv_of(tree)))
    assert [head.strip() for head in table[0].strip("|").split("|")] == \
        ["Allocator", "Time, 8 rows", "Peak memory, 8 rows", "Real programs (2): time / peak memory"]
    shown = [line.replace("*", "").split("|")[1].strip() for line in table[2:]]
    assert shown[0] == "hakmem 0.1.0" and 4 <= len(shown) <= 6
    assert all(name.startswith(("hakmem", "Google tcmalloc", *publish.SHORT)) for name in shown)
    mine, mean = next(line for line in table if "**hakmem 0.1.0**" in line).split("|")[2:4], found.of("hakmem")
    assert [float(word) for word in mine] == pytest.approx([mean.time, mean.peak], abs=0.0051)


def test_page_table_shows_the_means(tree, summary):
    _, text, _ = write(tree)
    table = rows_of(text)
    found = means(publish.read_csv(csv_of(tree)))
    assert len(table) == 2 + 7 and found.rows == 11  # the user's own program is not in it
    assert found.common == 8  # not those where jemalloc, tcmalloc or scudo has no time
    heads = [head.strip() for head in table[0].strip("|").split("|")]
    assert heads[1:] == ["overall (8 of 11)", "small blocks (3)", "threads (2)", "realloc (1)", "large blocks (1)",
                         "memory (1)", "start (1)", "real programs (2)"]
    mine = next(line for line in table if "**hakmem 0.1.0**" in line).replace("*", "").split("|")[2:-1]
    for cell, group in zip(mine, ["", *[key for key, _, _ in found.groups]]):
        assert [float(word) for word in cell.split("/")] == pytest.approx(
            [found.of("hakmem", group).time, found.of("hakmem", group).peak], abs=0.0051)
    times = [row.cells["hakmem"].time_ratio for row in summary.rows[:11]
             if row.row.id not in ("larson/t4", "start/true", "large/1m")]
    assert found.of("hakmem").time == pytest.approx(math.prod(times) ** (1 / 8), rel=1e-5)
    assert any("jemalloc" in line and "✕1" in line for line in table)
    assert any("tcmalloc" in line and "(10 of 11 rows)" in line for line in table)
    assert "snmalloc 0.7.1 (cannot be built" in text and "<script" not in text
    assert "Rows left out: app/z3 (missing z3 " in text


def test_means_over_all_rows_are_over_the_same_rows(summary):
    """Failing on the worst rows is no gain; failing on most takes no row from the others, and gives no mean."""
    rows = [row for row in summary.rows if row.row.group == "small"] * 4  # 12
    for at, row in enumerate(rows):
        rows[at] = dataclasses.replace(row, row=dataclasses.replace(row.row, id=f"row/{at}"), cells=dict(row.cells))
        if at < 2:
            rows[at].cells["glibc"] = Cell("glibc", failure="signal 6 (SIGABRT)")
        if at < 4:
            del rows[at].cells["scudo"]
    found = means(dataclasses.replace(summary, rows=rows))
    assert found.rows == 12 and found.common == 10
    assert math.isnan(found.of("scudo").time) and found.of("scudo").rows == 8
    assert found.of("glibc").failures == 2 and not math.isnan(found.of("glibc").time)
    apart = dataclasses.replace(rows[0], row=dataclasses.replace(rows[0].row, group="newest"))
    assert means(dataclasses.replace(summary, rows=[*rows, apart])).of("hakmem") == found.of("hakmem")
    assert means(dataclasses.replace(summary, rows=[apart])).rows == 1  # `--base newest`: there is nothing else


@pytest.mark.parametrize("text, words", [
    ("nothing\n", "exactly once; it has it 0 times"), (TEXT + publish.BEGIN, "has it 2 times"),
    (f"{publish.BEGIN}\n", "lab: end"), (f"{publish.END}\n{publish.BEGIN}\n", "before"),
])
def test_wrong_markers_are_refused(tree, text, words):
    for path in pages(tree):
        pages(tree)
        path.write_text(text, encoding="utf-8")
        with pytest.raises(LabError, match=words):
            write(tree)
        assert path.read_text(encoding="utf-8") == text and not (tree / "docs").exists()


# --- picture --------------------------------------------------------------------------------------

def test_picture_is_small_and_well_formed(tree):
    *_, picture = write(tree)
    root = ElementTree.fromstring(picture)
    assert root.get("width") == "900" and len(picture) < 150_000 and picture.endswith("</svg>\n")
    texts = ["".join(element.itertext()) for element in root.findall(".//{*}text")]
    assert "hakmem 0.1.0" in texts and "jemalloc 5.3.0" in texts and texts[texts.index("small blocks") + 1] == "1.01"
    assert all(float(element.get("font-size", "12")) >= 12 for element in root.findall(".//{*}text"))
    sources = picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in sources and "nan" not in picture


# --- this repository ------------------------------------------------------------------------------

PAGES = (publish.README, publish.RESULTS_PAGE, publish.PICTURE)


def test_pages_of_the_tree_match_its_newest_results(tmp_path):
    if not any(place.RESULTS.glob("*.csv")):
        pytest.skip("no results are published yet")
    for path in (*PAGES, publish.newest_csv()):
        copied = tmp_path / path.relative_to(place.ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
    write(tmp_path)
    for path in PAGES:
        assert (tmp_path / path.relative_to(place.ROOT)).read_bytes() == path.read_bytes(), \
            f"{path.name} is not what {publish.newest_csv().name} gives: make it anew"


def test_claims_of_the_readme_are_what_its_newest_results_say():
    found, text = means(publish.read_csv(publish.newest_csv())), publish.README.read_text(encoding="utf-8")
    second, text = next(arm for arm in found.arms if arm.name != "hakmem"), " ".join(text.replace(" %", "%").split())
    mine, theirs, glibc = [found.of(arm) for arm in ("hakmem", second.name, "glibc")]
    ours, other, libc = [found.of(arm, "app") for arm in ("hakmem", second.name, "glibc")]
    ahead = 1 - ours.time / other.time
    level = f"{abs(ahead):.0%} {'less' if ahead > 0 else 'more'} time" if abs(ahead) >= 0.015 else "the two are level"
    for claim in (f"{1 - mine.time / theirs.time:.0%} less time than {second.label}", f"over {found.common} rows",
                  f"{mine.peak / theirs.peak:.0%} of {second.label}'s peak", f"on the real programs alone {level}",
                  f"{mine.peak / glibc.peak - 1:.0%} more than glibc; on the real programs {ours.peak / libc.peak - 1:.0%}"):
        assert claim in text
