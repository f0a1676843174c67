# SPDX-License-Identifier: MIT
"""How a process is called in metrics: by its PID, name, control group, systemd unit and container."""
from __future__ import annotations

import re
from pathlib import Path

from hakmem_view import process

UNIT = re.compile(r"/([^/]+\.(?:service|scope))(?=/|$)")
CONTAINER = re.compile(r"[0-9a-f]{64}")  # of Docker, containerd, CRI-O and Podman
SHORT = 12  # letters of a container's id, as those print it
NAMES = ("pid", "name", "cgroup", "unit", "container")


def group_of(pid: int) -> str:
    """The path of its control group: of version 2, or of memory in version 1."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    fields = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    found = [path for number, kinds, path in fields if number == "0" or "memory" in kinds.split(",")]
    return process.plain(max(found, key=len, default=""))


def of(pid: int) -> dict[str, str]:
    group = group_of(pid)
    units, containers = UNIT.findall(group), CONTAINER.findall(group)
    return dict(zip(NAMES, (str(pid), process.name(pid), group, units[-1] if units else "",
                            containers[-1][:SHORT] if containers else "")))
