# SPDX-License-Identifier: MIT
"""Arms: what the user types becomes something that can be launched.

    hakmem  mimalloc  glibc …     a peer (`./hakmem lab list`)
    hakmem+learn:0                hakmem with options; `learn:0` and `+learn:0` mean the same
    hakmem+force_libc             the same binary, every call handed on to the C library
    path/to/lib.so  name=lib.so   any library, also with +OPTIONS
"""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from . import peers, place
from .apps import Launch
from .errors import UsageError, unknown
from .model import ArmInfo

SUBJECT = "hakmem"
AGAIN = "again"  # suffix of the second arm of an A/A pair
IDEAL = "ideal"


@dataclasses.dataclass
class Spec:
    """An arm as typed: a peer or library, and options."""

    name: str
    peer: str
    options: str = ""


@dataclasses.dataclass
class Arm:
    info: ArmInfo
    bases: tuple[str, ...] = ("system", "newest")  # the C libraries it can take part on
    env: dict[str, str] = dataclasses.field(default_factory=dict)  # more variables than the options

    @property
    def name(self) -> str:
        return self.info.name

    def launch(self, base: "peers.Base") -> Launch:
        env = dict(self.env)
        if self.info.options:
            env["HAKMEM_OPTIONS"] = self.info.options
        prefix = base.prefix(self.info.library)
        return Launch(prefix=prefix, preload="" if prefix else self.info.library, env=env, library=self.info.library)


def option_names() -> list[str]:
    """From the table in src/conf/options.def: the one place where an option exists."""
    text = (place.ROOT / "src" / "conf" / "options.def").read_text(encoding="utf-8")
    return re.findall(r"^HAK_OPTION\w*\(\s*(\w+)", text, re.M)


def check_options(text: str) -> str:
    """Refuses what the library would only warn of: a comparison with a misspelt option measures nothing."""
    names = option_names()
    for part in text.split(","):
        name = part.split(":", 1)[0].strip()
        if name not in names:
            raise unknown("option", name, names)
    return text


def parse(text: str, libs: dict[str, str]) -> Spec:
    """Understands one arm as typed; libs (name → path) grows by libraries named here."""
    word, plus, options = text.partition("+")
    if not plus and word not in libs and (":" in word or word.split(",")[0] in option_names()) and "/" not in word:
        word, options = SUBJECT, word
    word = word or SUBJECT
    if options:
        check_options(options)
    name, equals, path = word.partition("=")
    if equals:
        libs[name] = path
    elif "/" in word or word.endswith(".so"):
        name = Path(word).name.split(".so")[0].removeprefix("lib")
        if libs.get(name, word) != word or name in peers.catalogue():
            name = next(f"{name}-{n}" for n in range(2, 100) if libs.get(f"{name}-{n}", word) == word)
        libs[name] = word
    elif word not in libs and word not in peers.catalogue():
        raise unknown("allocator", word, [*peers.catalogue(), *libs])
    if not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"'{name}' is no name for an allocator: use letters, digits, '.', '-' and '_'")
    return Spec(f"{name}+{options}" if options else name, name, options)


def resolve(specs: list[Spec], libs: dict[str, str], *, build: bool = True, progress=lambda text: None) -> list[Arm]:
    """Finds or builds the libraries; what cannot be had carries its reason in info.skip."""
    found: dict[str, peers.Found] = {}
    arms = []
    for spec in specs:
        if spec.peer not in found:
            found[spec.peer] = peers.find(spec.peer, build=build, progress=progress, libs=libs)
        peer = found[spec.peer]
        label = f"{peer.label or spec.peer} +{spec.options}" if spec.options else peer.label or spec.peer
        bases = ("system", "newest")
        if spec.peer == "glibc" or peer.peer.base != "system":
            bases = (peer.peer.base,)
        arms.append(Arm(ArmInfo(name=spec.name, label=label, version=peer.version, library=peer.library,
                                kind="subject" if spec.name == SUBJECT else "peer", sha256=peer.sha256,
                                options=spec.options, skip=peer.skip), bases, dict(peer.env)))
    return arms


def again(arm: Arm) -> Arm:
    """The second arm of an A/A pair: the same in everything but the name."""
    info = dataclasses.replace(arm.info, name=f"{arm.name}~{AGAIN}", label=f"{arm.info.label} (again)", kind="again")
    return Arm(info, arm.bases, arm.env)


def ideal() -> Arm:
    """The loop with inlined, unchecked lists: no allocator, a bound."""
    return Arm(ArmInfo(name=IDEAL, label="ideal (inlined lists)", kind="ideal"), ("system",))
