# SPDX-License-Identifier: MIT
"""Entry of `hakmem stats`, `top`, `explain`, `map` and `ps`, in the source tree and installed; Python finds the package
beside this file."""
try:
    from hakmem_view.cli import main
except ModuleNotFoundError as error:
    from hakmem_view import installed, plain

    plain.main(missing="" if installed.tree else error.name or "typer")

main()
