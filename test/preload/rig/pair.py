# SPDX-License-Identifier: MIT
"""Both passes of one program and the verdict."""

import concurrent.futures
import contextlib
import ctypes
import os
import resource
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rig import cores, proof
from rig.outcome import Broken, Difference
from rig.run import Run
from rig.watched import Watched

PR_SET_CHILD_SUBREAPER = 36
CORE_BYTES = 1 << 30


@dataclass
class Verdict:
    word: str  # PASS, FAIL, SKIP
    name: str
    text: str

    def __str__(self):
        return f"{self.word} {self.name}: {self.text}"


def run(program, lib, keep=False, guarded=False):
    """Run a program without and with the library and compare; `guarded`: many blocks watched."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # daemons become our children, to be ended
    raise_core_limit()
    base = Path(tempfile.mkdtemp(prefix=f"hakmem-preload-{program.name}-"))
    base.chmod(0o755)
    try:
        watched = Watched(base) if guarded else None
        text = compare(program, private_copy(lib, base), base, watched)
        return Verdict("PASS", program.name, text)
    except (Broken, Difference) as why:
        kind = "fails without the library already: " if isinstance(why, Broken) else ""
        return Verdict("FAIL", program.name, f"{kind}{why}{cores.describe(base)}")
    finally:
        sweep()
        if keep:
            print(f"kept: {base}")
        else:
            shutil.rmtree(base, ignore_errors=True)


def compare(program, lib, base, watched):
    watch = proof.LoadWatch(lib)
    how = {"lib": lib, "watch": watch, "options": watched and watched.options()}
    try:
        if program.side_by_side:
            plain, preload = both_at_once(program, how, base)
        else:
            plain = one_pass(program, base / "run")
            (base / "run").rename(base / "plain")
            preload = one_pass(program, base / "run", model=plain.steps, **how)
    finally:
        watch.close()
    if len(plain.steps) != len(preload.steps):
        raise Difference(f"{len(preload.steps)} steps, {len(plain.steps)} without the library")
    new_cores = len(cores.find(preload.place.parent)) - len(cores.find(plain.place.parent))
    if new_cores > 0:
        raise Difference(f"{new_cores} processes dumped core")
    text = (f"{len(plain.steps)} results identical, {preload.loads} processes with the library, "
            f"{plain.seconds:.1f} s without, {preload.seconds:.1f} s with{slower(plain, preload)}")
    return f"{text}, {watched.verdict()}" if watched else text


def slower(plain, preload):
    """The step that lost most time, when the whole is much slower: no verdict, but worth a look."""
    if preload.seconds < 1.5 * plain.seconds + 2:
        return ""
    pairs = zip(plain.steps, preload.steps)
    old, new = max(pairs, key=lambda steps: steps[1].seconds - steps[0].seconds)
    return f" (most in step '{new.label}': {old.seconds:.1f} s, {new.seconds:.1f} s)"


def one_pass(program, base, **how):
    """One pass. Both have the same path, as it appears in outputs; the first is moved away."""
    base.mkdir(mode=0o755)
    this = Run(base / "work", **how)
    start = time.monotonic()
    program.steps(this)
    this.seconds = time.monotonic() - start
    return this


def both_at_once(program, how, base):
    """Both passes in parallel, in directories of their own; compared afterwards."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        passes = [pool.submit(one_pass, program, base / "plain"),
                  pool.submit(one_pass, program, base / "preload", **how)]
    plain, preload = (one.result() for one in passes)  # that of the first is raised first: Broken
    preload.model = plain.steps
    seen, preload.steps = preload.steps, []
    for step in seen:
        preload.add(step.label, step.result, seconds=step.seconds)
    return plain, preload


def private_copy(lib, base):
    """A path that no other process uses, so that opens can be counted."""
    folder = base / "lib"
    folder.mkdir(mode=0o755)
    copy = folder / lib.name
    shutil.copyfile(lib, copy)
    copy.chmod(0o755)
    for observer in lib.parent.glob("libhakmem-observe.so.?"):  # what the option report loads
        shutil.copyfile(observer, folder / observer.name)
    return copy


def raise_core_limit():
    """A crash of any descendant leaves a core file, where the kernel is set up so."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    soft = CORE_BYTES if hard == resource.RLIM_INFINITY else min(CORE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def sweep():
    """End every process that descends from us."""
    for pid in reversed(proof.family(os.getpid())[1:]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
