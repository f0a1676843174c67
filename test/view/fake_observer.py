#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands for hakmem-observe, and for a program that it reads: of that it says what its mode tells, rightly or wrongly in one of
many ways; of others that they do not use hakmem.

    fake_observer.py be MODE FOLDER                the program: prints "ready", then waits for the end of its input
    fake_observer.py VERB PID [--json|--metrics] [--every S]
    fake_observer.py profile PID --format FORM
    fake_observer.py tell PID rate N               FOLDER keeps what it was told
"""
from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent / "samples"
FILES = {"/stats.json": "stats.json", "/explain.json": "explain.json", "/map.json": "map.json", "/metrics": "metrics.txt"}
SPARSE = {"/stats.json": {}, "/explain.json": {"causes": [{"name": "live"}]},
          "/map.json": {"superslabs": [{"spans": [{"unit": 3, "kind": "slab"}, {"kind": "new"}]}]}}
ODD = ({"classes": 5}, {"threads": [1]}, {"bytes": []}, {"events": {"oom": True, "refill": 1e400}},
       {"classes": [{"bytes": "big"}]})
ODD_LEARNERS = (5, [1], [{"keep_ms": "long"}], [{"learn": "1", "keep_ms": 77}], [{"strategies": {}}],
                [{"strategies": [{"keep_ms": 400, "held_bytes": -1}]}], [{"strategies": [{"keep_ms": 0}]}])
ODD_PROFILES = ({"profile": 2}, {"profile": None}, {"sites": 5}, {"sites": [1]}, {"sites": [{}]}, {"sites": [{"stack": [5]}]},
                {"sites": [{"stack": ["0xzz"]}]}, {"sites": [{"stack": ["0x1ffffffffffffffff"]}]}, {"mappings": [{"start": "0x9"}]},
                {"mappings": [{"start": "0x9", "end": "0x8", "offset": "0x0"}]}, {"rate": "all"}, {"rate": 10 ** 400},
                {"exact": []}, {"samples": {"live": "x"}}, {"sites": [{"stack": [], "inuse": {"bytes": float("inf")}}]},
                {"sites": [{"stack": [], "lifetimes_ns": 3}]}, {"sites": [{"stack": [], "threads": [3]}]}, {"estimate": 1})
REFUSALS = {"nothing": "the process does not use hakmem", "forbidden": "the memory of process 1 may not be read",
            "older": "the process has hakmem with description 77, and this program reads 1"}
ANSWERS = {"asleep": (2, "has not answered yet: it does it when it next allocates"),  # to `tell`
           "waits": (2, "has not answered yet what another asked: nothing was sent"),
           "filtered": (1, "has a seccomp filter, which may end it for the system calls by which it would sample: it is left alone; "
                        "--force samples it nevertheless"), "refuses": (1, "refuses: it is set-uid")}
PPROF = b"\x1f\x8bfake"


def document(path: str, pid: int, moment: float) -> dict:
    """A sample as if this process had made it; events go on with time."""
    found = json.loads((SAMPLES / FILES[path]).read_text(encoding="utf-8"))
    found["pid"] = pid
    for name in found.get("events", {}):
        found["events"][name] += int(1000 * moment)
    return found


def text_of(mode: str, path: str, pid: int) -> bytes:
    """A document about a process in this mode."""
    if path.endswith(".txt"):
        return f"hakmem: {path}".encode()
    if path == "/metrics":
        return (SAMPLES / FILES[path]).read_bytes()
    found = document(path, pid, time.monotonic())
    if mode == "sparse":
        found = {"schema": 1, **SPARSE[path]}
    elif mode == "schema":
        found.update(schema=2, hakmem="0.9.0")
    elif mode.startswith("learner"):
        found["learner"] = ODD_LEARNERS[int(mode[7:])]
    elif mode.startswith("odd"):
        found.update(ODD[int(mode[3:])])
    elif mode == "evil":
        found["hakmem"] = "<script>alert(1)</script>\x1b[2J"
        found.update(text="<img src=https://example.org/x>", first="live", causes=[
            {"name": "<b>", "bytes": 7, "title": "<script>alert(2)</script>", "advice": "\x1b]0;owned\x07"}])
    return json.dumps(found).encode() if mode != "cut-json" else json.dumps(found).encode()[:-40]


def told(mode: str, folder: str) -> dict:
    """The rates that it was told, and how often its profile was read."""
    try:
        return json.loads(Path(folder, "told").read_text(encoding="utf-8"))
    except OSError:
        return {"asked": [], "reads": 0, "rate": 65536 if mode == "on" else 0}


def keep(folder: str, state: dict) -> None:
    Path(folder, "new").write_text(json.dumps(state), encoding="utf-8")
    os.replace(Path(folder, "new"), Path(folder, "told"))


def profile(mode: str, folder: str, pid: int) -> bytes:
    """It has grown a little whenever it is read."""
    import synthetic  # pylint: disable=import-outside-toplevel
    state = told(mode, folder)
    state["reads"] += 1
    keep(folder, state)
    load = synthetic.standard(pid=pid, rate=state["rate"] or synthetic.RATE)
    load.sites[0].live += 4000 * state["reads"]
    found = synthetic.document(load, seed=3)
    found.update(is_on=bool(state["rate"]), time_ns=found["time_ns"] + state["reads"] * synthetic.SECOND)
    found["samples"]["dropped"] = 7 if mode == "drops" else 0
    if mode == "silent":
        found["sites"] = []
    if mode.startswith("profile"):
        found.update(ODD_PROFILES[int(mode[7:])])
    if mode == "evil":
        found["program"] = "</script><script>alert(1)</script>\x1b[2J"
        found["sites"][0]["label"] = "</script><img src=x onerror=alert(2)>\x1b]0;owned\x07;x"
        found["mappings"][0]["path"] = "/tmp/<script>alert(3)</script>\n"
    body = json.dumps(found).encode()
    return body[:-40] if mode == "cut-json" else body


def tell(mode: str, folder: str, pid: str, words: list[str]) -> int:
    status, text = ANSWERS.get(mode, (0, ""))
    if mode == "asleep" and "--brief" in words:
        text = "has not answered yet: the request was taken back; ask again"
    if text:
        print(f"hakmem-observe: process {pid} {text}", file=sys.stderr)
        return status
    state = told(mode, folder)
    keep(folder, {**state, "rate": int(words[1]), "asked": [*state["asked"], words[1]]})
    print(f"process {pid}: done")
    return 0


def mode_of(pid: str) -> tuple[str, str]:
    """And its folder; "" of a process that has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return "", ""
    at = next((at for at, word in enumerate(words[:-3]) if word.endswith("fake_observer.py") and words[at + 1] == "be"), None)
    return tuple(words[at + 2:at + 4]) if at is not None else ("nothing" if words != [""] else "", "")


def main() -> int:
    if sys.argv[1:] == ["ps"]:
        print("PID")
        print("\n".join(name for name in os.listdir("/proc") if name.isdigit() and mode_of(name)[1]))
        return 0
    verb, pid, *options = sys.argv[1:]
    if verb == "be":
        print("ready", flush=True)
        sys.stdin.read()
        return 0
    path = "/metrics" if "--metrics" in options else f"/{verb}.json" if verb == "map" or "--json" in options else f"/{verb}.txt"
    while True:
        mode, folder = mode_of(pid)
        refusal = REFUSALS.get(mode) if mode else f"there is no process {pid}"
        if refusal:
            print(f"hakmem-observe: {refusal}", file=sys.stderr)
            return 1
        if mode == "stuck":
            time.sleep(600)
        if verb == "tell":
            return tell(mode, folder, pid, options)
        body = (PPROF if "pprof" in options else profile(mode, folder, int(pid)) + b"\n") if verb == "profile" else \
            text_of(mode, path, int(pid)).rstrip(b"\n") + b"\n"
        sys.stdout.buffer.write(body)
        sys.stdout.flush()
        if "--every" not in options:
            return 0
        time.sleep(float(options[options.index("--every") + 1]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(1)
