# SPDX-License-Identifier: MIT
"""What the tests of the heap profile share: pages of the control channel, as bytes."""
import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

from channel import LIBRARY, PATIENCE, Connection, Program, SkipTest, run_tests  # noqa: E402,F401 pylint: disable=unused-import,wrong-import-position

# Every small block is in a slab, with no tag.
GUARDLESS = "guard:0,tags:0,"


def fetch(name, page, method="GET"):
    """A start waits one second at most for its channel to listen; on a busy machine that is later."""
    end = time.monotonic() + PATIENCE
    with contextlib.closing(Connection(name)) as connection:
        while True:
            try:
                connection.connect()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end, f"nobody listens at {name}"
                time.sleep(0.01)
        connection.request(method, page)
        answer = connection.getresponse()
        return answer.status, answer.read()


def profile(name):
    status, body = fetch(name, "/profile")
    assert status == 200
    return json.loads(body)
