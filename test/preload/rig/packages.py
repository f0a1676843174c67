# SPDX-License-Identifier: MIT
"""Where programs come from: a need is a command, looked up in PATH; apt-get brings a missing one.

Installing starts no service: where there is no policy-rc.d, one that says so stands in meanwhile.
"""

import contextlib
import fcntl
import functools
import glob
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PYTHON = "/usr/bin/python3"  # the distribution's own: its test-suite must match it
LISTS_MAX_AGE_SECONDS = 24 * 3600
POLICY = Path("/usr/sbin/policy-rc.d")

# need → Debian package; a need that is not here has a package of its own name.
PACKAGES = {
    "ab": "apache2-utils", "awk": "gawk", "find": "findutils", "gs": "ghostscript",
    "java": "default-jre-headless", "javac": "default-jdk-headless", "lua": "lua5.4",
    "nginx": "nginx-light", "node": "nodejs", "php": "php-cli", "postgres": "postgresql",
    "redis-benchmark": "redis-tools", "redis-cli": "redis-tools", "sort": "coreutils",
    "xz": "xz-utils",
}

# need → places outside PATH, newest last
PLACES = {
    "lua": "/usr/bin/lua5.*",
    "nginx": "/usr/sbin/nginx",
    "postgres": "/usr/lib/postgresql/*/bin/postgres",
    "python3": PYTHON,
}


class Missing(Exception):
    """A program is not there and could not be installed; the text says why."""


def find(need):
    """Path of a need, or None."""
    if need == "python3-testsuite":
        return python_testsuite()
    places = sorted(glob.glob(PLACES.get(need, "")))
    if places:
        return places[-1]
    return None if need == "python3" else shutil.which(need)


def package(need):
    if need == "python3-testsuite":
        return f"libpython{python_version()}-testsuite"
    return PACKAGES.get(need, need)


def install(needs):
    """Make sure every need exists; raises Missing."""
    needs = sorted(set(needs))
    if not absent(needs):
        return
    with turn():
        names = sorted({package(need) for need in absent(needs)})
        if not names:
            return
        wish = "apt-get install " + " ".join(names)
        if not shutil.which("apt-get"):
            raise Missing(f"not installed: {' '.join(absent(needs))}, and there is no apt-get")
        if os.geteuid() != 0:
            raise Missing(f"not installed: {' '.join(absent(needs))} (as root: {wish})")
        if lists_are_old():
            update_lists()
        output = apt_get("install", *names)
        if absent(needs):
            update_lists()
            output = apt_get("install", *names)
        if absent(needs):
            raise Missing(f"'{wish}' did not bring {' '.join(absent(needs))}: {last_line(output)}")


def absent(needs):
    return [need for need in needs if not find(need)]


def apt_get(action, *names):
    command = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", action]
    if action == "install":
        command += ["--no-install-recommends", *names]
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    environment.pop("LD_PRELOAD", None)
    with services_stay_down():
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")


@contextlib.contextmanager
def services_stay_down():
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


@contextlib.contextmanager
def turn():
    """One installer at a time, whatever number of tests run at once."""
    lock = Path(tempfile.gettempdir()) / f"hakmem-preload-setup-{os.getuid()}.lock"
    with open(lock, "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def lists_are_old():
    """True unless this set-up has fetched the package lists within a day."""
    if not glob.glob("/var/lib/apt/lists/*_Packages*"):
        return True
    stamp = update_stamp()
    return not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_MAX_AGE_SECONDS


def update_lists():
    apt_get("update")
    update_stamp().touch()


def update_stamp():
    return Path(tempfile.gettempdir()) / f"hakmem-preload-update-{os.getuid()}"


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


@functools.lru_cache(maxsize=1)
def python_version():
    if not os.path.exists(PYTHON):
        raise Missing(f"{PYTHON} does not exist")
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run([PYTHON, "-c", program], env=environment, capture_output=True, text=True,
                          check=True).stdout.strip()


def python_testsuite():
    if not os.path.exists(PYTHON):
        return None
    places = glob.glob(f"/usr/lib/python{python_version()}/test/test_json/__init__.py")
    return places[0] if places else None
