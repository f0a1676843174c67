# SPDX-License-Identifier: MIT
"""nginx with load tools and curl: answers plain, compressed, proxied and over TLS."""

import contextlib
import re
import signal
import string
from dataclasses import dataclass

from rig import inputs
from rig.proof import family
from rig.registry import program
from rig.run import GUEST
from rig.waiting import accepts, free_port, wait_for


@dataclass
class Site:
    plain: int  # ports
    tls: int

    def url(self, path):
        return f"http://127.0.0.1:{self.plain}/{path}"

    def tls_url(self, path):
        return f"https://127.0.0.1:{self.tls}/{path}"


@contextlib.contextmanager
def served(run):
    """nginx with two workers on some pages; yields (site, process)."""
    site = Site(free_port(), free_port())
    for folder in ("logs", "pages", "store", "temp"):
        (run.place / folder).mkdir()
    (run.place / "store").chmod(0o777)
    for size in (0, 1, 1000, 20_000, 300_000, 3_000_000):
        run.write(f"pages/{size}.txt", inputs.text(size, size))
    run.cmd(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        label="openssl req",
        clean=lambda text: b"",
    )
    settings = string.Template((GUEST / "nginx.conf.in").read_text(encoding="ascii"))
    run.write("nginx.conf", settings.substitute(place=run.place, plain=site.plain, tls=site.tls))
    words = [
        "nginx",
        "-p",
        str(run.place),
        "-e",
        "logs/start.log",
        "-c",
        "nginx.conf",
        "-g",
        "daemon off;",
    ]
    with run.server(
        *words, ready=lambda: accepts(site.plain) and accepts(site.tls), stop=signal.SIGQUIT
    ) as process:
        yield site, process
    run.check_log(run.place / "logs/error.log")


@program("nginx ab wrk curl openssl", long=True)
def nginx(run):
    with served(run) as (site, process):
        for path in ("20000.txt", "3000000.txt", "through/300000.txt"):
            run.cmd(
                "ab",
                "-q",
                "-k",
                "-n",
                "1500",
                "-c",
                "16",
                "-H",
                "Accept-Encoding: gzip",
                site.url(path),
                label=f"ab {path}",
                clean=ab_counts,
            )
        run.cmd(
            "ab",
            "-q",
            "-n",
            "300",
            "-c",
            "8",
            site.tls_url("20000.txt"),
            label="ab over TLS",
            clean=ab_counts,
        )
        before = set(family(process.pid)[1:])
        process.send_signal(signal.SIGHUP)
        run.note("new workers, old ones ended", wait_for(lambda: replaced(before, process.pid), 30))
        run.cmd(
            "wrk",
            "-t2",
            "-c32",
            "-d1s",
            "-H",
            "Accept-Encoding: gzip",
            site.url("300000.txt"),
            label="wrk",
            clean=wrk_errors,
        )
        run.cmd("curl", "-sS", site.url("300000.txt"), label="curl after the reload")


@program("nginx curl openssl")
def curl(run):
    with served(run) as (site, _):
        for path in ("0.txt", "1000.txt", "3000000.txt", "through/20000.txt", "missing.txt"):
            run.cmd(
                "curl",
                "-sS",
                "-w",
                "%{http_code} %{size_download}",
                site.url(path),
                label=f"curl {path}",
            )
            run.cmd(
                "curl", "-sS", "--compressed", site.url(path), label=f"curl --compressed {path}"
            )
            run.cmd(
                "curl",
                "-sS",
                "-k",
                "--http2",
                "-w",
                "%{http_version}",
                site.tls_url(path),
                label=f"curl TLS {path}",
            )
        many = [
            word
            for n in range(60)
            for word in ("-o", f"got/{n}", site.url(f"{'20000' if n % 2 else '300000'}.txt"))
        ]
        run.cmd(
            "curl",
            "-sS",
            "--no-progress-meter",
            "-Z",
            "--parallel-max",
            "20",
            "--create-dirs",
            *many,
            label="curl in parallel",
        )
        for n in range(60):
            run.file(f"got/{n}")
        run.write("upload", inputs.mixture(2 << 20))
        run.cmd("curl", "-sS", "-T", "upload", site.url("store/upload"), label="curl upload")
        wait_for((run.place / "store/upload").exists, 5)
        run.file("store/upload")
        run.cmd(
            "curl",
            "-sS",
            "-r",
            "100-199,5000-5099",
            site.url("20000.txt"),
            label="curl ranges",
            clean=lambda text: re.sub(rb"\d{20}", b"boundary", text),
        )


def replaced(before, pid):
    now = set(family(pid)[1:])
    return len(now) == len(before) and not now & before


def ab_counts(text):
    """The lines that do not depend on time; a failed request would show."""
    wanted = (
        rb"(Document (Path|Length)|Complete requests|Failed requests|Non-2xx|HTML transferred).*"
    )
    return b"\n".join(match.group(0) for match in re.finditer(wanted, text))


def wrk_errors(text):
    return b"\n".join(
        line for line in text.splitlines() if re.search(rb"Socket errors|Non-2xx", line)
    )
