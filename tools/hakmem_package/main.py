# SPDX-License-Identifier: MIT
"""From words to packages; what goes wrong is one line on standard error."""
from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from . import apk, crate, deb, release, rpm, tarball, wheel
from .stage import MACHINE, MACHINES, PackageError

KINDS = {"deb": deb.build, "rpm": rpm.build, "wheel": wheel.build, "wheel-musl": lambda machine: wheel.build(machine, is_musl=True),
         "crate": lambda _: crate.build(), "tarball": tarball.build, "apk": lambda _: apk.build()}


def _package(words: list[str]) -> None:
    parser = argparse.ArgumentParser("./hakmem package", allow_abbrev=False)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("machine", nargs="?", choices=MACHINES, default=MACHINE)
    given = parser.parse_args(words)
    made = KINDS[given.kind](given.machine)
    for path in made if isinstance(made, list) else [made]:
        print(path)


def _release(words: list[str]) -> None:
    parser = argparse.ArgumentParser("./hakmem release", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", required=True, help="whether what is here can be released")
    parser.parse_args(words)
    sys.exit(release.check())


def main() -> NoReturn:
    command, words = sys.argv[1], sys.argv[2:]
    try:
        (_package if command == "package" else _release)(words)
    except PackageError as error:
        print(f"hakmem: {command}: {error}", file=sys.stderr)
        sys.exit(1)
    except (OSError, KeyboardInterrupt) as error:
        print(f"hakmem: {command}: {error or 'interrupted'}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)
