# SPDX-License-Identifier: MIT
"""First in PYTHONPATH when `hakmem profile -- python3 ...` runs: CPython 3.9 to 3.11 name their functions in stacks from here on,
if PYTHONPERFSUPPORT or -X perf asks for it, as later ones do themselves. Then the sitecustomize that this one hides runs. Any
Python may read this file, the oldest too."""
import os
import sys


def name_functions():
    """Whether functions that are called from now on are named."""
    if not (3, 9) <= sys.version_info[:2] < (3, 12) or sys.implementation.name != "cpython":
        return False
    if os.environ.get("PYTHONPERFSUPPORT", "0") in ("", "0") and "perf" not in sys._xoptions:
        return False
    try:
        import ctypes
        library = ctypes.PyDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.so"))
        library.hak_python_start.argtypes = [ctypes.py_object] * 4
        one, other = (lambda: None), (lambda: ())
        if not library.hak_python_start(one, one.__code__, other, other.__code__):
            return False

        def before():
            """A child of `subprocess` (preexec_fn) executes another program next."""
            by = sys._getframe(1)
            library.hak_python_leave(by.f_code.co_name == "_execute_child" and by.f_globals.get("__name__") == "subprocess")
        os.register_at_fork(before=before, after_in_child=library.hak_python_forked,
                            after_in_parent=lambda: library.hak_python_leave(False))
        return True
    except Exception:  # without ctypes, or a library for another processor: no names
        return False


def remove_compiled():
    """Whoever may write to this folder would leave files there that no package knows."""
    compiled = globals().get("__cached__") or os.path.splitext(os.path.abspath(__file__))[0] + ".pyc"
    try:
        os.unlink(compiled)
        os.rmdir(os.path.dirname(compiled))
    except OSError:
        pass


def run_hidden():
    """As site would have run it."""
    here = os.path.dirname(os.path.abspath(__file__))
    # One that is relative still is so because the working directory is gone: it has no absolute path.
    sys.path[:] = [folder for folder in sys.path if not os.path.isabs(folder) or os.path.abspath(folder) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", own)


if __name__ == "sitecustomize":
    remove_compiled()
    name_functions()
    run_hidden()
