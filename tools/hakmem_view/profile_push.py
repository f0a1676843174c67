# SPDX-License-Identifier: MIT
"""Sends a profile to a server that collects them: to Pyroscope's /ingest as pprof, or by OTLP over HTTP. By the standard library
alone but for the forms themselves, which are handed in."""
from __future__ import annotations

import base64
import json
import os
import secrets
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Optional
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from . import process
from .errors import ViewError
from .profile_model import Profile
from .wording import size

INGEST, PROFILES = "/ingest", "/v1development/profiles"
PORTS = {4040: INGEST, 4318: PROFILES}  # what listens there, where the URL has no path
FORMS = {INGEST: "pprof", PROFILES: "otlp"}
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # name=value,name=value
SECONDS = 30
MOST_SAID = 200  # letters of a server's complaint
LEVELS = ("inuse_objects", "inuse_space", "peak_space", "pinned_space", "slack_space")  # as they are at a time: sums would be added up


@dataclass(frozen=True)
class Server:
    url: str  # without user and password
    path: str  # INGEST or PROFILES, which its own ends with
    secret: str = ""  # user:password

    @property
    def form(self) -> str:
        return FORMS[self.path]

    @property
    def name(self) -> str:
        return process.plain(urlsplit(self.url).netloc)


def server(text: str) -> Server:
    """From what the user says, or an error that says what he may."""
    try:
        found = urlsplit(text)
        port = found.port
    except ValueError as error:
        raise ViewError(f"profile: --push: {process.plain(str(error))}") from error
    path = found.path.rstrip("/") or PORTS.get(port or 0, "")
    end = next((one for one in FORMS if path.endswith(one)), "")
    if found.scheme not in ("http", "https") or not found.hostname or not end or found.query or found.fragment:
        raise ViewError(f"profile: --push is http://HOST:4040{INGEST} of Pyroscope or http://HOST:4318{PROFILES} of OpenTelemetry, "
                        f"not '{process.plain(text)[:80]}'")
    secret = f"{unquote(found.username)}:{unquote(found.password or '')}" if found.username else ""
    return Server(urlunsplit((found.scheme, found.netloc.rpartition("@")[2], path, "", "")), end, secret)


def _headers(to: Server) -> dict[str, str]:
    pairs = (one.partition("=") for one in os.environ.get(HEADERS, "").split(",") if "=" in one)
    found = {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}
    if to.secret:
        found["Authorization"] = f"Basic {base64.b64encode(to.secret.encode()).decode()}"
    return found


def _types() -> dict[str, dict]:
    """What Pyroscope makes of our types of samples."""
    return {name: {"units": "objects" if name.endswith("objects") else "bytes", "display-name": name, "aggregation": "average",
                   "sampled": False} for name in LEVELS}


def _label(text: str) -> str:
    """Of an application's name, in which some signs have a meaning."""
    return "".join(letter if letter.isalnum() or letter in "._-/" else "_" for letter in text) or "program"


def _ingest(to: Server, found: Profile, body: bytes) -> tuple[str, bytes, str]:
    """The URL, the body and its type: a form with two parts."""
    words = {"name": f"{_label(found.program)}{{host={_label(os.uname().nodename)},pid={found.pid}}}", "format": "pprof", "spyName": "hakmem",
             "from": str(int(found.time - found.seconds)), "until": str(max(int(found.time), int(found.time - found.seconds) + 1))}
    mark = secrets.token_hex(16)
    parts = (("profile", "profile.pprof", "application/octet-stream", body),
             ("sample_type_config", "types.json", "application/json", json.dumps(_types()).encode()))
    pieces = [f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\nContent-Type: {kind}\r\n\r\n'.encode() +
              content + b"\r\n" for name, file, kind, content in parts]
    return f"{to.url}?{urlencode(words, quote_via=quote)}", b"".join(pieces) + f"--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


class _Stays(urllib.request.HTTPRedirectHandler):
    """Passes nothing on to another server: headers may be secret."""

    def redirect_request(self, *_) -> None:
        return None


def send(to: Server, found: Profile, body: bytes) -> tuple[str, bytes]:
    """`body`: of the form that the server takes. Returns what to tell the user, and what the server answered."""
    url, data, kind = _ingest(to, found, body) if to.path == INGEST else (to.url, body, "application/x-protobuf")
    request = urllib.request.Request(url, data=data, headers={**_headers(to), "Content-Type": kind}, method="POST")  # noqa: S310
    try:
        with urllib.request.build_opener(_Stays).open(request, timeout=SECONDS) as answer:
            said = answer.read(1 << 20)
    except urllib.error.HTTPError as error:
        raise ViewError(f"{to.name} refuses the profile: {_complaint(error)}") from error
    except (OSError, ValueError) as error:
        raise ViewError(f"cannot send to {to.name}: {process.plain(str(getattr(error, 'reason', None) or error))[:MOST_SAID]}") from error
    return f"{to.name} has the profile of {process.plain(found.program) or 'the program'}: {size(len(body))}", said


def _complaint(error: urllib.error.HTTPError) -> str:
    said: Optional[bytes] = None
    try:
        said = error.read(1 << 12)
    except OSError:
        pass
    text = " ".join((said or b"").decode("utf-8", "replace").split())
    return f"{error.code} {error.reason}{': ' if text.isprintable() and text else ''}{text if text.isprintable() else ''}"[:MOST_SAID]
