#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers of Debian that are linked with jemalloc, preloaded: they answer, and their memory is hakmem's. What else these packages have:
packages_test.py.

Usage: programs_test.py
"""
import contextlib
import http.server
import json
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
from observing import document, observe, require_reading  # noqa: E402
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
    """An ELF file: what it is linked with is known."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None or b"libjemalloc" not in subprocess.run(["ldd", found], capture_output=True, check=False).stdout:
        raise SkipTest(f"no {name} that is linked with libjemalloc")
    return found


def address_of(name, port):
    """By TCP, as a resolver asks for it; None: no answer yet."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">2H", 1, 1)
    try:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(struct.pack(">H", len(query)) + query)
            answer = peer.makefile("rb")
            answer = answer.read(struct.unpack(">H", answer.read(2))[0])
    except (OSError, struct.error):
        return None
    has_answer = len(answer) >= len(query) + 16 and answer[6:8] == b"\0\1"
    return socket.inet_ntoa(answer[len(query) + 12:len(query) + 16]) if has_answer else None


def preloaded(**more):
    return dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="guard:0", **more)


@contextlib.contextmanager
def running(folder, *command, status=0, environment=None, ends=signal.SIGTERM):
    """A server, and its status when it is asked to end."""
    environment = environment or preloaded()
    with open(folder + "/log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
        try:
            yield process
        finally:
            process.send_signal(ends)
        with open(folder + "/log", encoding="utf-8", errors="replace") as log:
            assert process.wait() == status, (process.returncode, log.read()[-2000:])


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
        for client in (("dig", "+short", "@127.0.0.1", "-p", str(port)), ("host", "-p", str(port))):
            if shutil.which(client[0]):
                name = ("www.example.test", "127.0.0.1") if client[0] == "host" else ("www.example.test",)
                answer = subprocess.run([*client, *name], env=preloaded(), capture_output=True, text=True, check=True)
                assert "192.0.2.7\n" in answer.stdout and not answer.stderr, answer


def test_kresd_answers(folder):
    kresd = tool("kresd")
    require_reading()
    port, = free_ports(1)
    with open(folder + "/conf", "w", encoding="utf-8") as file:
        file.write(f"net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\nmodules = {{ 'hints > iterate' }}\n"
                   "hints['www.example.org'] = '192.0.2.7'\ncache.open(10 * MB, 'lmdb://.')\ntrust_anchors.remove('.')\n")
    with running(folder, kresd, "-n", "-c", folder + "/conf", folder) as process:
        wait_until("kresd", lambda: address_of("www.example.org", port) or process.poll() is not None)
        assert address_of("www.example.org", port) == "192.0.2.7"
        assert live_of(process.pid) > 0


CLICKHOUSE = """<yandex><logger><level>warning</level><console>1</console></logger><tcp_port>{0}</tcp_port><http_port>{1}</http_port>
<listen_host>127.0.0.1</listen_host><path>{2}/data/</path><tmp_path>{2}/tmp/</tmp_path><mark_cache_size>10000000</mark_cache_size>
<users_config>{2}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database></yandex>
"""
USERS = """<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users></yandex>
"""


def test_clickhouse_answers_its_client(folder):
    server, client = tool("clickhouse-server"), tool("clickhouse-client")
    require_reading()
    port, web = free_ports(2)
    for name, text in (("server.xml", CLICKHOUSE.format(port, web, folder)), ("users.xml", USERS)):
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def answer(query):
        done = subprocess.run([client, "--host", "127.0.0.1", "--port", str(port), "--query", query], env=preloaded(), capture_output=True,
                              text=True, check=False)
        return done.stdout or done.stderr
    # Killed: at its end 18.16.1 reads a freed block (in ~ConfigProcessor, says valgrind on jemalloc, too), and may free it again.
    with running(folder, server, f"--config-file={folder}/server.xml", status=-signal.SIGKILL, ends=signal.SIGKILL) as process:
        wait_until("clickhouse-server", lambda: answer("SELECT 1") == "1\n" or process.poll() is not None)
        for query, wanted in (("CREATE TABLE t (k UInt64, v String) ENGINE = MergeTree ORDER BY k", ""),
                              ("INSERT INTO t SELECT number % 1000, toString(number) FROM numbers(300000)", ""),
                              ("SELECT count(), uniqExact(k), max(length(v)), sum(toUInt64(v)) FROM t", "300000\t1000\t6\t44999850000\n")):
            got = answer(query)
            assert got == wanted, (query, got)
        bytes_of = document(OBSERVER, "stats", process.pid)["bytes"]
        assert bytes_of["live"] + bytes_of["large"] + bytes_of["huge"] > 1 << 20, bytes_of


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
        for client in (("nghttp", f"http://127.0.0.1:{port}/page"), ("h2load", "-n", "200", "-c", "4", f"http://127.0.0.1:{port}/page")):
            if shutil.which(client[0]):
                got = subprocess.run([tool(client[0]), *client[1:]], env=preloaded(), capture_output=True, text=True, check=True)
                assert "200 2xx" in got.stdout or got.stdout == "page" * 10000, got


RUBY = """require 'erb'
require 'json'
require 'socket'
page = ERB.new('<ul><% rows.each do |row| %><li><%= row[:name] %>: <%= row[:text] %></li><% end %></ul>')
server = TCPServer.new('127.0.0.1', ARGV[0].to_i)
kept = {}
5.times.map do
  Thread.new do
    loop do
      client = server.accept
      number = client.gets[/\\d+/].to_i
      rows = Array.new(200) { |i| { name: "row #{i}", text: 'x' * (number + i) } }
      kept[number] = JSON.generate(rows)
      body = page.result_with_hash(rows: rows)
      client.write("HTTP/1.0 200 OK\\r\\nContent-Length: #{body.bytesize}\\r\\n\\r\\n#{body}")
      client.close
    end
  end
end.each(&:join)
"""


def test_ruby_with_the_path_and_options_of_images_for_rails(folder):
    """Which link the library to a path of theirs, preload that, and set options of jemalloc's."""
    ruby = shutil.which("ruby")
    if ruby is None:
        raise SkipTest("no ruby")
    require_reading()
    port, = free_ports(1)
    os.symlink(LIBRARY, folder + "/libjemalloc.so.2")
    os.symlink(folder + "/libjemalloc.so.2", folder + "/libjemalloc.so")
    with open(folder + "/app.rb", "w", encoding="ascii") as file:
        file.write(RUBY)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_")}
    environment.update(LD_PRELOAD=folder + "/libjemalloc.so", MALLOC_CONF="dirty_decay_ms:1000,narenas:2,background_thread:true")
    with running(folder, ruby, folder + "/app.rb", str(port), status=-signal.SIGTERM, environment=environment) as process:
        wait_until("ruby", lambda: page_of(port, "/1") or process.poll() is not None)
        for number in range(1, 101):
            page = page_of(port, f"/{number}")
            assert page.count(b"<li>") == 200 and page.count(b"x") == 200 * number + 199 * 100, page
        assert live_of(process.pid) > 3 << 20
        options = {one["name"]: one["value"] for one in json.loads(observe(OBSERVER, "options", process.pid)[1])["options"]}
        assert options["scavenger"] == "1", options
    with open(folder + "/log", encoding="utf-8", errors="replace") as log:
        assert "hakmem" not in log.read()


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
