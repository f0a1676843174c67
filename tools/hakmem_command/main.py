# SPDX-License-Identifier: MIT
"""From words to a command; what goes wrong is one line on standard error and status 2."""
from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from hakmem_view.errors import ViewError
from hakmem_view.installed import NAME

from . import check, enable, options, translate

COMMANDS = {"options": options, "check": check, "enable": enable, "disable": enable, "translate": translate}


class Words(argparse.ArgumentParser):
    """Complaints are one line of ours."""

    def error(self, message: str) -> NoReturn:
        raise ViewError(f"{self.prog.split()[-1]}: {message}")


def run(words: list[str]) -> int:
    name = words[0] if words else ""
    if name not in COMMANDS:
        raise ViewError(f"unknown command '{name}'; there are: {' '.join(COMMANDS)}")
    module = COMMANDS[name]
    parser = Words(f"{NAME} {name}", description=module.ABOUT[name], allow_abbrev=False)
    module.words(parser)
    return module.run(name, parser.parse_args(words[1:]))


def main() -> NoReturn:
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except ViewError as error:
        print(f"hakmem: {error}", file=sys.stderr)
        status = ViewError.status
    except KeyboardInterrupt:
        print("hakmem: interrupted", file=sys.stderr)
        status = 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        status = 141 if isinstance(error, BrokenPipeError) else ViewError.status
        if status != 141:
            where = f"{error.filename}: " if error.filename else ""
            print(f"hakmem: {where}{error.strerror or error}", file=sys.stderr)
    sys.exit(status)
