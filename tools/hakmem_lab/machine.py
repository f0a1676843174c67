# SPDX-License-Identifier: MIT
"""The machine's fingerprint: figures of different ones are not compared."""
from __future__ import annotations

import os
import platform
import re

from .errors import LabError


def _read(path: str, fallback: str = "") -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return fallback


def parse_cpuinfo(text: str) -> str:
    """The processor's name: the model on x86-64, implementer and part on aarch64."""
    for key in ("model name", "Model"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", text, re.M)
        if match:
            return " ".join(match.group(1).split())
    parts = [re.search(rf"^CPU {key}\s*:\s*(\S+)$", text, re.M) for key in ("implementer", "part")]
    if all(parts):
        return "CPU " + " ".join(part.group(1) for part in parts)
    return "unknown processor"


def _family(text: str) -> str:
    numbers = [re.search(rf"^{key}\s*:\s*(\d+)$", text, re.M) for key in ("cpu family", "model", "stepping")]
    return "/".join(number.group(1) for number in numbers if number)


def _chosen(text: str) -> str:
    """The word in brackets: "always [madvise] never" gives madvise."""
    match = re.search(r"\[(\w+)\]", text)
    return match.group(1) if match else text


def fingerprint() -> dict[str, str]:
    cpuinfo = _read("/proc/cpuinfo")
    name = parse_cpuinfo(cpuinfo)
    family = _family(cpuinfo)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.M)
    return {
        "processor": f"{name} (family/model/stepping {family})" if family else name,
        "architecture": platform.machine(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "memory": f"{round(int(memory.group(1)) / 2**20)} GiB" if memory else "unknown",
        "kernel": platform.release(),
        "page size": str(os.sysconf("SC_PAGE_SIZE")),
        "transparent huge pages": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled", "none")),
        "overcommit": _read("/proc/sys/vm/overcommit_memory", "unknown"),
        "glibc": os.confstr("CS_GNU_LIBC_VERSION") or "unknown",
        "virtual": "yes" if " hypervisor" in cpuinfo else "no",
    }


def kind(machine: dict[str, str]) -> str:
    """The machine's kind for file names and for comparison with a committed result: x86_64-amd-epyc-2cpu."""
    name = re.sub(r"\(.*?\)|@.*|\b(processor|cpu|\d+-core)\b", " ", machine["processor"], flags=re.I)
    words = "-".join(re.findall(r"[a-z0-9]+", name.lower()))
    return f"{machine['architecture']}-{words}-{machine['cpus']}cpu"


def require_same(here: dict[str, str], there: dict[str, str], what: str) -> None:
    """Refuses a comparison across machines."""
    differing = [key for key in sorted(here.keys() | there.keys()) if here.get(key) != there.get(key)]
    if differing:
        details = "; ".join(f"{key}: '{there.get(key, '')}' there, '{here.get(key, '')}' here" for key in differing)
        raise LabError(f"{what} is from another machine and is not compared: {details}")
