# SPDX-License-Identifier: MIT
"""From a PID or a socket's path to who answers there, and documents read from it with their versions checked."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional

from . import channel, process
from .errors import Closed, Slow, ViewError
from .installed import NAME, own_version
from .model import NEWER, parse

CONTROL = "1"  # version of the channel that this tool reads
PROBE_SECONDS = 3.0
SWITCH = "HAKMEM_OPTIONS=control:@hakmem-%p"


@dataclass
class Source:
    """Somebody who answers as hakmem does."""

    address: str
    pid: int = 0  # in our PID namespace; 0: unknown
    has_pid: bool = False  # whether the user named it by its PID

    def title(self) -> str:
        return process.called(self.pid) if self.has_pid and self.pid else self.address

    def subject(self) -> str:
        """Whose memory it is, once something was read."""
        return process.called(self.pid) if self.pid else self.address

    def ended(self) -> bool:
        return bool(self.pid) and not process.lives(self.pid)

    def read(self, path: str, method: str = "GET") -> bytes:
        """The body of a document."""
        answer = channel.ask(self.address, path, method=method)
        check(answer, self.address)
        self.pid = self.pid or answer.pid
        if answer.status == 404:
            raise ViewError(f"{self.title()} does not serve {path}: {_server(answer)}, this tool is hakmem "
                            f"{own_version()}")
        if answer.status != 200:
            raise ViewError(f"{self.title()} refuses {path}: {answer.status} {process.plain(answer.reason)}".rstrip())
        return answer.body

    def document(self, path: str) -> dict:
        return self.parse(path, self.read(path))

    def parse(self, path: str, body: bytes) -> dict:
        """A JSON document, of this process."""
        found = parse(body, f"{path} of {self.title()}")
        theirs = found.get("pid")
        if self.has_pid and isinstance(theirs, int) and theirs not in process.same_pids(self.pid) | {0}:
            raise ViewError(f"{self.title()} only inherited a socket, which process {theirs} serves: ask that one")
        return found


def _server(answer: channel.Answer) -> str:
    return process.plain(answer.headers.get("server", "hakmem of an unknown version").replace("/", " "))[:60]


def check(answer: channel.Answer, address: str) -> None:
    theirs = answer.headers.get("x-hakmem-control")
    if theirs is None:
        raise ViewError(f"{address} is not a control socket of hakmem")
    if theirs != CONTROL:
        raise ViewError(f"{address} speaks version {process.plain(theirs)[:20]} of the control channel "
                        f"({_server(answer)}), this tool version {CONTROL} (hakmem {own_version()}); {NEWER}")


def _nobody(pid: int) -> ViewError:
    """Why a process that lives has no control socket."""
    who = process.called(pid)
    mapped, name = process.has_library(pid), process.options(pid).get("control", "")
    if mapped is None:
        return ViewError(f"{who} cannot be looked into: what it has mapped cannot be read")
    if not mapped:
        return ViewError(f"{who} does not run on hakmem, as far as one can see; start it with "
                         f"{SWITCH} {NAME} run -- PROGRAM")
    parent = _answering_parent(pid)
    if parent is not None:
        return ViewError(f"{who} was forked by process {parent.pid}, which answers at {parent.address}: "
                         + _why_no_child(pid, parent))
    if not name:
        return ViewError(f"{who} has no control socket; start it with {SWITCH} in its environment")
    return ViewError(f"{who} was started with control:{name}, but has no such socket: {_why_none(name)}")


def _answering_parent(pid: int) -> Optional[Source]:
    """The nearest process that this one was forked from and that answers."""
    parent = process.forked_from(pid)
    if not parent:
        return None
    try:
        return _of_pid(parent)
    except ViewError:
        return _answering_parent(parent)


def _why_no_child(pid: int, parent: Source) -> str:
    """Its environment need not be what its parent was started with: many programs write their title over it."""
    if str(parent.pid) not in parent.address:
        return "that name has no %p, so children have no socket; start the parent with one that has"
    own = parent.address.replace(str(parent.pid), str(pid))
    return f"a child has a socket of its own, {own}, once its main thread has allocated a little; no option is missing"


def _why_none(name: str) -> str:
    """A process that was told to have a socket has none: what is known to lead to that."""
    if name[0] not in "@/":
        return f"the name {name} is relative to a folder it may have left"
    if "%p" in name:
        return "a forked child gets one once it has allocated a little; the program's standard error may say more"
    return "the name has no %p, so only the first process that takes it has one"


def _of_pid(pid: int) -> Source:
    if not process.lives(pid):
        raise ViewError(f"there is no process {pid}")
    refusal = None
    for address in process.listening(pid):
        try:
            answer = channel.ask(address, "/", PROBE_SECONDS)
        except Slow as error:
            refusal = refusal or (error if "hakmem" in address else None)
            continue
        except ViewError as error:
            # A name like ours, but another user's process: that is the reason.
            refusal = refusal or (error if "hakmem" in address else None)
            continue
        if "x-hakmem-control" in answer.headers:
            check(answer, address)
            return Source(address, pid, has_pid=True)
    if not process.lives(pid):
        raise Closed(f"process {pid} has ended")
    raise refusal or _nobody(pid)


def find(word: str) -> Source:
    """PID, path of a socket, or @name of an abstract one."""
    if word.isascii() and word.isdigit():
        if int(word) == 0 or len(word) > 9:
            raise ViewError(f"there is no process {word}")
        process.need()
        return _of_pid(int(word))
    if not word.strip("@"):
        raise ViewError("a PID, a path or an @name of a socket is wanted")
    if "%p" in word:
        raise ViewError(f"{process.plain(word)}: %p stands for the PID of the process; name that")
    if channel.is_abstract(word):
        raise ViewError(f"there is no socket {word}, but an abstract one: @{word}")
    if "/" not in word and not word.startswith("@") and not os.path.lexists(word):
        raise ViewError(f"{process.plain(word)} is neither a PID nor a socket; `{NAME} ps` lists processes")
    return Source(word)
