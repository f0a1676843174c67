# SPDX-License-Identifier: MIT
"""Reads back from a dumped page what a person sees: tables and figures."""
from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Cells of the rows' tables, and texts in the figures."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.root: dict[str, str] = {}  # attributes of <html>
        self.cells: dict[tuple[str, str, str], dict[str, str]] = {}  # (row, arm, column) → text and value
        self.figures: dict[str, list[str]] = {}  # key → texts at points
        self.drawn = 0
        self.links: list[str] = []  # whatever the page could load or lead to
        self.title = ""
        self._row = self._arm = self._table = self._figure = ""
        self._cell: dict[str, str] | None = None
        self._in_title = self._in_points = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = {key: value or "" for key, value in attrs}
        classes = known.get("class", "").split()
        self.links += [known[key] for key in ("src", "href", "xlink:href", "action", "data") if key in known]
        if tag == "html":
            self.root = known
        elif tag == "article":
            self._row = known["data-row"]
        elif tag == "table":
            self._table = known.get("class", known.get("id", ""))
        elif tag == "tr":
            self._arm = known.get("data-arm", known.get("data-row", ""))
        elif tag == "td":
            column = known.get("data-column", "failure" if "failure" in classes else "")
            self._cell = {"text": "", "value": known.get("data-value", "")}
            self.cells[f"{self._table}:{self._row}", self._arm, column] = self._cell
        elif tag == "title":
            self._in_title = not self.title
        elif "data-figure" in known:
            self._figure = known["data-figure"]
            self.drawn += "js-plotly-plot" in classes
        elif "textpoint" in classes:
            self._in_points = True
        elif tag == "text" and self._in_points:
            self.figures.setdefault(self._figure, []).append(known["data-unformatted"])
            self._in_points = False

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = None
        elif tag == "title":
            self._in_title = False

    def handle_data(self, data):
        if self._cell is not None:
            self._cell["text"] += data
        if self._in_title:
            self.title += data
