# SPDX-License-Identifier: MIT
"""What a program really gets when a library is preloaded: asked of a running program, not read off the file."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess

from .. import place
from . import outside
from .outside import Skip


def program():
    """which_malloc: the lab's own if it is built, else compiled here."""
    built, source = place.PROGRAMS / "which_malloc", place.BENCH / "rig" / "which_malloc.c"
    if built.is_file():
        return str(built)
    own = place.PEERS / "which_malloc"
    if not own.is_file() or own.stat().st_mtime < source.stat().st_mtime:
        outside.need(["cc"], lambda text: None)
        draft = own.with_name(f"which_malloc.{os.getpid()}")
        outside.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", source, "-o", draft, "-ldl"],
                    place.PEERS / "which_malloc.log")
        os.replace(draft, own)
    return str(own)


def _complaint(said):
    """What the loader says of a library it will not take."""
    found = re.search(r"(?:from LD_PRELOAD|--preload[^:]*) cannot be preloaded \(([^)]*)\)", said)
    if found:
        return found.group(1)
    found = re.search(r"version `([^']+)' not found", said)
    if found:
        return f"it needs {found.group(1).replace('_', ' ').replace('GLIBC', 'glibc')} or newer"
    return outside.last_error(said) if said.strip() else ""


def start(command, base, library, env):
    """Run a small program on a base with a library. Skip if it ends badly or the loader refuses the library."""
    words = {**outside.environment(), **base.env(library), **env}
    try:
        done = subprocess.run([*base.prefix(library), *command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=30, env=words, check=False)
    except subprocess.TimeoutExpired:
        raise Skip("no end of a small program that runs on it after 30 s") from None
    except OSError as problem:
        raise Skip(f"{command[0]} does not start: {problem.strerror}") from None
    if done.returncode < 0:
        raise Skip(f"a small program that runs on it dies of {signal.Signals(-done.returncode).name}")
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        raise Skip(_complaint(done.stderr) or f"a small program that runs on it ends with status {done.returncode}")
    return done.stdout


def report(base, library="", env=None):
    """{"malloc", "glibc", "version", …} of a program on a base with a library. Skip if malloc is not its."""
    if re.search(r"[\s:]", library):
        raise Skip(f"a path with a blank or a colon cannot be preloaded: {outside.shown(library)}"
                   " (HAKMEM_LAB_DIR names another folder for the lab)")
    if library and base.name != "musl":  # of musl only the lab's own programs are there
        start([shutil.which("true") or "/bin/true"], base, library, env or {})
    text = start([program()], base, library, env or {})
    try:
        said = json.loads(text)
        origin = said["malloc"]
    except (ValueError, KeyError, TypeError):
        raise Skip("which_malloc says nothing that can be read") from None
    if library and not (os.path.exists(origin) and os.path.samefile(origin, library)):
        raise Skip(f"malloc does not come from {outside.shown(library)} but from {outside.shown(origin)}")
    return said
