# SPDX-License-Identifier: MIT
"""A client for servers on 127.0.0.1: several connections at once, on each one request after the other."""
from __future__ import annotations

import hashlib
import selectors
import socket
import time
from typing import Callable

READ_BYTES = 1 << 18


class _Conversation:
    """One connection: what is left to ask, and what came back."""

    def __init__(self, port: int, requests: list[bytes]):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.requests = iter(requests)
        self.unsent = memoryview(b"")
        self.reply = bytearray()
        self.replies = hashlib.sha256()

    def next(self) -> bool:
        request = next(self.requests, None)
        if request is None:
            return False
        self.unsent = memoryview(request)
        self.send()
        return True

    def send(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent):]
        except BlockingIOError:
            pass

    def receive(self) -> None:
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the server closed the connection")
        self.reply += data


def _wanted(conversation: _Conversation) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if conversation.unsent else 0)


def talk(port: int, conversations: list[list[bytes]], complete: Callable[[bytearray], bool],
         seconds: float) -> tuple[float, list[str]]:
    """Has one connection for each list of requests; `complete(reply)` tells whether a reply is whole. Returns the
    seconds it took and, for each connection, the hash of all its replies."""
    everyone = [_Conversation(port, requests) for requests in conversations]
    begin = time.monotonic()
    try:
        with selectors.DefaultSelector() as selector:
            for each in everyone:
                if each.next():
                    selector.register(each.socket, _wanted(each), each)
            while selector.get_map():
                if time.monotonic() - begin > seconds:
                    raise TimeoutError
                for key, events in selector.select(1):
                    _serve(selector, key.data, events, complete)
        return time.monotonic() - begin, [each.replies.hexdigest() for each in everyone]
    finally:
        for each in everyone:
            each.socket.close()


def _serve(selector, each: _Conversation, events: int, complete: Callable[[bytearray], bool]) -> None:
    if events & selectors.EVENT_WRITE:
        each.send()
    if events & selectors.EVENT_READ:
        each.receive()
        if complete(each.reply):
            each.replies.update(each.reply)
            each.reply.clear()
            if not each.next():
                selector.unregister(each.socket)
                return
    selector.modify(each.socket, _wanted(each), each)
