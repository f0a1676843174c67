#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of Debian that are linked with jemalloc, preloaded: bind9's named answers, writes statistics, and its memory is hakmem's.

Usage: programs_test.py
"""
import os
import shutil
import socket
import struct
import subprocess
import sys

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
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="guard:0")
    with open(folder + "/log", "wb") as log, subprocess.Popen([named, "-g", "-n", "1", "-c", folder + "/named.conf"], stdout=log,
                                                              stderr=log, env=environment) as process:
        try:
            wait_until("named", lambda: address_of("www.example.test", port) or process.poll() is not None)
            assert address_of("www.example.test", port) == "192.0.2.7"
            subprocess.run([rndc, "-c", folder + "/rndc.conf", "stats"], check=True)
            wait_until("statistics", lambda: os.path.exists(folder + "/statistics"))
            live = document(OBSERVER, "stats", process.pid)["bytes"]["live"]
            print("named holds", live, flush=True)
            assert live > 1 << 20  # libisc takes its memory by mallocx
        finally:
            process.terminate()
        assert process.wait() == 0


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
