# SPDX-License-Identifier: MIT
"""Entry of `./hakmem stats`, `top`, `explain`, `map` and `ps`; Python finds the package beside this file."""
try:
    from hakmem_view.cli import main
except ModuleNotFoundError as error:
    from hakmem_view import plain

    plain.main(missing=error.name or "typer")

main()
