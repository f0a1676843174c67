# SPDX-License-Identifier: MIT
"""Profiles that are sent: what a Pyroscope and a collector of OpenTelemetry get, and what is said where they do not take it.
The server is one of ours on 127.0.0.1."""
import base64
import email
import email.policy
import gzip
import http.server
import json
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

from hakmem_view import profile_pprof, profile_push
from hakmem_view.errors import ViewError


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.answer: tuple[int, bytes, dict[str, str]] = (200, b"", {})
        self.got: list[tuple[str, dict, bytes]] = []  # URL, headers in small letters, body

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:  # noqa: N802 - its name is given
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        status, text, headers = self.server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def server():
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_pyroscope_gets_pprof_with_names_times_and_kinds(server, program, view):
    one = program("on")
    done = view("profile", "--seconds", "0", "--push", f"{server.url}/ingest", one.pid)
    assert (done.returncode, done.stdout) == (0, "") and "has the profile of program: " in done.stderr, done
    (url, headers, body), = server.got
    words = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert urlsplit(url).path == "/ingest" and (words["format"], words["spyName"]) == ("pprof", "hakmem")
    assert words["name"].startswith("program{host=") and words["name"].endswith(f",pid={one.pid}}}")
    assert int(words["until"]) - int(words["from"]) >= 60
    parts = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in email.message_from_bytes(
        b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body, policy=email.policy.HTTP).iter_parts()}
    kinds = json.loads(parts["sample_type_config"])
    sent = profile_pprof.message().FromString(gzip.decompress(parts["profile"]))
    types = {sent.string_table[one.type] for one in sent.sample_type}
    assert set(kinds) < types and not any(name.startswith("alloc") for name in kinds)
    assert kinds["inuse_space"] == {"units": "bytes", "display-name": "inuse_space", "aggregation": "average", "sampled": False}
    assert any(sent.string_table[one.name].startswith("program+0x") for one in sent.function)


def test_collector_gets_otlp_and_the_headers_of_the_variable(server, program, view):
    done = view("profile", "--seconds", "0", "--push", f"{server.url}/v1development/profiles/", program("on").pid,
                OTEL_EXPORTER_OTLP_HEADERS="x-team=one%20two, authorization=Bearer abc")
    assert done.returncode == 0, done
    (url, headers, body), = server.got
    assert (url, headers["content-type"]) == ("/v1development/profiles", "application/x-protobuf")
    assert (headers["x-team"], headers["authorization"]) == ("one two", "Bearer abc")
    sent = service.ExportProfilesServiceRequest.FromString(body)
    assert sent.resource_profiles[0].scope_profiles[0].profiles and len(sent.dictionary.stack_table) > 1


def test_user_and_password_go_into_a_header_not_into_what_is_said(server, program, view):
    url = server.url.replace("//", "//me%40home:secret@")
    done = view("profile", "--seconds", "0", "--push", f"{url}/ingest", program("on").pid)
    assert done.returncode == 0 and "secret" not in done.stdout + done.stderr
    assert server.got[0][1]["authorization"] == f"Basic {base64.b64encode(b'me@home:secret').decode()}" and "secret" not in server.got[0][0]


def test_server_that_does_not_take_it_is_one_line(server, program, refuses):
    one = program("on")
    for answer, said in (((422, b"no such tenant\n", {}), "refuses the profile: 422 Unprocessable Entity: no such tenant"),
                         ((500, b"\x1b[2J\x00", {}), "refuses the profile: 500 Internal Server Error"),
                         ((307, b"", {"Location": "http://127.0.0.1:1/ingest"}), "refuses the profile: 307 Temporary Redirect")):
        server.answer = answer
        text = refuses("profile", "--seconds", "0", "--push", f"{server.url}/ingest", one.pid)
        assert said in text and "\x1b" not in text
    partly = service.ExportProfilesServiceResponse()
    partly.partial_success.rejected_profiles, partly.partial_success.error_message = 2, "too old\x1b"
    server.answer = (200, partly.SerializeToString(), {})
    assert "refuses the profile: too old" in refuses("profile", "--seconds", "0", "--push", f"{server.url}/v1development/profiles", one.pid)
    server.server_close()
    assert "cannot send to 127.0.0.1:" in refuses("profile", "--seconds", "0", "--push", f"{server.url}/ingest", one.pid)


@pytest.mark.parametrize("text, url, form", [
    ("http://h:4040", "http://h:4040/ingest", "pprof"), ("https://u:p@h/pyroscope/ingest", "https://h/pyroscope/ingest", "pprof"),
    ("http://[::1]:4318/", "http://[::1]:4318/v1development/profiles", "otlp"),
    ("http://h/v1development/profiles", "http://h/v1development/profiles", "otlp")])
def test_urls(text, url, form):
    found = profile_push.server(text)
    assert (found.url, found.form) == (url, form)


@pytest.mark.parametrize("text", ["h:4040", "ftp://h/ingest", "http:///ingest", "http://h", "http://h:99999/ingest", "http://h/ingest?x=1",
                                  "http://h:4040/other", "http://[/ingest"])
def test_urls_that_are_none(text):
    with pytest.raises(ViewError, match="--push"):
        profile_push.server(text)
