# SPDX-License-Identifier: MIT
"""From words to a server that runs until it is told to end."""
from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import NoReturn

from hakmem_view import observer, process
from hakmem_view.errors import ViewError, end
from hakmem_view.installed import NAME

from .collector import Collector, Limits
from .web import server

LISTEN = "127.0.0.1:9847"


class _Words(argparse.ArgumentParser):
    """Complaints are one line of ours."""

    def error(self, message: str) -> NoReturn:
        raise ViewError(f"exporter: {message}")


def _address(word: str) -> tuple[str, int]:
    host, _, port = word.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ViewError(f"exporter: --listen is HOST:PORT, not '{process.plain(word)}'")
    return host.strip("[]"), int(port)


def _parser() -> argparse.ArgumentParser:
    usual = Limits()
    made = _Words(f"{NAME} exporter", allow_abbrev=False, description="Serves the memory of all processes on hakmem of this host for "
                  "Prometheus, without anything running in them. It sees what a debugger may read: as root all.")
    made.add_argument("--listen", default=LISTEN, metavar="HOST:PORT", help=f"{LISTEN} by default; port 0: one that is free")
    made.add_argument("--most", type=int, default=usual.processes, metavar="N",
                      help=f"read so many processes, the largest ({usual.processes})")
    made.add_argument("--timeout", type=float, default=usual.seconds, metavar="S",
                      help=f"seconds that a process may take ({usual.seconds:g})")
    made.add_argument("--causes", type=int, default=usual.explain_bytes >> 30, metavar="GIB",
                      help="no causes of larger processes, as they take 50 ms per GiB "
                           f"({usual.explain_bytes >> 30}); 0: of none")
    return made


def _run() -> int:
    given = _parser().parse_args(sys.argv[2:] if sys.argv[1:2] == ["exporter"] else sys.argv[1:])
    if given.most < 1 or not 0.1 <= given.timeout <= 600 or given.causes < 0:
        raise ViewError("exporter: --most is 1 or more, --timeout 0.1 to 600, --causes 0 or more")
    host, port = _address(given.listen)
    process.need()
    observer.need()
    limits = Limits(given.most, given.timeout, given.causes << 30)
    try:
        made = server(host, port, Collector(limits))
    except (OSError, UnicodeError) as error:
        raise ViewError(f"exporter: cannot listen at {process.plain(given.listen)}: {getattr(error, 'strerror', None) or error}") from error
    with made:
        for number in (signal.SIGTERM, signal.SIGINT):  # shutdown waits for the loop, which this thread runs
            signal.signal(number, lambda *_: threading.Thread(target=made.shutdown).start())
        print(f"hakmem: exporter: http://{host}:{made.server_port}/metrics", file=sys.stderr, flush=True)
        made.serve_forever(poll_interval=0.2)
    return 0


def main() -> NoReturn:
    end(_run)
