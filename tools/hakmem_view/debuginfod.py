# SPDX-License-Identifier: MIT
"""Files by their build id, from the servers that DEBUGINFOD_URLS names: debug data that is not installed, and programs of
another machine. Without that variable nobody is asked. By debuginfod-find where it is, else as it does, in its cache."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Optional

from .wording import size

URLS, CACHE, TIMEOUT = "DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_TIMEOUT"
SECONDS = 90  # that a server may say nothing for
MOST = 4 << 30  # bytes of a file
PIECE = 1 << 20
TOOL = "debuginfod-find"
SYSTEM = re.compile(r"(?:ld-linux|ld-musl|libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s)[-.]")  # say enough by their symbols


def is_wanted(path: str) -> bool:
    """Whether the lines of a file are worth the way."""
    return bool(os.environ.get(URLS, "").strip()) and SYSTEM.match(Path(path).name) is None


def without() -> dict[str, str]:
    """The environment of tools that would ask, too."""
    return {key: value for key, value in os.environ.items() if key != URLS}


def _folder() -> Path:
    own = os.environ.get(CACHE)
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "debuginfod_client"


def _seconds() -> float:
    text = os.environ.get(TIMEOUT, "")
    return float(text) if text.isascii() and text.isdigit() and int(text) else SECONDS


def _say(text: str) -> None:
    print(f"hakmem: {text}", file=sys.stderr, flush=True)


@lru_cache(maxsize=4096)
def find(build_id: str, kind: str, name: str) -> Optional[str]:
    """The path of a copy: `kind` is debuginfo or executable. None: nobody has it. `name`: what the user calls the file."""
    if not re.fullmatch(r"(?:[0-9a-f]{2}){4,64}", build_id):
        return None
    cached = _folder() / build_id / kind
    if os.access(cached, os.R_OK) and cached.stat().st_size:
        return str(cached)
    if shutil.which(TOOL):
        return _by_tool(build_id, kind)
    for server in os.environ.get(URLS, "").split():
        if _fetched(f"{server.rstrip('/')}/buildid/{build_id}/{kind}", cached, name):
            return str(cached)
    return None


def _by_tool(build_id: str, kind: str) -> Optional[str]:
    try:
        done = subprocess.run([TOOL, kind, build_id], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _fetched(url: str, into: Path, name: str) -> bool:
    """Whole or not at all."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(url, timeout=_seconds()) as answer:  # noqa: S310 - of these two kinds
            into.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=into.parent, delete=False) as file:
                try:
                    length = _copied(answer, file)
                    os.replace(file.name, into)
                except BaseException:
                    os.unlink(file.name)
                    raise
    except urllib.error.HTTPError as error:
        if error.code != 404:
            _say(f"{url.partition('/buildid/')[0]} does not give debug data: {error.code} {error.reason}")
        return False
    except (OSError, ValueError) as error:
        _say(f"{url.partition('/buildid/')[0]} does not give debug data: {getattr(error, 'reason', None) or error}")
        return False
    _say(f"debug data of {name} from {url.partition('/buildid/')[0]}: {size(length)}")
    return True


def _copied(answer, file) -> int:
    length, wanted = 0, answer.headers.get("Content-Length")
    while piece := answer.read(PIECE):
        length += len(piece)
        if length > MOST:
            raise ValueError(f"more than {size(MOST)}")
        file.write(piece)
    if wanted and wanted.isdigit() and int(wanted) != length:
        raise ValueError(f"{length} of {wanted} bytes came")
    return length
