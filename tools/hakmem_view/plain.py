# SPDX-License-Identifier: MIT
"""`./hakmem stats`, `explain`, `ps`, `top` and `map` without the Python environment: as the socket prints it, by the standard
library alone. What both forms of these commands pass on unchanged (JSON, metrics, the list of processes) is here, too."""
from __future__ import annotations

import json
import sys
from typing import NoReturn

from . import plain_views, process, profile_plain, source
from .errors import ViewError, end
from .installed import NAME

OPTIONS = {"stats": {"--json": "/stats.json", "--metrics": "/metrics"}, "explain": {"--json": "/explain.json"},
           "ps": {"--json": ""}}
TEXTS = {"stats": "/stats.txt", "explain": "/explain.txt"}


def raw(body: bytes) -> None:
    """Onto standard output, as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(body if body.endswith(b"\n") else body + b"\n")
    sys.stdout.buffer.flush()


def reason(one: source.Listed) -> str:
    """Why a process does not answer, without its name."""
    return one.reason.partition(") ")[2] or one.reason


def processes_json(listed: list[source.Listed]) -> bytes:
    """docs/schema/ps.schema.json says what is in it."""
    found = [{"pid": one.pid, "rss_bytes": process.rss(one.pid), "command": process.command(one.pid),
              "socket": one.source.address if one.source else None, "reason": "" if one.source else reason(one)}
             for one in listed]
    return json.dumps({"schema": source.SCHEMA, "processes": found}, indent=1).encode()


def nobody() -> str:
    """What is said instead of an empty list."""
    return f"No process that you may look into runs on hakmem; start one with {source.SWITCH}"


def _processes(listed: list[source.Listed]) -> None:
    if not listed:
        print(nobody())
        return
    rows = [("PID", "RSS", "Command", "Socket")]
    for one in listed:
        rss = process.rss(one.pid)
        rows.append((str(one.pid), "-" if rss is None else f"{rss / (1 << 20):.1f} MiB", process.command(one.pid)[:40],
                     one.source.address if one.source else reason(one)))
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
        elif word not in known:
            raise ViewError(f"{command}: unknown option '{word}'; there are: {', '.join(known)}")
        elif option and word != option:
            raise ViewError(f"either {option} or {word}, not both")
        else:
            option = word
    most = 0 if command == "ps" else 1
    if len(targets) > most:
        raise ViewError(f"{command}: too many words: {' '.join(targets[most:])}")
    if len(targets) < most:
        raise ViewError(f"{command}: PID|PATH is wanted")
    return command, option, "".join(targets)


def _run(words: list[str], missing: str) -> None:
    if words[:1] and words[0] in plain_views.COMMANDS:
        plain_views.COMMANDS[words[0]](words[1:])
        return
    command, option, target = _words(words)
    listed, body = [], b""
    if command == "ps":
        listed = source.all_processes()
    else:
        where, path = source.find(target), OPTIONS[command].get(option, TEXTS[command])
        body = where.read(path)
        if path.endswith(".json"):
            where.parse(path, body)
    if missing and not option:
        print(f"hakmem: as the socket prints it: tables and bars need the Python package {missing}; `{NAME} top PID` makes "
              "an environment with it, once (about a minute, 60 MB from the network)", file=sys.stderr)
    if command == "ps" and not option:
        _processes(listed)
    else:
        raw(processes_json(listed) if command == "ps" else body)


def main(missing: str) -> NoReturn:
    """`missing`: the package that the other form of the commands did not find; "" where only this form is installed."""
    def run() -> int:
        if sys.argv[1:2] == ["profile"]:
            return profile_plain.run(sys.argv[2:])
        _run(sys.argv[1:], missing)
        profile_plain.add_to_explain(sys.argv[1:])
        return 0

    end(run)
