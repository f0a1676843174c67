# SPDX-License-Identifier: MIT
"""The figures as PNG files.

Chromium draws them: one page with all figures, one start, and the pictures come back in the page's text. Plotly's own
way (kaleido) needs the same browser and takes seconds per figure.
"""
from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path

import plotly.graph_objects as go

from . import browser, embed, whole
from .errors import LabError
from .figures import all_figures
from .model import RunSummary
from .sheet import escape

WIDTH, SCALE, TITLE = 1000, 2, 36
PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>figures</title><body>
<script>{library}</script><script type="application/json" id="figures">{figures}</script>
<script>
(async () => {{
  const figures = JSON.parse(document.getElementById("figures").textContent);
  for (const [key, figure] of Object.entries(figures)) {{
    const at = document.createElement("pre");
    at.id = "png-" + key;
    at.className = "png";
    try {{
      const size = {{width: figure.layout.width, height: figure.layout.height, scale: {scale}, format: "png"}};
      at.textContent = await Plotly.toImage(figure, size);
    }} catch (error) {{
      at.textContent = "failed: " + error;
    }}
    document.body.append(at);
  }}
}})();
</script></body></html>
"""
FOUND = re.compile(r'<pre id="png-([\w-]+)" class="png">([^<]*)</pre>')


def _titled(figure: go.Figure) -> go.Figure:
    """A figure that stands alone: its own width, and its caption as title."""
    meta, margin = figure.layout.meta, figure.layout.margin
    top = TITLE + (margin.t if figure.layout.xaxis.side == "top" else 14)
    figure.update_layout(width=figure.layout.width or meta.get("width", WIDTH), margin_t=top,
                         height=figure.layout.height - margin.t + top,
                         title={"text": f"<b>{escape(meta['caption'])}</b>", "font": {"size": 16}, "x": 0, "y": 1,
                                "xref": "container", "yref": "container", "xanchor": "left", "yanchor": "top",
                                "pad": {"l": 14, "t": 14}})
    return figure


def _names(summary: RunSummary, keys: list[str]) -> dict[str, str]:
    """Of the files: rows by their id instead of their number."""
    names: dict[str, str] = {}
    for key in keys:
        kind, _, number = key.partition("-")
        name = key
        if number.isdigit():
            row = summary.rows[int(number)].row.id
            name = f"{kind}-" + (re.sub(r"[^\w.]+", "-", row, flags=re.A).strip("-")[:60] or number)
            if name in names.values():
                name += f"-{number}"
        names[key] = name
    return names


def _wanted(key: str) -> bool:
    return not re.fullmatch(r"scatter-\d+", key)


def write_pngs(summary: RunSummary, folder: Path) -> list[Path]:
    """heat-time.png, heat-peak.png, scatter.png, curve-ROW.png, latency-ROW.png: those there are data for.

    Raises LabError if no browser is there to draw them.
    """
    if browser.find() is None:
        raise LabError(browser.MISSING)
    figures = {key: _titled(figure) for key, figure in all_figures(summary).items() if _wanted(key)}
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as temporary:
        page = Path(temporary) / "figures.html"
        page.write_text(PAGE.format(library=embed.library(), figures=embed.figures_json(figures), scale=SCALE),
                        encoding="utf-8")
        drawn = dict(FOUND.findall(browser.dump(page, timeout=120 + 5 * len(figures), budget_ms=600_000)))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for key, name in _names(summary, list(figures)).items():
            head, _, data = drawn.get(key, "").partition("base64,")
            if head != "data:image/png;":
                raise LabError(f"the browser has not drawn {name}: {drawn.get(key) or 'nothing came back'}")
            path = folder / f"{name}.png"
            whole.write(path, base64.b64decode(data))
            written.append(path)
    except OSError as error:
        raise LabError(f"cannot write into {folder}: {error.strerror}") from error
    return written
