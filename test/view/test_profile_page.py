# SPDX-License-Identifier: MIT
"""The page of a profile: complete without its script, alone, and right with it, in a headless Chromium."""
import base64
import hashlib
import json
import re

import pytest
import synthetic
from synthetic import Load, Truth
from test_pages import CHROMIUM, Page

from hakmem_lab import browser
from hakmem_view import profile_page
from hakmem_view.profile_model import profile
from hakmem_view.profile_names import Named

STEPS = """<script>
function press(id) { const one = document.querySelector(id); one.checked = true; one.dispatchEvent(new Event("change")); }
const found = {}, graph = document.getElementById("graph"), said = () => document.getElementById("said").textContent;
const bars = () => Array.from(graph.querySelectorAll("g")).map((one) => [one.querySelector("title").textContent,
  Number(one.querySelector("rect").getAttribute("x")), Number(one.querySelector("rect").getAttribute("y")),
  Number(one.querySelector("rect").getAttribute("width"))]);
found.whole = bars();
found.wide = [document.documentElement.scrollWidth, window.innerWidth, graph.clientWidth];
found.table = [document.querySelector(".scroll:has(.sites)").scrollWidth, document.querySelector(".scroll:has(.sites)").clientWidth];
found.sizes = [document.querySelector(".scroll:has(.sizes)").scrollWidth, document.querySelector(".scroll:has(.sizes)").clientWidth];
press("#icicle"); found.icicle = bars();
document.querySelectorAll("input[name=kind]")[3].checked = true;
document.querySelectorAll("input[name=kind]")[3].dispatchEvent(new Event("change")); found.pinned = bars();
document.querySelectorAll("input[name=kind]")[0].checked = true;
document.querySelectorAll("input[name=kind]")[0].dispatchEvent(new Event("change"));
const difference = document.querySelectorAll("input[name=kind]")[6];
difference.checked = true; difference.dispatchEvent(new Event("change"));
found.difference = Array.from(graph.querySelectorAll("g")).map((one) => [one.querySelector("title").textContent, one.querySelector("rect").getAttribute("fill")]);
document.querySelectorAll("input[name=kind]")[0].checked = true;
document.querySelectorAll("input[name=kind]")[0].dispatchEvent(new Event("change"));
const search = document.getElementById("search");
search.value = "0x1300"; search.dispatchEvent(new Event("input"));
found.search = [said(), graph.querySelectorAll(".hit").length, document.querySelectorAll(".sites tbody tr:not([hidden])").length];
search.value = "("; search.dispatchEvent(new Event("input")); found.odd = graph.querySelectorAll("g").length;
search.value = ""; search.dispatchEvent(new Event("input"));
graph.querySelectorAll("g")[2].dispatchEvent(new Event("click")); found.zoom = bars(); found.said = said();
graph.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"})); found.back = bars().length;
graph.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"})); found.below = said();
document.querySelectorAll(".sites thead button")[2].click();
found.sorted = Array.from(document.querySelectorAll(".sites tbody tr")).map((row) => row.dataset.site);
document.body.replaceChildren(document.createElement("pre")); document.querySelector("pre").textContent = JSON.stringify(found);
</script>"""


def made(load: Load, seconds: int = 0, **more):
    document = synthetic.document(load, **more)
    document["time_ns"] += seconds * synthetic.SECOND
    return profile(document, "it")


def html(*shots) -> str:
    return profile_page.html(list(shots), Named(shots[-1], has_symbols=False), "process 4711 (program)", "inuse")


def check(text: str) -> Page:
    """Nothing is loaded, and only the script of ours may run."""
    page = Page(text)
    assert [one for one in page.loads if one != "script"] == [] and page.loads.count("script") == 2
    assert not re.search(r"@import|url\((?!#)", text)
    assert re.findall(r"https?://[^\s\"<]+", text.replace("http://www.w3.org/2000/svg", "")) == []
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text.replace("&#39;", "'")
    return page


def test_table_says_everything_without_the_script():
    found = made(synthetic.standard())
    text = html(found)
    check(text)
    assert text.count("data-site=") == 4 and "<b>program+0x1100</b>" in text
    assert "81 % is held by blocks of program+0x1100: 80.9 MiB ± 4.34 MiB in 20.7 k objects. They keep 9.00 MiB of free" in text
    for words in ("80.9 MiB <span class=\"error\">± 5 %", "21.7 MiB", "1.35 MiB/s", "The library counts 97.0 MiB", "3.0 s"):
        assert words in text, words
    assert "Growth over time" not in text


def test_growth_over_several_profiles():
    loads = [Load([Truth([0x1100], 4096, 2000 + 3000 * at), Truth([0x1200], 4096, 5000)]) for at in range(3)]
    text = html(*(made(load, 10 * at) for at, load in enumerate(loads)))
    check(text)
    assert "Growth over time" in text and ">20 s<" in text and "program+0x1100: 8.51 MiB → 33.0 MiB" in text
    assert re.findall(r'">([^<]*)</span>', text[text.index('class="scale"'):].split("</div>")[0]) == [
        "60.0 MiB", "50.0 MiB", "40.0 MiB", "30.0 MiB", "20.0 MiB", "10.0 MiB", "0"]
    assert "<span>0 s</span><span>5.0 s</span><span>10 s</span><span>15 s</span><span>20 s</span>" in text and "RSS of the process" not in text
    points = re.findall(r'<polyline points="([^"]+)" stroke', text)
    assert len(points) == 3 and [pair.split(",")[0] for pair in points[0].split()] == ["0.0", "500.0", "1000.0"]
    assert text.count('class="spark"') == 2 and re.search(r"\+2\d\.\d MiB <span class=\"error\">± ", text)


def test_growth_has_the_resident_memory_and_a_scale_that_holds_it():
    shots = [made(Load([Truth([0x1100], 4096, 2000 + 3000 * at)]), 10 * at) for at in range(3)]
    for at, shot in enumerate(shots):
        shot.rss = (400 + 10 * at) << 20
    text = html(*shots)
    check(text)
    assert "RSS of the process: 400 MiB → 420 MiB" in text and ">500 MiB<" in text
    points = re.search(r'<polyline class="rss" points="([^"]+)"', text)[1].split()
    assert [float(pair.split(",")[1]) for pair in points] == pytest.approx([98 - 96 * rss / 500 for rss in (400, 410, 420)], abs=0.1)
    shots[1].rss = None  # a stored profile of an older tool
    assert "RSS of the process" not in html(*shots)


@pytest.mark.parametrize("most, last", [(0, 4), (1, 4), (7, 8), (700, 800), (1024, 1024), (33 << 20, 40 << 20), (999 << 20, 1000 << 20),
                                        (1.2 * (1 << 30), 1.25 * (1 << 30)), (5 << 40, 5 << 40)])
def test_scales_are_round_and_hold_all(most, last):
    found = profile_page.scale(most)
    assert found[0] == 0 and found[-1] == last >= most and 2 <= len(found) <= 7


def test_nothing_from_outside_becomes_a_tag():
    load = synthetic.standard(path="/x/</script><img src=x onerror=alert(1)>")
    load.sites[0].label = "</script><script>alert(2)</script><!--"
    text = html(made(load))
    check(text)
    assert "<img" not in text and "alert(2)</script>" not in text


def test_page_of_many_sites_is_bounded():
    load = Load([Truth([0x100 + at, *range(0x5000, 0x5000 + at % 40)], 65536, at % 50 + 2) for at in range(8000)])
    text = html(made(load))
    assert len(text) < 4 << 20 and text.count("data-site=") == profile_page.MOST_ROWS and "more functions, " in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert len(data["sites"]) == profile_page.MOST_STACKS + 1
    assert sum(site["v"][0] for site in data["sites"]) == pytest.approx(made(load).estimate, rel=1e-6)


@pytest.fixture(scope="module", params=[1280, 480], ids=["wide", "narrow"])
def driven(request, tmp_path_factory):
    """What the page's own script did when its controls were used; the policy is that of the page without our steps."""
    if browser.find() is None:
        pytest.skip("no chromium is installed")
    before = synthetic.standard()
    before.sites[0].live, before.sites[1].live = 2000, 400_000  # of which one has grown since, one has shrunk, and one is gone
    before.sites.append(Truth([0x1500, 0x3100], 1 << 20, 5))
    text = html(made(before), made(synthetic.standard(), 10, seed=2), made(synthetic.standard(), 20, seed=1))
    text = re.sub(r"script-src [^\"]*", "script-src 'unsafe-inline'", text.replace("&#39;", "'")).replace("</body>", f"{STEPS}</body>")
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(text, encoding="utf-8")
    out = browser.dump(path, budget_ms=5000, width=request.param)
    assert "<pre>" in out, out[-3000:]
    import html as entities
    return json.loads(entities.unescape(re.search(r"<pre>(.*?)</pre>", out, re.S)[1]))


def width_of(bars, name: str) -> float:
    return sum(bar[3] for bar in bars if bar[0].startswith(name + ":"))


@CHROMIUM
def test_bars_are_as_wide_as_their_bytes(driven):
    whole = driven["whole"]
    assert len(whole) == 9 and whole[0][0] == "all: 100 MiB, 100.0 %"
    wide = width_of(whole, "all")
    assert width_of(whole, "program+0x3100") == pytest.approx(wide)
    assert width_of(whole, "program+0x1100") == pytest.approx(wide * 80.9 / 100.06, rel=0.01)
    assert width_of(whole, "cache") == pytest.approx(wide * 9.14 / 100.06, rel=0.02)
    assert max(bar[2] for bar in whole) == whole[0][2] > 0 and driven["icicle"][0][2] == 0
    assert driven["wide"][0] <= driven["wide"][1] and driven["wide"][2] > driven["wide"][1] * 0.8
    assert driven["table"][0] <= driven["table"][1], driven["table"]  # no column is cut off
    assert driven["sizes"][0] <= driven["sizes"][1], driven["sizes"]


@CHROMIUM
def test_kinds_search_zoom_keys_and_order(driven):
    assert [bar[0] for bar in driven["pinned"]] == ["all: 9.00 MiB, 100.0 %", "program+0x3100: 9.00 MiB, 100.0 %",
                                                    "program+0x2100: 9.00 MiB, 100.0 %", "program+0x1100: 9.00 MiB, 100.0 %"]
    assert driven["search"] == ["3.00 MiB (3.0 %) lies below functions that match.", 1, 1] and driven["odd"] == 9
    assert driven["zoom"][0][3] == driven["zoom"][2][3] and driven["said"].startswith("program+0x2100 in program: 87.9 MiB")
    assert driven["back"] == 9 and driven["below"].startswith("program+0x3100")
    assert driven["sorted"] == ["program+0x1200", "program+0x1400", "program+0x1100", "program+0x1300"]


@CHROMIUM
def test_script_runs_under_the_policy_of_the_page(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html(made(synthetic.standard())), encoding="utf-8")
    out = browser.dump(path, budget_ms=3000)
    assert "program+0x1100: 80.9 MiB, 80.9 %" in out
    path.write_text(html(made(synthetic.standard())).replace('"use strict";', '"use strict"; '), encoding="utf-8")
    assert "program+0x1100: 80.9 MiB, 80.9 %" not in browser.dump(path, budget_ms=3000)


@CHROMIUM
def test_difference_is_as_wide_as_the_larger_and_says_which(driven):
    """Red has grown, blue has shrunk, grey is as it was."""
    found = {title.partition(":")[0]: (title.partition(": ")[2], [int(one) for one in re.findall(r"\d+", fill)])
             for title, fill in driven["difference"]}
    assert "→ 80.9 MiB (+7" in found["program+0x1100"][0] and found["program+0x1100"][1][0] > found["program+0x1100"][1][2]
    assert "→ 7.00 MiB (−" in found["program+0x1200"][0] and found["program+0x1200"][1][0] < found["program+0x1200"][1][2]
    assert found["program+0x1500"][0] == "5.00 MiB → 0 B (−5.00 MiB)" and found["program+0x1500"][1] == [138, 180, 248]
    assert found["program+0x1300"] == ("3.00 MiB → 3.00 MiB (±0 B)", [226, 229, 235])
