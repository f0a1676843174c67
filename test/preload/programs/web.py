# SPDX-License-Identifier: MIT
"""nginx with load tools and curl: answers plain, compressed, proxied and over TLS."""

import contextlib
import re
import signal
import string

from rig import inputs
from rig.proof import family
from rig.registry import program
from rig.run import GUEST
from rig.waiting import accepts, wait_for

# The lines of ab and wrk that do not depend on time; a failed request would show.
COUNTS = re.compile(rb"(?:Document (?:Path|Length)|Complete requests|Failed requests|Non-2xx"
                    rb"|HTML transferred|Socket errors).*")


def counts(text):
    return b"\n".join(COUNTS.findall(text))


@contextlib.contextmanager
def served(run):
    """nginx with two workers on some pages; yields its two addresses and its process."""
    plain, tls = run.port(), run.port()
    for folder in ("logs", "pages", "store", "temp"):
        (run.place / folder).mkdir()
    (run.place / "store").chmod(0o777)
    for size in (0, 1, 1000, 20_000, 300_000, 3_000_000):
        run.write(f"pages/{size}.txt", inputs.text(size, size))
    run.cmd("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
            " -keyout key.pem -out cert.pem", clean=lambda text: b"")
    settings = string.Template((GUEST / "nginx.conf.in").read_text(encoding="ascii"))
    run.write("nginx.conf", settings.substitute(place=run.place, plain=plain, tls=tls))
    words = f"nginx -p {run.place} -e logs/start.log -c nginx.conf -g 'daemon off;'"
    with run.server(words, ready=lambda: accepts(plain) and accepts(tls),
                    stop=signal.SIGQUIT) as process:
        yield f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{tls}", process
    run.check_log(run.place / "logs/error.log")


@program("nginx ab wrk curl openssl", long=True)
def nginx(run):
    packed = "-H 'Accept-Encoding: gzip'"
    with served(run) as (plain, tls, process):
        for path in ("20000.txt", "3000000.txt", "through/300000.txt"):
            run.cmd(f"ab -q -k -n 1500 -c 16 {packed} {plain}/{path}", clean=counts)
        run.cmd(f"ab -q -n 300 -c 8 {tls}/20000.txt", clean=counts)
        before = set(family(process.pid)[1:])
        process.send_signal(signal.SIGHUP)
        run.note("new workers, old ones ended", wait_for(lambda: replaced(before, process.pid)))
        run.cmd(f"wrk -t2 -c32 -d1s {packed} {plain}/300000.txt", clean=counts)
        run.cmd(f"curl -sS {plain}/300000.txt")


@program("nginx curl openssl")
def curl(run):
    with served(run) as (plain, tls, _):
        for path in ("0.txt", "1000.txt", "3000000.txt", "through/20000.txt", "missing.txt"):
            run.cmd(f"curl -sS -w '%{{http_code}} %{{size_download}}' {plain}/{path}")
            run.cmd(f"curl -sS --compressed {plain}/{path}")
            run.cmd(f"curl -sS -k --http2 -w '%{{http_version}}' {tls}/{path}")
        many = " ".join(f"-o got/{n} {plain}/{(300_000, 20_000)[n % 2]}.txt" for n in range(60))
        run.cmd(f"curl -sS --no-progress-meter -Z --parallel-max 20 --create-dirs {many}")
        for n in range(60):
            run.file(f"got/{n}")
        run.write("upload", inputs.mixture(2 << 20))
        run.cmd(f"curl -sS -T upload {plain}/store/upload")
        wait_for((run.place / "store/upload").exists)
        run.file("store/upload")
        run.cmd(f"curl -sS -r 100-199,5000-5099 {plain}/20000.txt",
                clean=lambda text: re.sub(rb"\d{20}", b"boundary", text))


def replaced(before, pid):
    now = set(family(pid)[1:])
    return len(now) == len(before) and not now & before
