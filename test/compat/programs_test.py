#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of Debian that are linked with jemalloc, preloaded: they answer, and their memory is hakmem's.

Usage: programs_test.py
"""
import contextlib
import http.server
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../observe"))
from observing import document, require_reading  # noqa: E402
from reporting import LIBRARY, SkipTest, run_tests, wait_until  # noqa: E402

OBSERVER = os.environ.get("HAKMEM_BUILD", "") + "/observe/hakmem-observe"

KEY = 'key k { algorithm hmac-sha256; secret "aGFrbWVtaGFrbWVtaGFrbWVt"; };\n'
ZONE = "$TTL 60\n@ SOA ns root 1 60 60 60 60\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.7\n"


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def tool(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None or b"libjemalloc" not in subprocess.run(["ldd", found], capture_output=True, check=False).stdout:
        raise SkipTest(f"no {name} that is linked with libjemalloc")
    return found


def address_of(name, port):
    """By TCP, as a resolver asks for it; None: no answer yet."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack(">6H", 7, 0, 1, 0, 0, 0) + labels + struct.pack(">2H", 1, 1)
    try:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(struct.pack(">H", len(query)) + query)
            answer = peer.makefile("rb")
            answer = answer.read(struct.unpack(">H", answer.read(2))[0])
    except (OSError, struct.error):
        return None
    has_answer = len(answer) >= len(query) + 16 and answer[6:8] == b"\0\1"
    return socket.inet_ntoa(answer[len(query) + 12:len(query) + 16]) if has_answer else None


@contextlib.contextmanager
def running(folder, *command, status=0):
    """A server, and its status when it is asked to end."""
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="guard:0")
    with open(folder + "/log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()
        assert process.wait() == status


def live_of(pid):
    return document(OBSERVER, "stats", pid)["bytes"]["live"]


def test_named_answers_and_its_memory_is_that_of_hakmem(folder):
    named, rndc = tool("named"), tool("rndc")
    require_reading()
    port, control = free_ports(2)
    with open(folder + "/zone", "w", encoding="utf-8") as file:
        file.write(ZONE)
    with open(folder + "/named.conf", "w", encoding="utf-8") as file:
        file.write(f'options {{ directory "{folder}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;\n'
                   f'pid-file "{folder}/pid"; session-keyfile none; statistics-file "{folder}/statistics"; minimal-responses yes;\n'
                   f'dnssec-validation no; }};\n{KEY}controls {{ inet 127.0.0.1 port {control} allow {{ 127.0.0.1; }} keys {{ k; }}; }};\n'
                   f'zone "example.test" {{ type master; file "{folder}/zone"; }};\n')
    with open(folder + "/rndc.conf", "w", encoding="utf-8") as file:
        file.write(KEY + f"options {{ default-key k; default-server 127.0.0.1; default-port {control}; }};\n")
    with running(folder, named, "-g", "-n", "1", "-c", folder + "/named.conf") as process:
        wait_until("named", lambda: address_of("www.example.test", port) or process.poll() is not None)
        assert address_of("www.example.test", port) == "192.0.2.7"
        subprocess.run([rndc, "-c", folder + "/rndc.conf", "stats"], check=True)
        wait_until("statistics", lambda: os.path.exists(folder + "/statistics"))
        assert live_of(process.pid) > 1 << 20  # libisc takes its memory by mallocx


class Pages(http.server.BaseHTTPRequestHandler):
    served = 0

    def do_GET(self):  # noqa: N802
        Pages.served += 1
        body = self.path.encode() * 1000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def page_of(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.read()
    except OSError:
        return None


def test_varnishd_keeps_pages_in_memory_of_hakmem(folder):
    varnishd = tool("varnishd")
    require_reading()
    port, = free_ports(1)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as origin:
        threading.Thread(target=origin.serve_forever).start()
        try:
            with running(folder, varnishd, "-F", "-j", "none", "-n", folder, "-a", f"127.0.0.1:{port}", "-b",
                         f"127.0.0.1:{origin.server_port}", "-s", "default,64m") as process:
                wait_until("varnishd", lambda: page_of(port, "/0") or process.poll() is not None)
                with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
                    worker = int(children.read())
                before, served = live_of(worker), Pages.served
                for path in [f"/{i}" for i in range(1, 301)] * 2:
                    assert page_of(port, path) == path.encode() * 1000
                assert Pages.served == served + 300  # the second time from the cache
                assert live_of(worker) - before > 300 * 2000
        finally:
            origin.shutdown()


def test_nghttpd_answers(folder):
    nghttpd, curl = tool("nghttpd"), shutil.which("curl")
    if curl is None:
        raise SkipTest("no curl")
    require_reading()
    port, = free_ports(1)
    with open(folder + "/page", "w", encoding="ascii") as file:
        file.write("page" * 10000)

    def answer():
        done = subprocess.run([curl, "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{port}/page"], capture_output=True, text=True,
                              check=False)
        return done.stdout
    with running(folder, nghttpd, "--no-tls", "-a", "127.0.0.1", "-d", folder, str(port), status=-signal.SIGTERM) as process:
        wait_until("nghttpd", lambda: answer() or process.poll() is not None)
        assert answer() == "page" * 10000
        assert live_of(process.pid) > 0


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
