# SPDX-License-Identifier: MIT
"""From words to a command; what goes wrong is one line on standard error and status 2."""
from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from hakmem_view.errors import ViewError, end
from hakmem_view.installed import NAME

from . import check, enable, fit, options, translate

COMMANDS = {"options": options, "check": check, "enable": enable, "disable": enable, "translate": translate,
            "fit": fit}


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
    end(lambda: run(sys.argv[1:]))
