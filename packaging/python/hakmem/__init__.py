# SPDX-License-Identifier: MIT
"""The memory allocator hakmem in a Python program: run on it, see why memory is what it is.

Only enable() changes anything. The other functions need a process that runs on hakmem: `python -m hakmem run prog.py`, or
enable() first thing in the program.
"""
import atexit
import ctypes
import json
import os
import sys
import tempfile
import warnings
from typing import Any, Dict, Optional

__version__ = "@VERSION@"
__all__ = ["Inactive", "enable", "explain", "is_active", "library", "profile", "stats", "trim"]


_NAMED = "_HAKMEM_NAMED"  # variable: the process that functions=True started again


class Inactive(RuntimeError):
    """This process does not run on hakmem, or its library lacks the function."""


def library() -> str:
    """The path of the shared library in this package, as LD_PRELOAD wants it."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_tree", "lib")
    return next(os.path.join(place, file) for place, _, files in sorted(os.walk(folder))
                for file in sorted(files) if file.startswith("libhakmem.so.") and "hardened" not in place)


def _observer() -> str:
    """Of the library with the reports, which lies beside it."""
    return library().replace("libhakmem.so.", "libhakmem-observe.so.")


def _function(name: str, path: Optional[str] = None) -> Any:
    try:
        ctypes.CDLL(None).hak_version
        return getattr(ctypes.CDLL(path), name)
    except AttributeError:
        raise Inactive(f"{name} is not there: " + ("this hakmem has no such function" if name != "hak_version" and is_active()
                       else "the process does not run on hakmem; call hakmem.enable() first")) from None


def is_active() -> bool:
    """Whether malloc of this process is hakmem's."""
    return hasattr(ctypes.CDLL(None), "hak_version")


def _command() -> list:
    given = getattr(sys, "orig_argv", None)  # from Python 3.10 on
    if given is None:
        with open("/proc/self/cmdline", "rb") as file:
            given = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    return [sys.executable, *given[1:]]


def _with_functions(environment: Dict[str, str]) -> None:
    """What makes profiles name functions and see small objects, as `hakmem profile -- python3` does it."""
    folder = os.path.join(os.path.dirname(library()), "hakmem", "python")
    is_asked = "perf" in sys._xoptions and sys.version_info >= (3, 12)
    reason = ("options -E and -I make Python read no variables" if sys.flags.ignore_environment and not is_asked
              else "before CPython 3.12 -S hides what names them" if sys.flags.no_site and sys.version_info < (3, 12)
              else "CPython names them from 3.9 on" if sys.version_info < (3, 9) else "")
    if reason:
        warnings.warn(f"hakmem cannot name functions: {reason}", RuntimeWarning, stacklevel=3)
    if "PYTHONPERFSUPPORT" not in environment:  # else who set it wants the map, or none
        environment.update({"PYTHONPERFSUPPORT": "1", _NAMED: str(os.getpid())})
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        environment.setdefault("PYTHONMALLOC", "malloc")
    environment["PYTHONPATH"] = ":".join(filter(None, (folder, environment.get("PYTHONPATH"))))


def _remove_map() -> None:
    """Also in a forked child, which has its own."""
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        if os.lstat(path).st_uid == os.geteuid():
            os.unlink(path)
    except OSError:
        pass


def enable(options: Optional[str] = None, profile: Optional[str] = None, functions: bool = False) -> bool:
    """Starts this program again on hakmem, in the same process: call it first, as all that was done is done again.

    Returns True if it runs on hakmem already; False if it was started again and still does not (another C library or
    processor), so the program goes on without. options and profile are as in HAKMEM_OPTIONS and HAKMEM_PROFILE.

    functions: `hakmem profile PID` names the functions of this program (CPython 3.9 and later) and sees its small objects;
    both cost time. The file /tmp/perf-PID.map, which names them, goes when the program exits."""
    if is_active():
        if os.environ.pop(_NAMED, "") == str(os.getpid()):  # we started it
            atexit.register(_remove_map)
        return True
    path = library()
    present = os.environ.get("LD_PRELOAD", "")
    if path in present.split(":") or any(letter in path for letter in " :;\t\n"):
        return False
    environment = dict(os.environ, LD_PRELOAD=f"{path}:{present}" if present else path)
    if options:
        given = environment.get("HAKMEM_OPTIONS")
        environment["HAKMEM_OPTIONS"] = f"{given},{options}" if given else options
    if profile:
        environment["HAKMEM_PROFILE"] = profile
    if functions:
        _with_functions(environment)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, _command(), environment)
    return False


def _written(name: str) -> bytes:
    """What a function writes to the descriptor it is given."""
    function = _function(name, _observer())
    with tempfile.TemporaryFile() as file:
        function(file.fileno())
        file.seek(0)
        return file.read()


def stats() -> Dict[str, Any]:
    """The statistics as data (`hakmem docs statistics`)."""
    return json.loads(_written("hak_stats_json"))


def explain(as_data: bool = False) -> Any:
    """Why the resident memory of this process is what it is: text, or the same as data."""
    return json.loads(_written("hak_explain_json")) if as_data else _written("hak_explain").decode()


def profile() -> Dict[str, Any]:
    """The heap profile as data (`hakmem docs profiling`), of the allocations since sampling began: enable("profile_rate:512k"), or
    HAKMEM_OPTIONS=profile_rate:512k. Raises Inactive where the library has no heap profiler."""
    return json.loads(_written("hak_profile_json"))


def trim() -> bool:
    """Returns unused memory to the kernel; whether there was any."""
    return bool(_function("hak_malloc_trim")(ctypes.c_size_t(0)))
