# SPDX-License-Identifier: MIT
"""`hakmem options`: the options in groups, first those that a process or the environment changes."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import textwrap
from typing import Optional

from hakmem_view import installed, observer, process
from hakmem_view.errors import Absent, ViewError

from . import table
from .table import Option, Profile

UNKNOWN = "unknown: the program has overwritten its environment"
SECONDS = 10.0  # for what is read of a process
ABOUT = {"options": "The options of this version; those that a process (PID) or the environment changes come first."}


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", metavar="PID|NAME", nargs="*", help="a process, or names of options: only those")
    parser.add_argument("--json", action="store_true", help="the table, or the options of the process, as JSON")


def of_environment(environment: dict[str, str], profiles: list[Profile]) -> dict[str, tuple[str, str]]:
    """Values that differ from the defaults and who set each: as the library reads the two variables."""
    found = {}

    def take(name: str, source: str) -> None:
        for profile in profiles:
            if profile.name == name:
                found.update({key: (value, source) for key, value in table.parse(profile.options).items()})

    name = environment.get("HAKMEM_PROFILE", "")
    take(name, f"profile {name}")
    for key, value in table.parse(environment.get("HAKMEM_OPTIONS", "")).items():
        if key == "memory":
            take(value, f"memory:{value}")
        else:
            found[key] = (value, "HAKMEM_OPTIONS")
    return found


def environment_of(pid: int) -> Optional[dict[str, str]]:
    """What its program was started with; None if that cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            pairs = (entry.partition("=") for entry in file.read().split("\0"))
            return {key: process.plain(value) for key, _, value in pairs if key}
    except OSError:
        return None


def _number(value: str) -> str:
    """Sizes as bytes, so that 1024k is 1m."""
    digits, unit = value[:-1], " kmgt".find(value[-1:].lower() or "?")
    return str(int(digits) << 10 * unit) if unit > 0 and digits.isascii() and digits.isdigit() else value


def in_force(pid: int) -> dict[str, tuple[str, str]]:
    """The options that are no texts, as the library has them now: value and default; {} if it cannot be read."""
    try:
        where = observer.find(str(pid))
        document = json.loads(where.read("options", seconds=SECONDS))
        return {str(one["name"]): (process.plain(str(one["value"])), str(one["default"])) for one in document["options"]}
    except (ViewError, ValueError, KeyError, TypeError):
        return {}


def _need_hakmem(pid: int) -> None:
    """What cannot be read is told by its environment; what does not run on hakmem has no options."""
    try:
        observer.find(str(pid)).read("options", seconds=SECONDS)
    except Absent:
        raise
    except ViewError:
        pass


def of_process(pid: int, profiles: list[Profile]) -> tuple[dict[str, tuple[str, str]], str]:
    """Its values other than the defaults, and how they are known."""
    environment, now = environment_of(pid), in_force(pid)
    if environment is None:
        process.need()
        if not process.lives(pid):
            raise ViewError(f"there is no process {pid}")
        raise observer.forbidden(pid)
    is_known = not process.has_overwritten_environment(pid)
    changed = of_environment(environment, profiles) if is_known else {}
    for name, (value, default) in now.items():
        if value == default:
            changed.pop(name, None)
        elif name not in changed or _number(changed[name][0]) != _number(value):
            changed[name] = (value, "the program, or tell" if is_known else "its start, or later")
    if now:
        return changed, "in force now" if is_known else "in force now, but for texts: the program has overwritten its environment"
    return changed, "from its environment at start; what the program sets itself is not seen" if is_known else UNKNOWN


def _wrapped(text: str, indent: int, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * indent,
                         break_long_words=False, break_on_hyphens=False)


def _entry(one: Option, width: int, wide: int) -> list[str]:
    default = one.default.strip("`")
    facts = {"switch": "0 or 1", "word": "no value"}.get(one.type, one.valid.replace("`", ""))
    head = f"  {one.name:<{wide}}  {default if default != 'empty' else '-':<9} {facts}; {one.change}"
    return [*(textwrap.wrap(head, width, subsequent_indent=" " * (wide + 14)) if len(head) > width else [head]),
            *_wrapped(one.text.replace("`", ""), 6, width)]


def render(options: list[Option], width: int) -> list[str]:
    wide, lines = max(len(one.name) for one in options), []
    for title, those, examples in table.grouped(options):
        lines += [title, f"  {'option':<{wide}}  default   values; may change"]
        for one in those:
            lines += _entry(one, width, wide)
        for text, effect in examples:
            if all(key in {one.name for one in options} for key in table.parse(text)):
                lines += _wrapped(f"Example: HAKMEM_OPTIONS={text}: {effect}", 2, width)
        lines.append("")
    return lines


def _differences(changed: dict[str, tuple[str, str]], options: list[Option], title: str, width: int) -> list[str]:
    defaults = {one.name: one.default.strip("`") for one in options}
    if title.endswith(UNKNOWN):
        return [*textwrap.wrap(title, width), ""]
    if not changed:
        return [*textwrap.wrap(f"{title}: all options have their defaults", width), ""]
    lines, wide = textwrap.wrap(f"{title}: other than the default", width), max(map(len, changed))
    for key, (value, who) in sorted(changed.items()):
        known = f"default {defaults[key] if defaults[key] != 'empty' else '-'}" if key in defaults else "no option of this version"
        lines += textwrap.wrap(f"  {key:<{wide}}  {value or '-':<9} {known}; from {who}", width,
                               subsequent_indent=" " * (wide + 4), break_long_words=False)
    return [*lines, ""]


def _chosen(names: list[str], options: list[Option]) -> list[Option]:
    known = {one.name: one for one in options}
    for name in names:
        if name not in known:
            raise ViewError(f"options: there is no option '{name}'{table.hint(name, known)}")
    return [known[name] for name in names] or options


def run(_: str, given: argparse.Namespace) -> int:
    options, profiles = table.load()
    pids = [word for word in given.targets if word.isascii() and word.isdigit()]
    if len(pids) > 1:
        raise ViewError("options: one PID at a time")
    for pid in pids:
        _need_hakmem(int(pid))
    shown = _chosen([word for word in given.targets if word not in pids], options)
    changed, how = of_process(int(pids[0]), profiles) if pids else (of_environment(dict(os.environ), profiles), "")
    defaults = {one.name: _number(one.default.strip("`")) for one in options}  # which points of memory have in part
    changed = {key: (value, who) for key, (value, who) in changed.items() if _number(value) != defaults.get(key)}
    if given.json:
        print(json.dumps({"schema": 1, "hakmem": installed.own_version(), "pid": int(pids[0]) if pids else None,
                          "changed": {key: {"value": value, "source": who} for key, (value, who) in changed.items()},
                          "options": [vars(one) for one in shown]}, indent=1))
        return 0
    width, lines = min(110, max(60, shutil.get_terminal_size((100, 24)).columns)), []
    if pids:
        lines += _differences(changed, options, f"{process.called(int(pids[0]))}, {how}", width)
    elif changed:
        lines += _differences(changed, options, "The environment", width)
    lines += render(shown, width)
    if shown is options:
        lines.append("Profiles (HAKMEM_PROFILE=NAME, or run --profile NAME)")
        for one in profiles:
            lines += textwrap.wrap(f"  {one.name:<11} {one.text}" + (": " + one.options.replace(",", ", ") if one.options else ""), width,
                                   subsequent_indent=" " * 14)
    print("\n".join(lines).rstrip())
    return 0
