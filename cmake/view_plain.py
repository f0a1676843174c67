# SPDX-License-Identifier: MIT
"""Entry of the installed `hakmem ps`, `stats` and `explain`: the standard library is enough."""
from hakmem_view import plain

plain.main(missing="")
