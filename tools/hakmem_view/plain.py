# SPDX-License-Identifier: MIT
"""`./hakmem stats`, `explain`, `ps`, `top` and `map` without the Python environment: as hakmem-observe prints it, by the standard
library alone. What both forms of these commands pass on unchanged (JSON, metrics, the list of processes) is here, too."""
from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import textwrap
from typing import NoReturn

from . import observer, plain_views, process, profile_plain
from .errors import ViewError, end
from .installed import NAME
from .model import SCHEMA, parse

NOTHING = re.compile(rb"hakmem: \w+: 0 B, 0 %: ")  # a cause without memory
OPTIONS = {"stats": ("--json", "--metrics"), "explain": ("--json", "--learner"), "ps": ("--json",)}


def packages_missing() -> list[str]:
    """Of those that tables and pages take."""
    return [name for name in ("rich", "typer", "jinja2") if importlib.util.find_spec(name) is None]


def _folded(line: str, width: int) -> str:
    """It goes on below its last column, as hakmem-observe has it."""
    columns = [found.end() for found in re.finditer(r"  (?=\S)", line) if found.end() < width * 2 // 3]
    indent = columns[-1] if columns else 8
    first, rest = line[:indent], line[indent:]
    return first + ("\n" + " " * indent).join(textwrap.wrap(rest, width - indent, break_long_words=False, break_on_hyphens=False))


def within(text: str, width: int) -> str:
    """Lines that are too long for the terminal, on several."""
    return "\n".join(_folded(line, width) if len(line) > width else line for line in text.splitlines())


def raw(body: bytes) -> None:
    """Onto standard output, as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(body if body.endswith(b"\n") else body + b"\n")
    sys.stdout.buffer.flush()


def pass_on(where: observer.Observed, verb: str, option: str) -> None:
    """A document as it is; JSON of a schema that we do not read is an error nevertheless."""
    body = where.read(verb, option or "--wide")
    if option == "--json":
        parse(body, where.what(verb))
    if not option:
        if verb == "explain" and (sys.stdout.isatty() or "COLUMNS" in os.environ):
            body = b"".join(line for line in body.splitlines(True) if not NOTHING.match(line))
        body = body.replace(b"hakmem profile PID", f"{NAME} profile {where.target}".encode())
        body = within(body.decode("utf-8", "replace"), shutil.get_terminal_size().columns or 80).encode()
    raw(body)


def reason(one: observer.Listed) -> str:
    """Why it cannot be looked into, without its name."""
    return one.reason.partition(") ")[2] or one.reason


def processes_json(listed: list[observer.Listed]) -> bytes:
    """docs/schema/ps.schema.json says what is in it."""
    found = [{"pid": one.pid, "rss_bytes": process.rss(one.pid), "command": process.command(one.pid),
              "hakmem": one.version or None, "reason": reason(one)} for one in listed]
    return json.dumps({"schema": SCHEMA, "processes": found}, indent=1).encode()


def nobody() -> str:
    """What is said instead of an empty list."""
    return f"No process that you may look into runs on hakmem; start one with {NAME} run -- PROGRAM"


def _processes(listed: list[observer.Listed]) -> None:
    if not listed:
        print(nobody())
        return
    rows = [("PID", "RSS", "Command", "hakmem")]
    for one in listed:
        rss = process.rss(one.pid)
        rows.append((str(one.pid), "-" if rss is None else f"{rss / (1 << 20):.1f} MiB", process.command(one.pid)[:40],
                     one.version or reason(one)))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    for pid, rss, command, address in rows:
        print(f"{pid:>{widths[0]}}  {rss:>{widths[1]}}  {command:<{widths[2]}}  {address}")


def _words(words: list[str]) -> tuple[str, str, str]:
    """The command, its option, its target; "" for what is not there."""
    command, *rest = words or [""]
    if command not in OPTIONS:
        raise ViewError(f"this needs the Python environment; without it there are: {' '.join((*OPTIONS, *plain_views.COMMANDS))}")
    known, option, targets = OPTIONS[command], "", []
    for word in rest:
        if not word.startswith("--"):
            targets.append(word)
        elif word.partition("=")[0] == "--html" and command == "explain":
            raise ViewError(f"explain --html needs the Python packages {', '.join(packages_missing())}; "
                            "without them there are text and --json")
        elif word not in known:
            raise ViewError(f"{command}: unknown option '{word}'; there are: {', '.join(known)}")
        elif option and word != option:
            raise ViewError(f"either {option} or {word}, not both")
        elif word != "--learner":  # its lines are always there
            option = word
    most = 0 if command == "ps" else 1
    if len(targets) > most:
        raise ViewError(f"{command}: too many words: {' '.join(targets[most:])}")
    if len(targets) < most:
        raise ViewError(f"{command}: PID|CORE is wanted")
    return command, option, "".join(targets)


def _run(words: list[str], missing: str) -> None:
    if words[:1] and words[0] in plain_views.COMMANDS:
        plain_views.COMMANDS[words[0]](words[1:])
        return
    command, option, target = _words(words)
    if command != "ps":
        pass_on(observer.find(target), command, option)
        return
    listed = observer.all_processes()
    if option:
        raw(processes_json(listed))
    else:
        _processes(listed)


def main(missing: str) -> NoReturn:
    """`missing`: the package that the other form of the commands did not find; "" where only this form is installed."""
    def run() -> int:
        if sys.argv[1:2] == ["profile"]:
            return profile_plain.run(sys.argv[2:])
        _run(sys.argv[1:], missing)
        profile_plain.add_to_explain(sys.argv[1:])
        if missing and sys.argv[1:2] in (["stats"], ["explain"]) and "--json" not in sys.argv and "--metrics" not in sys.argv:
            sys.stdout.flush()
            print(f"hakmem: as hakmem-observe prints it: tables and bars need the Python package {missing}; `{NAME} top PID` makes "
                  "an environment with it, once (about a minute, 60 MB from the network)", file=sys.stderr)
        return 0

    end(run)
