# SPDX-License-Identifier: MIT
"""The HTTP side: prometheus_client answers /metrics, and beside it are pages about one process."""
from __future__ import annotations

import sys
import threading
from typing import Callable, Iterable
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from hakmem_view import process
from hakmem_view.errors import ViewError

from .collector import AT_ONCE, Collector, Limits, explained, profiled

ABOUT = """hakmem exporter

/metrics                     all processes on hakmem, for Prometheus
/explain?pid=N               why the resident memory of a process is what it is; &format=json
/profile?pid=N               who holds the memory of a process that samples, for pprof; &format=json
"""
FORMS = {"/explain": {"text": "text/plain", "json": "application/json"},
         "/profile": {"pprof": "application/octet-stream", "json": "application/json"}}  # the first where none is asked for
LOOKS = threading.BoundedSemaphore(AT_ONCE)  # anybody may ask
Answer = tuple[str, str, bytes]  # status, type, body


def _of_process(path: str, words: dict[str, list[str]], limits: Limits) -> Answer:
    """What is asked about one."""
    forms = FORMS[path]
    pid, form = words.get("pid", [""])[0], words.get("format", list(forms))[0]
    if not (pid.isascii() and pid.isdigit() and 0 < len(pid) <= 9):
        return "400 Bad Request", "text/plain", b"pid=N is wanted, the PID of a process\n"
    if form not in forms:
        return "400 Bad Request", "text/plain", f"format is {' or '.join(forms)}\n".encode()
    if not LOOKS.acquire(blocking=False):
        return "503 Service Unavailable", "text/plain", b"others are being looked into: try again\n"
    try:
        body = (explained if path == "/explain" else profiled)(int(pid), form, limits.seconds)
    except ViewError as error:
        gone = not process.lives(int(pid))
        return "404 Not Found" if gone else "503 Service Unavailable", "text/plain", f"{error}\n".encode()
    finally:
        LOOKS.release()
    return "200 OK", forms[form], body


def application(collector: Collector) -> Callable:
    """What a WSGI server calls."""
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = make_wsgi_app(registry)

    def answer(environ: dict, start_response: Callable) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            status, kind, body = "405 Method Not Allowed", "text/plain", b"only GET\n"
        elif path == "/metrics":
            return metrics(environ, start_response)
        elif path in FORMS:
            status, kind, body = _of_process(path, parse_qs(environ.get("QUERY_STRING", "")), collector.limits)
        elif path == "/":
            status, kind, body = "200 OK", "text/plain", ABOUT.encode()
        else:
            status, kind, body = "404 Not Found", "text/plain", b"there are /metrics, /explain?pid=N and /profile?pid=N\n"
        text = "; charset=utf-8" if kind != "application/octet-stream" else ""
        start_response(status, [("Content-Type", kind + text), ("Content-Length", str(len(body)))])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]
    return answer


class _Quiet(WSGIRequestHandler):
    """Without a line for each request."""

    def log_message(self, *_) -> None:
        pass


class _Server(ThreadingWSGIServer):
    def handle_error(self, request, client_address) -> None:
        """Who asked is gone, or it is a mistake of ours: one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            print(f"hakmem: exporter: {type(error).__name__}: {error}", file=sys.stderr)


def server(host: str, port: int, collector: Collector) -> WSGIServer:
    return make_server(host, port, application(collector), server_class=_Server, handler_class=_Quiet)
