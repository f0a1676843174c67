# SPDX-License-Identifier: MIT
"""Pages that need nothing but themselves: templates with inline style and SVG, no script, no address to load from.

Everything from outside is escaped by jinja2.
"""
from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

from hakmem_lab import browser

from . import colours
from .errors import ViewError

TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(name: str, **values) -> str:
    try:
        import jinja2
        import markupsafe
    except ModuleNotFoundError as error:
        raise ViewError("pages and pictures need the Python package jinja2") from error
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["px"] = lambda value: f"{value:.1f}".removesuffix(".0")
    style = markupsafe.Markup((TEMPLATES / "page.css").read_text(encoding="utf-8"))  # quotes in it are its own
    moment = f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S}"
    return environment.get_template(name).render(colours=colours, style=style, moment=moment, **values) + "\n"


def save(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ViewError(f"cannot write {path}: {error.strerror}") from error


def shoot(svg: str, path: Path, width: int, height: int) -> None:
    """A picture as PNG, drawn by a browser."""
    with tempfile.TemporaryDirectory(prefix="hakmem-view-") as folder:
        drawing, made = Path(folder) / "picture.html", Path(folder) / "picture.png"
        drawing.write_text('<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>picture</title>'
                           f'<style>body {{ margin: 0 }} svg {{ display: block }}</style>{svg}</html>\n',
                           encoding="utf-8")
        browser.shoot(drawing, made, width, height)
        try:
            data = made.read_bytes()
        except OSError as error:
            raise ViewError("the browser has drawn nothing") from error
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ViewError(f"cannot write {path}: {error.strerror}") from error
