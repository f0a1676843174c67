# SPDX-License-Identifier: MIT
"""What the tests of the heap profile share: pages of the control channel, as bytes, and what the tools make of them."""
import json
import os
import sys

for folder in ("../control", "../../tools"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), folder))

from channel import LIBRARY, Program, SkipTest, ask, run_tests  # noqa: E402,F401 pylint: disable=unused-import,wrong-import-position
from hakmem_view import profile_formats, profile_model  # noqa: E402 pylint: disable=wrong-import-position

# Every small block is in a slab, with no tag.
GUARDLESS = "guard:0,tags:0,"


def fetch(name, page, method="GET", refused=False):
    """A start waits one second at most for its channel to listen; on a busy machine that is later."""
    while True:
        try:
            status, _, body = ask(name, page, method, refused)
            return status, body
        except ConnectionRefusedError:
            continue


def profile(name):
    status, body = fetch(name, "/profile")
    assert status == 200
    return json.loads(body)


def heap_v2(document):
    """As `profile --heap-v2` writes it."""
    return profile_formats.heap_v2(profile_model.profile(document, "the process"))
