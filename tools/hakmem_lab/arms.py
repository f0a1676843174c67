# SPDX-License-Identifier: MIT
"""Arms: what the user types becomes something that can be launched.

    hakmem  mimalloc  glibc …     a peer (`./hakmem lab list`)
    hakmem+learn:0                hakmem with options; `learn:0` and `+learn:0` mean the same
    hakmem+force_libc             the same binary, every call handed on to the C library
    hakmem@low-memory             a profile, also with +OPTIONS
    path/to/lib.so  name=lib.so   any library, also with +OPTIONS
"""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Optional

from . import peers, place, store
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
    profile: str = ""


GLIBC = ("system", "newest")


@dataclasses.dataclass
class Arm:
    info: ArmInfo
    bases: tuple[str, ...] = GLIBC  # the C libraries it can take part on
    env: dict[str, str] = dataclasses.field(default_factory=dict)  # more variables than the options

    @property
    def name(self) -> str:
        return self.info.name

    def launch(self, base: "peers.Base") -> Launch:
        env = dict(self.env)
        if self.info.options:
            env["HAKMEM_OPTIONS"] = self.info.options
        prefix = base.prefix(self.info.library)
        return Launch(prefix=prefix, preload="" if prefix else self.info.library, env=env, library=self.info.library,
                      **({"c_library": ""} if base.name == "musl" else {}))


def option_names() -> list[str]:
    """From the table in src/base/options.def: the one place where an option exists."""
    text = (place.ROOT / "src" / "base" / "options.def").read_text(encoding="utf-8")
    return [*re.findall(r"^HAK_OPTION\w*\(\s*(\w+)", text, re.M), "memory"]  # of the profiles, not in the table


def profile_names() -> list[str]:
    text = (place.ROOT / "src" / "conf" / "presets.def").read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r'^HAK_PRESET\("([\w-]+)"', text, re.M)))


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
    profile = ""
    if "/" not in word:
        word, _, profile = word.partition("@")
    word = word or SUBJECT
    if options:
        check_options(options)
    if profile and profile not in profile_names():
        raise unknown("profile", profile, profile_names())
    name, equals, path = word.partition("=")
    if equals:
        libs[name] = path
    elif "/" in word or word.endswith(".so"):
        name = _library_name(word, libs)
        libs[name] = word
    elif word not in libs and word not in peers.catalogue():
        raise unknown("allocator", word, [*peers.catalogue(), *libs])
    if not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"'{name}' is no name for an allocator: use letters, digits, '.', '-' and '_'")
    return Spec(name + (f"@{profile}" if profile else "") + (f"+{options}" if options else ""), name, options, profile)


def with_libs(names: list[str], libs: dict[str, str]) -> list[str]:
    """These arms, and each library of --lib that none of them loads."""
    loaded = {libs.get(parse(name, libs).peer) for name in names}
    return [*names, *(name for name, path in libs.items() if path not in loaded)]


def _library_name(path: str, libs: dict[str, str]) -> str:
    """A name that is not taken, from the file's."""
    name = Path(path).name.split(".so")[0].removeprefix("lib")
    if libs.get(name, path) != path or name in peers.catalogue():
        name = next(f"{name}-{n}" for n in range(2, 100) if libs.get(f"{name}-{n}", path) == path)
    return name


def resolve(specs: list[Spec], libs: dict[str, str], *, build: bool = True, progress=lambda text: None,
            base: Optional["peers.Base"] = None) -> list[Arm]:
    """Finds or builds the libraries; what cannot be had carries its reason in info.skip. `base`: the C library that
    libraries of the user's own are for."""
    found: dict[str, peers.Found] = {}
    ahead = peers.ahead(dict.fromkeys(spec.peer for spec in specs)) if build else ""
    if ahead:
        progress(ahead)
    for spec in specs:
        if spec.peer not in found:
            found[spec.peer] = _kept(peers.find(spec.peer, build=build, progress=progress, libs=libs,
                                                  base=base if spec.peer in libs else None))
    return [_arm(spec, found[spec.peer]) for spec in specs]


def _kept(found: "peers.Found") -> "peers.Found":
    """With a copy of the library where a build may change it while it is measured."""
    path = Path(found.library)
    if found.library and not found.skip and not path.is_relative_to("/usr") and not path.is_relative_to("/lib"):
        return dataclasses.replace(found, library=str(store.keep_file(path)))
    return found


def _arm(spec: Spec, found: "peers.Found") -> Arm:
    extra = (f" @{spec.profile}" if spec.profile else "") + (f" +{spec.options}" if spec.options else "")
    bases = GLIBC + ("musl",) if found.peer.origin in ("subject", "user") else GLIBC
    if spec.peer == "glibc" or found.peer.base != "system":
        bases = (found.peer.base,)
    env = dict(found.env)
    if spec.profile:
        env["HAKMEM_PROFILE"] = spec.profile
    info = ArmInfo(name=spec.name, label=(found.label or spec.peer) + extra, version=found.version,
                   library=found.library, kind="subject" if spec.name == SUBJECT else "peer", sha256=found.sha256,
                   options=spec.options, flags=found.flags, skip=found.skip,
                   env=" ".join(f"{key}={value}" for key, value in env.items()))
    return Arm(info, bases, env)


def again(arm: Arm) -> Arm:
    """The second arm of an A/A pair: the same in everything but the name."""
    info = dataclasses.replace(arm.info, name=f"{arm.name}~{AGAIN}", label=f"{arm.info.label} (again)", kind="again")
    return Arm(info, arm.bases, arm.env)


def ideal() -> Arm:
    """The loop with inlined, unchecked lists: no allocator, a bound."""
    return Arm(ArmInfo(name=IDEAL, label="ideal (inlined lists)", kind="ideal"), ("system",))
