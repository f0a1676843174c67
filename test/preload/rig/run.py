# SPDX-License-Identifier: MIT
"""One pass of one program: runs the steps, writes down what they print, proves the preload.

The second pass compares each step with the first one as soon as it is done, so a difference is
reported where it arises.
"""

import contextlib
import hashlib
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from rig import packages, proof
from rig.outcome import Broken, Difference, Step, first_difference, name_status, tail
from rig.waiting import free_port, kill_group, wait_for

GUEST = Path(__file__).resolve().parent.parent / "guest"  # programs and inputs that are files
BENCH = GUEST.parents[2] / "bench/app/source"  # those of the lab
STEP_SECONDS, READY_SECONDS, STOP_SECONDS, MAPS_SECONDS = 300, 120, 120, 120
CRASH_WORDS = re.compile(
    rb"signal (4|6|7|8|11)\b|SIGSEGV|SIGABRT|SIGBUS|SIGILL|core dumped|hakmem:")
KEPT_VARIABLES = ("PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME")
OWN_VARIABLES = ("HAKMEM_OPTIONS", "HAKMEM_PROFILE")  # for the pass with the library only


class Run:
    def __init__(self, place, lib=None, watch=None, model=None, options=None):
        self.place = Path(place)
        self.lib = lib
        self.watch = watch
        self.model = model  # steps of the first pass, or None
        self.options = options  # of the library, instead of $HAKMEM_OPTIONS
        self.steps = []
        self.loads = 0
        self.ports = []
        self.home = self.place.parent / "home"
        self.temp = self.place.parent / "temp"
        for folder in (self.place, self.home, self.temp):
            folder.mkdir(mode=0o755)

    # --- what the programs call --------------------------------------------------------------

    def cmd(self, *argv, stdin=b"", env=None, cwd=None, label=None, status=0, loads=1, clean=None,
            user=None, seconds=STEP_SECONDS):
        """Run a command to its end; returns its standard output.

        `argv`: words, or one text that is split as a shell splits it; `loads`: processes that must
        have the library at least; `clean`: function on the bytes of stdout and stderr that takes
        out what depends on time; `user`: whom to run as when root.
        """
        argv = self.resolve(argv)
        label = label or self.label(argv)
        start = time.monotonic()
        with subprocess.Popen(argv, cwd=cwd or self.place, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **self.surroundings(env, user)) as process:
            try:
                out, err = process.communicate(stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                self.fail(f"step '{label}' did not end within {seconds} s", argv, cwd)
            finally:
                kill_group(process)
        if process.returncode != status:
            self.fail(f"step '{label}' ended with {name_status(process.returncode)}, "
                      f"{name_status(status)} expected\n" + tail(out + err), argv, cwd)
        self.count_loads(loads, label)
        seen_out, seen_err = (clean(out), clean(err)) if clean else (out, err)
        result = seen_out + (b"\n[stderr]\n" + seen_err if seen_err else b"")
        self.add(label, result, argv, cwd, seconds=time.monotonic() - start)
        return out

    def cmd_quiet(self, *argv, env=None, user=None):
        """Run a command whose result is not compared, like "are you ready?"; its output."""
        return subprocess.run(self.resolve(argv), cwd=self.place, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=STEP_SECONDS, check=False,
                              **self.surroundings(env, user)).stdout

    def note(self, label, value):
        """Write down any other result."""
        self.add(label, value if isinstance(value, bytes) else str(value).encode())

    def file(self, name, clean=None):
        """Write down the content of a file."""
        data = (self.place / name).read_bytes()
        data = clean(data) if clean else data
        if len(data) > 1 << 16:
            data = f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}".encode()
        self.add(f"file {name}", data)

    @contextlib.contextmanager
    def server(self, *argv, ready, stop=signal.SIGTERM, status=0, user=None):
        """Run a server while the body runs; every process of it must map the library.

        `ready()` tells when it serves; `stop` is the signal that ends it, with `status`.
        """
        argv = self.resolve(argv)
        label = f"server {Path(argv[0]).name}"
        log_path = self.place.parent / f"{Path(argv[0]).name}.log"
        with open(log_path, "wb") as log:
            process = subprocess.Popen(argv, cwd=self.place, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, **self.surroundings(None, user))
        try:
            is_up = wait_for(lambda: process.poll() is not None or ready(), READY_SECONDS)
            if not is_up or process.poll() is not None:
                self.fail(f"{label} does not serve\n" + tail(log_path.read_bytes()), argv)
            self.check_maps(process.pid, label)
            yield process
            self.check_maps(process.pid, label)
            process.send_signal(stop)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            if process.returncode != status:
                state = ("still runs" if process.returncode is None
                         else f"ended with {name_status(process.returncode)}")
                said = tail(log_path.read_bytes())
                self.fail(f"{label}: {state} after {stop.name}\n{said}", argv)
        finally:
            kill_group(process)
        self.check_log(log_path)

    def check_log(self, path):
        """A log may not tell of a crashed process."""
        for line in Path(path).read_bytes().splitlines():
            if CRASH_WORDS.search(line):
                self.fail(f"{Path(path).name} says: {line.decode(errors='replace')}")

    def port(self):
        """A free one, called PORT in labels: the passes have different ones."""
        self.ports.append(str(free_port()))
        return int(self.ports[-1])

    def write(self, name, data):
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def guest(self, name):
        """Copy a file of guest/, or of the lab, into the working directory; returns its name."""
        source = GUEST / name if (GUEST / name).is_file() else BENCH / name
        self.write(name, source.read_bytes())
        return name

    def own(self, user):
        """Give the working directory to another user (when root)."""
        if os.geteuid() == 0:
            for path in (self.place, self.home, self.temp):
                shutil.chown(path, user, pwd.getpwnam(user).pw_gid)

    # --- beneath -----------------------------------------------------------------------------

    def resolve(self, argv):
        """The first word is a need (looked up), or a path."""
        argv = shlex.split(argv[0]) if len(argv) == 1 else [os.fspath(word) for word in argv]
        if "/" not in argv[0]:
            argv[0] = packages.find(argv[0]) or argv[0]
        return argv

    def label(self, argv):
        text = " ".join([Path(argv[0]).name, *argv[1:]])
        return re.sub(rf"(:|-p )({'|'.join(self.ports) or '0'})\b", r"\1PORT", text)[:100]

    def surroundings(self, extra, user):
        """Environment, session and user of a process."""
        variables = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        if Path("~/.rustup").expanduser().is_dir():  # where rustup's cargo finds its compiler
            variables.setdefault("RUSTUP_HOME", str(Path("~/.rustup").expanduser()))
        variables.update(HOME=str(self.home), TMPDIR=str(self.temp), LC_ALL="C.UTF-8", TZ="UTC",
                         USER="tester", SOURCE_DATE_EPOCH="1700000000", **(extra or {}))
        if self.lib:
            own = {name: os.environ[name] for name in OWN_VARIABLES if name in os.environ}
            own.update({"HAKMEM_OPTIONS": self.options} if self.options else {})
            variables.update(own, LD_PRELOAD=str(self.lib))
        identity = {}
        if user is not None and os.geteuid() == 0:
            entry = pwd.getpwnam(user)
            identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        return {"env": variables, "start_new_session": True, **identity}

    def count_loads(self, least, label):
        if not self.lib:
            return
        loads = self.watch.take()
        self.loads += loads
        if loads < least:
            raise Difference(
                f"step '{label}': {loads} processes loaded the library, at least {least} should "
                "(static or set-uid program, or LD_PRELOAD lost on the way)")

    def check_maps(self, pid, label):
        """Every process of a server has the library; one that is just being started gets time."""
        if not self.lib:
            return
        self.loads += self.watch.take()

        def without():
            return [p for p in proof.family(pid) if proof.maps_library(p, self.lib) is False]

        if not wait_for(lambda: proof.maps_library(pid, self.lib) is not None, MAPS_SECONDS):
            raise Difference(f"{label}: process {pid} is gone")
        if not wait_for(lambda: proof.maps_library(pid, self.lib) and not without(), MAPS_SECONDS):
            raise Difference(f"{label}: {without() or [pid]} do not have the library in their maps")

    def add(self, label, result, argv=None, cwd=None, seconds=0.0):
        step = Step(label, result, seconds)
        if self.model is not None:
            self.compare(step, argv, cwd)
        self.steps.append(step)

    def compare(self, step, argv, cwd):
        index = len(self.steps)
        expected = self.model[index] if index < len(self.model) else Step("(no such step)", b"")
        if step.label != expected.label:
            self.fail(f"step {index} is '{step.label}', it was '{expected.label}'")
        if step.result != expected.result:
            self.fail(f"step '{step.label}' differs:\n"
                      + first_difference(expected.result, step.result), argv, cwd)

    def fail(self, text, argv=None, cwd=None):
        """The verdict of this pass, with the command that repeats the step."""
        if argv:
            preload = f"LD_PRELOAD={self.lib} " if self.lib else ""
            command = shlex.join(argv)[:2000]
            text = f"{text.rstrip()}\n    command: cd {cwd or self.place} && {preload}{command}"
        raise Difference(text) if self.lib else Broken(text)
