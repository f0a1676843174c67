# SPDX-License-Identifier: MIT
"""Entry of `hakmem stats`, `top`, `explain`, `map`, `profile`, `ps` and `symbolize`, in the source tree and installed; Python
finds the package beside this file."""
import sys

if sys.argv[1:2] == ["symbolize"]:  # by the standard library alone
    from hakmem_view import symbolize

    sys.exit(symbolize.run(sys.argv[2:]))

try:
    from hakmem_view.cli import main
except ModuleNotFoundError as error:
    from hakmem_view import installed, plain

    plain.main(missing="" if installed.tree else error.name or "typer")

main()
