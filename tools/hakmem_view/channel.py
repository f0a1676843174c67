# SPDX-License-Identifier: MIT
"""One question and one answer on the control channel: HTTP/1.0 over a unix socket."""
from __future__ import annotations

import os
import socket
import stat
import struct
import time
from dataclasses import dataclass, field

from .errors import Closed, Slow, ViewError

SECONDS = 10.0  # for a whole answer
MOST_BYTES = 256 << 20  # of an answer
MOST_HEAD = 16 << 10  # of its headers
PIECE = 1 << 16


@dataclass
class Answer:
    status: int
    reason: str
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    pid: int = 0  # of who listens, in our PID namespace


def is_abstract(name: str) -> bool:
    """Whether a name that is no file is that of an abstract socket."""
    if name.startswith("@") or "/" in name or os.path.lexists(name):
        return False
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as lines:
            return any(line.rstrip("\n").endswith(f" @{name}") for line in lines)
    except OSError:
        return False


def _connect(link: socket.socket, address: str) -> None:
    """Addresses of the kernel are short: a file is reached through its folder."""
    if address.startswith("@"):
        link.connect("\0" + address[1:])
        return
    folder, name = os.path.split(address)
    at = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.stat(name, dir_fd=at).st_mode):
            raise ViewError(f"{address} is no socket")
        link.connect(f"/proc/self/fd/{at}/{name}")
    finally:
        os.close(at)


def _dial(address: str, seconds: float) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(seconds)
    try:
        _connect(link, address)
    except BaseException as error:
        link.close()
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise Closed(f"there is no socket {address}") from error
        if isinstance(error, ViewError):
            raise
        if isinstance(error, PermissionError):
            raise ViewError(f"no permission to connect to {address}: only its owner and root may") from error
        if isinstance(error, ConnectionRefusedError):
            raise Closed(f"nobody listens at {address}") from error
        if isinstance(error, (TimeoutError, BlockingIOError)):
            raise Slow(f"{address} does not take the connection") from error
        if isinstance(error, (OSError, ValueError)):
            raise ViewError(f"cannot connect to {address}: {getattr(error, 'strerror', None) or error}") from error
        raise
    return link


def _peer(link: socket.socket) -> int:
    try:
        return struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    except OSError:
        return 0


def _receive(link: socket.socket, address: str, seconds: float) -> bytes:
    """Everything up to the end of the stream."""
    until, data = time.monotonic() + seconds, bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise Slow(f"{address} does not answer within {seconds:.0f} s")
        link.settimeout(left)
        try:
            piece = link.recv(PIECE)
        except TimeoutError:
            continue
        except ConnectionError:
            break
        if not piece:
            break
        data += piece
        if len(data) > MOST_BYTES:
            raise ViewError(f"{address} answers with more than {MOST_BYTES >> 20} MiB")
    return bytes(data)


def _parse(data: bytes, address: str) -> Answer:
    head, end, body = data.partition(b"\r\n\r\n")
    if not data:
        raise Closed(f"{address} closed the connection without an answer: it answers its owner and root only")
    lines = head[:MOST_HEAD].decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if not words[0].startswith("HTTP/"):
        raise ViewError(f"{address} is not a control socket of hakmem: it does not answer as HTTP")
    if not end:
        raise Closed(f"{address} closed the connection within its answer")
    if len(words) < 2 or not words[1].isascii() or not words[1].isdigit():
        raise ViewError(f"{address} answers without a status")
    answer = Answer(int(words[1]), words[2] if len(words) > 2 else "", body=body)
    for line in lines[1:]:
        key, _, value = line.partition(":")
        answer.headers[key.strip().lower()] = value.strip()
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        if len(body) < int(length):
            raise Closed(f"{address} closed the connection after {len(body)} of {length} bytes")
        answer.body = body[:int(length)]
    return answer


def ask(address: str, path: str, seconds: float = SECONDS, method: str = "GET") -> Answer:
    """Raises ViewError: Closed if nobody is there any more, Slow if there is no answer in time."""
    with _dial(address, seconds) as link:
        pid = _peer(link)
        try:
            link.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode("ascii"))
        except TimeoutError as error:
            raise Slow(f"{address} does not answer within {seconds:.0f} s") from error
        except ConnectionError:
            pass  # an answer may have come nevertheless
        answer = _parse(_receive(link, address, seconds), address)
    answer.pid = pid
    return answer
